import type { Histogram } from 'prom-client';
import type { BucketsReading } from '../../lib/buckets.js';
import type { Build } from '../../lib/version.js';
import type { RequestCounts } from '../../peer/asking.js';
import type { Totals } from '../../report/statistics.js';
import type { StatusReport } from '../../report/status.js';
import type { StateFigures } from '../../state/state.js';

/** Everything that a scrape reads, taken at one moment. */
export interface Observed {
  /** In ms since the epoch. */
  readonly now: number;
  readonly status: StatusReport;
  readonly state: StateFigures;
  readonly totals: Totals;
  readonly timeToSearch: Histogram;
  /** How far the wall clock is ahead of the steady time that everything here is dated by, in ms. */
  readonly wallAheadMs: number;
  readonly requests: RequestCounts;
  readonly pushedBytes: number;
  readonly build: Build;
  /** Browsers that follow the page. */
  readonly followers: number;
}

export type Labels = Readonly<Record<string, string>>;

export interface Value {
  readonly labels?: Labels;
  readonly value: number;
}

interface Described {
  readonly name: string;
  /** One sentence, also for the README; without double quotes, which one of the two formats does not bear. */
  readonly help: string;
  readonly labels?: readonly string[];
}

export interface NumberMetric extends Described {
  readonly type: 'gauge' | 'counter';
  /** A metric without labels may give its number alone; undefined where there is none yet. */
  read(observed: Observed): Iterable<Value> | number | undefined;
}

export interface HistogramMetric extends Described {
  readonly type: 'histogram';
  read(observed: Observed): Histogram | BucketsReading;
}

/** What one metric is called, what it means and where it comes from. */
export type Metric = NumberMetric | HistogramMetric;

export function yesOrNo(is: boolean): number {
  return is ? 1 : 0;
}

/** One series for each word, of which one is 1: which of them holds now. */
export function* oneOf(
  label: string,
  words: readonly string[],
  now: string,
  labels: Labels = {},
): Generator<Value> {
  for (const word of words) yield { labels: { ...labels, [label]: word }, value: yesOrNo(word === now) };
}
