import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { formatBytes } from '../lib/units.js';
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

/** How many are kept; the rest is only counted. */
const KEPT = 1_000;

/** The problems of one folder. Each is logged once, when it is first seen, and forgotten when a full scan does not see it. */
export class Problems {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #known = new Map<string, PathProblem>();
  readonly #seen = new Set<string>();
  #unnamed = 0;

  constructor(folder: string, clock: Clock, log: Logger) {
    this.#folder = folder;
    this.#clock = clock;
    this.#log = log;
  }

  report(path: string, trouble: Trouble): void {
    const folder = this.#folder;
    const key = `${trouble.code} ${path} ${trouble.message}`;
    if (this.#known.has(key)) {
      this.#seen.add(key);
    } else if (this.#known.size < KEPT) {
      this.#seen.add(key);
      this.#known.set(key, { folder, path, trouble, since: this.#clock.now() });
      const { code, message, hint } = trouble;
      this.#log.warn({ folder, path, code }, `${path}: ${message} ${hint}`);
    } else {
      this.#unnamed += 1;
      if (this.#unnamed === 1)
        this.#log.warn({ folder }, `There are more than ${KEPT} such paths; no more are named.`);
    }
  }

  /** A full scan begins: what it does not report again is over when it ends. */
  beginScan(): void {
    this.#seen.clear();
    this.#unnamed = 0;
  }

  endScan(): void {
    for (const key of this.#known.keys()) if (!this.#seen.has(key)) this.#known.delete(key);
  }

  /** How many there are besides the listed ones. */
  get unnamed(): number {
    return this.#unnamed;
  }

  list(): readonly PathProblem[] {
    return [...this.#known.values()];
  }
}

/** Why a file or a directory was not taken: everything that watching can say, in one place. */
export const trouble = {
  empty: (): Trouble => ({
    code: 'EMPTY',
    message: 'The file is empty.',
    hint: 'It is taken as soon as something is in it.',
  }),
  tooLarge: (size: number, limit: number): Trouble => ({
    code: 'TOO_LARGE',
    message: `The file has ${formatBytes(size)}; the limit of its folder is ${formatBytes(limit)}.`,
    hint: 'Raise `maxFileSize` of the folder if the peer takes such large documents.',
  }),
  unreadable: (code: string): Trouble => ({
    code: 'UNREADABLE',
    message: `The file cannot be read (${code}).`,
    hint:
      code === 'EACCES' || code === 'EPERM'
        ? 'Give the user that peersync runs as the right to read it.'
        : 'See the system log: the disk or the network mount may be failing.',
  }),
  sameDocument: (other: string): Trouble => ({
    code: 'SAME_DOCUMENT',
    message: `Its document is already that of ${other}, a name that only differs in its Unicode form.`,
    hint: 'Rename or remove one of the two; both have the same URL.',
  }),
  directoryUnreadable: (code: string): Trouble => ({
    code: 'DIRECTORY_UNREADABLE',
    message: `The directory cannot be listed (${code}); what is in it is not known.`,
    hint: 'Give the user that peersync runs as the right to read and enter it.',
  }),
  pathTooLong: (): Trouble => ({
    code: 'PATH_TOO_LONG',
    message: 'The path is longer than the system allows; what is there cannot be read.',
    hint: 'Move it up some levels, or watch a directory further down as a folder of its own.',
  }),
  nameNotUtf8: (bytes: Uint8Array): Trouble => ({
    code: 'NAME_NOT_UTF8',
    message: `The name is not valid UTF-8 (bytes ${Buffer.from(bytes).toString('hex')}) and has no URL.`,
    hint: 'Rename it, for instance with convmv.',
  }),
  rulesUnreadable: (reason: string): Trouble => ({
    code: 'RULES_UNREADABLE',
    message: `The rules cannot be read (${reason}), so everything that they are for is passed over.`,
    hint: 'Make the file readable, or remove it.',
  }),
  /** @param wasSeen it was there before: an empty one in its place would hide that something is not mounted */
  rootMissing: (path: string, code: string, wasSeen: boolean): Trouble => ({
    code: 'FOLDER_MISSING',
    message: `The folder ${path} is not there or cannot be read (${code}); nothing is concluded from that.`,
    hint: `${wasSeen ? 'Mount it or bring it back' : 'Mount or create it'}; peersync looks for it every few seconds and goes on by itself.`,
  }),
  rootReplaced: (path: string): Trouble => ({
    code: 'FOLDER_REPLACED',
    message: `The folder ${path} is not the one it was (empty, or on another file system): is something not mounted? New files are taken, but none counts as removed.`,
    hint: 'Mount what belongs there; peersync goes on by itself. If the change is meant, nothing is to be done.',
  }),
  watchLimit: (code: string): Trouble => ({
    code: 'WATCH_LIMIT',
    message: `The system's limit of watched directories is reached (${code}): changes are found by rescans only, some minutes late.`,
    hint: 'Raise it: `sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=1024` (and in /etc/sysctl.d to keep it).',
  }),
} as const;
