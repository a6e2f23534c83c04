import type { FolderConfig } from '../../config/config.js';
import type { Clock } from '../../lib/clock.js';
import { joinPath } from '../../lib/file.js';
import type { Logger } from '../../lib/logger.js';
import { escapeInvisible, isWithin } from '../../lib/text.js';
import type { Failure } from '../../state/entry.js';

/** A path of a folder that hides files, so that no record of a file can report it. */
export interface PathProblem {
  readonly folder: string;
  /** Absolute. Names that are not valid UTF-8 are shown with U+FFFD. */
  readonly path: string;
  readonly failure: Failure;
  /** When it was first seen, in ms since the epoch. */
  readonly since: number;
}

/** Maximum number of problems in the list. The others are only counted. */
const MAX_LISTED = 1_000;

/**
 * The problems of one folder. Each is logged once, when it is first seen. It is dropped by a full
 * scan that does not see it again.
 */
export class Problems {
  /** Number of problems that are not in the list. */
  unnamed = 0;
  readonly #known = new Map<string, PathProblem>();
  /** The keys that were reported since the last full scan began. */
  readonly #seen = new Set<string>();

  constructor(
    private readonly folder: FolderConfig,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** @param relative the path relative to the folder */
  report(relative: string, failure: Failure): void {
    const { log } = this;
    const { name: folder } = this.folder;
    const path = joinPath(this.folder.path, relative);
    const { code, message, hint } = failure;
    const key = `${code} ${path} ${message}`;
    const isNew = !this.#known.has(key);
    // WATCH_LIMIT is always listed, because it decides how often the folder is scanned.
    if (isNew && this.#known.size >= MAX_LISTED && code !== 'WATCH_LIMIT') {
      this.unnamed += 1;
      if (this.unnamed === 1)
        log.warn({ folder }, `There are more than ${MAX_LISTED} such paths; no more are named.`);
      return;
    }
    if (isNew) {
      this.#known.set(key, { folder, path, failure, since: this.clock.now() });
      log.warn({ folder, path, code }, `${escapeInvisible(path)}: ${message} ${hint}`);
    }
    this.#seen.add(key);
  }

  /** Begins a full scan. `endScan` drops what is not reported again until then. */
  beginScan(): void {
    this.#seen.clear();
    this.unnamed = 0;
  }

  endScan(): void {
    for (const key of this.#known.keys()) if (!this.#seen.has(key)) this.#known.delete(key);
  }

  list(): readonly PathProblem[] {
    return [...this.#known.values()];
  }

  find(code: string): readonly PathProblem[] {
    return this.list().filter(({ failure }) => failure.code === code);
  }

  /** Drops the problems of a path, relative to the folder, and of all below it. */
  resolve(relative: string): void {
    const path = joinPath(this.folder.path, relative);
    for (const [key, known] of this.#known) if (isWithin(known.path, path)) this.#known.delete(key);
  }
}
