/** The numbers of watching. */
export interface WatchPolicy {
  /** Hints are gathered for so many ms before they are followed. */
  readonly gatherMs: number;
  /** So many paths of one folder are looked at at once. */
  readonly looksAtOnce: number;
  /** When hints name more paths than this, the whole folder is scanned instead. */
  readonly mostGathered: number;
  /** So many hints at a stroke may have been more: the system's queue holds 16,384 and drops the rest without a word. */
  readonly burst: number;
  /** How often the root of each folder is checked, in ms. */
  readonly rootCheckMs: number;
  /** How often a folder is scanned that cannot be watched, in ms. */
  readonly degradedRescanMs: number;
  /** Files that are read at once, over all folders. */
  readonly readers: number;
  /** From so many files that wait to be read on, scans wait too. */
  readonly crowd: number;
  /** How often the event loop is checked for a stall, in ms. */
  readonly stallCheckMs: number;
  /** A loop that was late by so many ms may have lost hints. */
  readonly stallMs: number;
  /** At least so many ms lie between two rescans because of stalls. */
  readonly stallRescanGapMs: number;
}

export const WATCH_POLICY: WatchPolicy = {
  gatherMs: 30,
  looksAtOnce: 16,
  mostGathered: 10_000,
  burst: 10_000,
  rootCheckMs: 3_000,
  degradedRescanMs: 60_000,
  readers: 8,
  crowd: 500,
  stallCheckMs: 250,
  stallMs: 1_000,
  stallRescanGapMs: 30_000,
};
