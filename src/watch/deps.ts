import type { HashQueue } from '../content/hash-queue.js';
import type { Programs } from '../content/helpers/programs.js';
import type { Clock } from '../lib/clock.js';
import type { Encoding } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
import type { Failure } from '../state/entry.js';
import type { State } from '../state/state.js';
import type { Committer } from './committer.js';
import type { List } from './lister.js';
import type { Renames } from './renames.js';

/** The numbers of watching, with their defaults. */
export const WATCH_POLICY = {
  /** Time between two full scans of a folder, in ms. */
  rescanMs: 3_600_000,
  /** The same for a folder that cannot be watched completely, in ms. */
  degradedRescanMs: 60_000,
  /** Time between two checks of the root of a folder, in ms. */
  rootCheckMs: 3_000,
  /** Number of large files that are read at once, over all folders. */
  readers: 8,
  /** Number of files waiting to be read from which on scans wait. */
  backpressureAt: 500,
  /**
   * Time between noticing a removed file and the scan that confirms its absence, in ms. Other
   * removals of the same action join it meanwhile.
   */
  deletionPauseMs: 1_000,
  /** Shortest time between two such scans of a folder, in ms. */
  deletionScanMs: 10_000,
};

/** The facts about the peer that decide which files are pushed and which documents are removed. */
export interface PeerFacts {
  /**
   * Returns why the peer does not take text in an encoding, or undefined if it does. That depends
   * on the encoding alone; the message names the type of the file, if it is known.
   */
  refusalOf(encoding: Encoding, typeName?: string): Failure | undefined;
  /**
   * Whether the peer is an embedded one; undefined while that is unknown. The call may ask the
   * peer, so it is made only if the answer matters.
   */
  isEmbedded(): boolean | undefined;
}

/** The programs that read documents for which nothing is built in. */
export interface ReadingPrograms {
  /** Another object after each change. `Watcher.scanAll` must be called then. */
  readonly current: Programs;
  /** Called when a full scan begins: a program may have been installed. */
  onScan(): void;
}

/** The dependencies that all folders share. */
export interface WatchDeps {
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
  readonly list: List;
  readonly hashQueue: HashQueue;
  readonly renames: Renames;
  /** Called after each change of state, which then reaches the disk within a moment. */
  readonly committer: Committer;
  readonly peer: PeerFacts;
  readonly programs: ReadingPrograms;
  /** Called when the root of a folder goes away, comes back, or is another directory. */
  readonly onFolderStateChange?: () => void;
  readonly policy: typeof WATCH_POLICY;
}
