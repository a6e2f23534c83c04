import type { State } from '../state/state.js';

/** What watching needs of the state. */
export type WatchState = Pick<State, 'get' | 'put' | 'remove' | 'commit' | 'meta' | 'setMeta' | 'entries'>;

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

/** One step of a look: a disk that is far away may take long for it. In ms. */
export const LONGEST_STEP_MS = 15 * 60_000;
