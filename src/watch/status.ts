import type { Trouble } from '../state/entry.js';

/** What a scan met; `directory` is where it began, `''` the whole folder. */
export interface ScanReport {
  readonly folder: string;
  readonly directory: string;
  readonly files: number;
  readonly directories: number;
  readonly durationMs: number;
}

/** What a folder's watch is doing. Times are ms since the epoch. */
export interface FolderStatus {
  readonly name: string;
  /**
   * `scanning` and `watching` speak for themselves; `unwatched`: hints are turned off; `held`: the root is missing or
   * doubtful; `degraded`: the system's watch limit is reached, changes are found by rescans; `stopped`.
   */
  readonly state: 'scanning' | 'watching' | 'unwatched' | 'held' | 'degraded' | 'stopped';
  readonly since: number;
  readonly trouble?: Trouble;
  readonly lastScan?: ScanReport & { readonly at: number };
  readonly directoriesWatched: number;
  /** Files that were written a moment ago and are waited for. */
  readonly settling: number;
  /** Paths that could not be looked at, besides those that are named; only where there are too many. */
  readonly unnamedProblems?: number;
}
