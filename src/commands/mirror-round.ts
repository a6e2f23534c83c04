import { EXIT, type ExitCode } from '../lib/errors.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { MirrorReport } from '../mirror/record.js';
import { exitCodeOf, worse } from './mirror.js';

/** What the mirrors of one run came to. */
export interface MirrorCounts {
  /** Files that are what the peer has. */
  readonly current: number;
  /** Of these, written in this run. */
  readonly changed: number;
  readonly alarms: number;
  readonly failed: number;
}

export type RoundMirrors = Pick<Mirrors, 'names' | 'run' | 'status'>;

/** Runs every mirror once: shares and tables at once, citations when the items are confirmed that they are about. */
export class MirrorRound {
  readonly #mirrors: RoundMirrors;
  readonly #reports: MirrorReport[] = [];
  readonly #reported = new Set<string>();
  #underWay = 0;
  #citationsAsked = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(mirrors: RoundMirrors) {
    this.#mirrors = mirrors;
    this.#run((kind) => kind !== 'citations');
  }

  /** To be called when no item waits any more. */
  itemsAreSettled(): void {
    if (this.#citationsAsked) return;
    this.#citationsAsked = true;
    this.#run((kind) => kind === 'citations');
  }

  get isOver(): boolean {
    return this.#citationsAsked && this.#underWay === 0;
  }

  /** How many there are, as far as is known: a pattern brings more. */
  get total(): number {
    return this.#mirrors.names.length;
  }

  /** Those that have not run yet, by name. */
  get waiting(): readonly string[] {
    return this.#mirrors.names.filter((name) => !this.#reported.has(name));
  }

  /** What ended the round: a disk that fails, a bug. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  get reports(): readonly MirrorReport[] {
    return this.#reports;
  }

  get counts(): MirrorCounts {
    const alarms = this.#reports.filter(({ alarm }) => alarm !== undefined).length;
    const failed = this.#reports.filter(({ failure }) => failure !== undefined).length;
    const changed = this.#reports.filter((report) => report.changed).length;
    return { current: this.#reports.length - alarms - failed, changed, alarms, failed };
  }

  get exitCode(): ExitCode {
    return this.#reports.map(exitCodeOf).reduce(worse, EXIT.done);
  }

  #run(isChosen: (kind: MirrorReport['kind']) => boolean): void {
    const names = this.#mirrors
      .status()
      .filter(({ kind }) => isChosen(kind))
      .map(({ name }) => name);
    if (names.length === 0) return;
    this.#underWay += 1;
    this.#collect(names)
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#underWay -= 1;
      });
  }

  async #collect(names: readonly string[]): Promise<void> {
    for await (const report of this.#mirrors.run(names)) {
      this.#reports.push(report);
      this.#reported.add(report.name);
    }
  }
}
