import type { FolderConfig } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { Encoding } from '../lib/encodings.js';
import type { Logger } from '../lib/logger.js';
import type { Trouble } from '../state/entry.js';
import type { Commits } from './commits.js';
import type { Debouncer } from './debouncer.js';
import type { FsEvents } from './fs-events.js';
import type { HashQueue } from './hash-queue.js';
import type { Lister } from './lister.js';
import type { Problems } from './problems.js';
import type { Root, WatchState } from './root.js';
import type { FolderRules } from './rules.js';

/** Whether the peer can take text in an encoding: nothing, or why it cannot. Depends on the encoding alone. */
export type Accepts = (encoding: Encoding) => Trouble | undefined;

/** What all folders share. */
export interface WatchDeps {
  readonly state: WatchState;
  readonly hashQueue: HashQueue;
  readonly commits: Commits;
  readonly lister: Lister;
  readonly accepts: Accepts;
  readonly policy: WatchPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when something ended that `busy` spoke of. */
  readonly onQuiet: () => void;
  /** Called when a root stands otherwise than before. */
  readonly onStanding: () => void;
}

/** What the parts of one folder share. */
export interface FolderDeps extends WatchDeps {
  readonly folder: FolderConfig;
  readonly root: Root;
  readonly rules: FolderRules;
  readonly debouncer: Debouncer;
  readonly problems: Problems;
  /** Undefined where changes are found by scans alone. */
  readonly events: FsEvents | undefined;
}

/** The numbers of watching. */
export interface WatchPolicy {
  /** fs events are gathered for so many ms before they are followed. */
  readonly gatherMs: number;
  /** So many paths of one folder are looked at at once. */
  readonly looksAtOnce: number;
  /** So many directories of one folder are listed at once. */
  readonly listsAtOnce: number;
  /**
   * So many fs events in one turn of the event loop may have been more: the system's queue holds 16,384 and drops the rest
   * without a word.
   */
  readonly burst: number;
  /** How often the root of each folder is checked, in ms. */
  readonly rootCheckMs: number;
  /** How often a folder is scanned that cannot be watched, in ms. */
  readonly degradedRescanMs: number;
  /** Large files that are read at once, over all folders. */
  readonly readers: number;
  /** From so many files that wait to be read on, scans wait too. */
  readonly crowd: number;
}

export const WATCH_POLICY: WatchPolicy = {
  gatherMs: 30,
  looksAtOnce: 16,
  listsAtOnce: 4,
  burst: 10_000,
  rootCheckMs: 3_000,
  degradedRescanMs: 60_000,
  readers: 8,
  crowd: 500,
};
