import type { Clock, Timer } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';
import type { Problems } from './problems.js';
import type { Root } from './root.js';
import { trouble } from './trouble.js';

/** The system's codes for a limit of watches that is reached. */
const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);

export interface BlindSpotsParts {
  /** The folder's name. */
  readonly folder: string;
  readonly root: Pick<Root, 'real'>;
  readonly problems: Pick<Problems, 'report'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Time between two looks at what no watch tells of, in ms. */
  readonly everyMs: number;
  /** One directory is to be looked at. */
  readonly lookAt: (directory: string) => void;
  readonly rescan: () => void;
}

/**
 * The directories of a folder that no watch could be had for, and what is done instead.
 *
 * - One that can never be watched is looked at every so often, and forgotten until that look meets it again.
 * - *Degraded*, entered when a limit of the system is reached, which is said once: then the whole folder is scanned every so
 *   often, until a full scan has watched all that it met.
 */
export class BlindSpots {
  readonly #parts: BlindSpotsParts;
  readonly #neverWatched = new Set<string>();
  #degraded: Trouble | undefined;
  /** For how many directories the limit was met in the present scan. */
  #overLimit = 0;
  #timer: Timer | undefined;

  constructor(parts: BlindSpotsParts) {
    this.#parts = parts;
  }

  /** Why changes are found by scans, where they are. */
  get degraded(): Trouble | undefined {
    return this.#degraded;
  }

  start(): void {
    const { clock, everyMs, lookAt, rescan } = this.#parts;
    this.#timer = clock.after(everyMs, () => {
      if (this.#degraded !== undefined) rescan();
      for (const directory of this.#neverWatched) lookAt(directory);
      this.#neverWatched.clear();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  beginScan(): void {
    this.#overLimit = 0;
  }

  /** A full scan looked everywhere. */
  endScan(): void {
    if (this.#overLimit > 0 || this.#degraded === undefined) return;
    this.#degraded = undefined;
    const { folder, log } = this.#parts;
    log.info({ folder }, `${folder}: all directories are watched again.`);
  }

  /** No watch could be had for a directory (absolute). */
  met(directory: string, code: string): void {
    const { folder, log, problems, root } = this.#parts;
    if (code === 'NOT_WATCHABLE') {
      this.#neverWatched.add(directory.slice(root.real.length + 1));
      problems.report(directory, trouble.notWatchable());
    }
    // Any other code (EACCES) is met, and told, by the listing that follows.
    if (!LIMITS.has(code)) return;
    this.#overLimit += 1;
    if (this.#degraded !== undefined) return;
    this.#degraded = trouble.watchLimit(code);
    log.error({ folder, code }, `${folder}: ${this.#degraded.message} ${this.#degraded.hint}`);
  }
}
