/** A loop that has stopped making progress. */
export interface Stuck {
  /** The name of the health check. */
  readonly name: string;
  /** The work that is not being done, as the beginning of a sentence. */
  readonly what: string;
  /** When it last made progress, in ms since the epoch. */
  readonly since: number;
}

export interface HealthOptions {
  /**
   * Returns whether the loop has work that it could do now. A loop is not busy while it waits for a
   * time, for a peer that is away, or for a request under way. @default whether a `during` is
   * running
   */
  readonly busy?: () => boolean;
  /**
   * Returns whether the work in `during` waits for a reason that people are shown. @default never
   */
  readonly waits?: () => boolean;
  /**
   * The longest time that the loop may be busy without progress, in ms. @default the limit of the
   * watchdog
   */
  readonly limitMs?: number;
}

/**
 * Shows whether a loop makes progress. The loop calls `progress` at each step, or runs its work in
 * `during`. The watchdog calls `look` at intervals.
 *
 * - *Idle*: `busy` is false, because there is no work or a reason to wait. The time without
 *   progress is 0.
 * - *Busy*: `busy` is true. The time without progress grows until the next progress.
 */
export class HealthCheck {
  /**
   * The last time at which `look` found the loop idle or with new progress, in ms by the clock of
   * the caller.
   */
  lastProgressAt = 0;
  #hasProgress = true;
  #running = 0;

  /**
   * @param what the work that is not done while the loop stands still, as the beginning of a
   *   sentence
   */
  constructor(
    readonly name: string,
    readonly what: string,
    readonly options: HealthOptions = {},
  ) {}

  get busy(): boolean {
    const { busy, waits } = this.options;
    if (waits?.() === true) return false;
    return busy?.() ?? this.#running > 0;
  }

  progress(): void {
    this.#hasProgress = true;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#hasProgress = true;
    }
  }

  /**
   * @param now ms by the clock of the caller @returns how long the loop has been busy without
   *   progress, in ms
   */
  look(now: number): number {
    if (this.#hasProgress || !this.busy) this.lastProgressAt = now;
    this.#hasProgress = false;
    return now - this.lastProgressAt;
  }
}
