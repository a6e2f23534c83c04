import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';

/** Something in a folder that keeps files from being seen, and that no record of a file can tell. */
export interface PathProblem {
  readonly folder: string;
  /** Absolute. Names that are not valid UTF-8 are shown with U+FFFD. */
  readonly path: string;
  readonly trouble: Trouble;
  /** When it was first seen, in ms since the epoch. */
  readonly since: number;
}

interface Known extends PathProblem {
  seenIn: number;
}

/** How many are kept; the rest is only counted. */
const KEPT = 1_000;

/** The problems of one folder. Each is logged once, when it is first seen, and forgotten when a full scan does not see it. */
export class Problems {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #known = new Map<string, Known>();
  #scan = 0;
  #unkept = 0;

  constructor(folder: string, clock: Clock, log: Logger) {
    this.#folder = folder;
    this.#clock = clock;
    this.#log = log;
  }

  report(path: string, trouble: Trouble): void {
    const key = `${trouble.code} ${path} ${trouble.message}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.seenIn = this.#scan;
      return;
    }
    if (this.#known.size >= KEPT) {
      if (this.#unkept === 0) {
        this.#log.warn(
          { folder: this.#folder },
          `There are more than ${KEPT} such paths; no more are named.`,
        );
      }
      this.#unkept += 1;
      return;
    }
    const { code, message, hint } = trouble;
    this.#known.set(key, {
      folder: this.#folder,
      path,
      trouble,
      since: this.#clock.now(),
      seenIn: this.#scan,
    });
    this.#log.warn({ folder: this.#folder, path, code }, `${path}: ${message} ${hint}`);
  }

  /** A full scan begins: what it does not report again is over when it ends. */
  beginScan(): void {
    this.#scan += 1;
    this.#unkept = 0;
  }

  endScan(): void {
    for (const [key, problem] of this.#known) if (problem.seenIn < this.#scan) this.#known.delete(key);
  }

  /** How many there are besides the listed ones. */
  get unnamed(): number {
    return this.#unkept;
  }

  list(): readonly PathProblem[] {
    return [...this.#known.values()].map(({ folder, path, trouble, since }) => ({
      folder,
      path,
      trouble,
      since,
    }));
  }
}
