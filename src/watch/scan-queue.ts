/** The result of one full scan. */
export interface ScanReport {
  readonly folder: string;
  /** The files that were listed, also in directories that did not change and were not compared. */
  readonly files: number;
  /** The directories that were listed. */
  readonly directories: number;
  readonly durationMs: number;
}

/**
 * Runs the full scans of one folder, one at a time. All requests that arrive while a scan runs
 * share the next one.
 */
export class ScanQueue {
  #scan: (() => Promise<ScanReport>) | undefined;
  #isRunning = false;
  /** The scan that was requested and has not begun. */
  #next: Promise<ScanReport> | undefined;
  /** Settles when no scan runs and none is requested. */
  #last: Promise<unknown> = Promise.resolve();

  /** Sets what a scan does. @param scan never rejects */
  start(scan: () => Promise<ScanReport>): void {
    this.#scan = scan;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Whether a scan runs or is requested. */
  get busy(): boolean {
    return this.#isRunning || this.#next !== undefined;
  }

  /** Requests a scan that begins after this call. @returns its report; never rejects */
  request(): Promise<ScanReport> {
    this.#next ??= this.#last.then(() => this.#run());
    this.#last = this.#next;
    return this.#next;
  }

  /** Resolves when no scan runs and none is requested. */
  async settled(): Promise<void> {
    await this.#last;
  }

  async #run(): Promise<ScanReport> {
    if (this.#scan === undefined) throw new Error('the scan queue was not started');
    this.#next = undefined;
    this.#isRunning = true;
    try {
      return await this.#scan();
    } finally {
      this.#isRunning = false;
    }
  }
}
