import type { Percentiles } from './time-to-search.js';

/** Each bucket ends so many times further than the one before. */
const GROWTH = 1.08;
const LOG_GROWTH = Math.log(GROWTH);
/** The last one holds everything from 34 years on. */
export const BUCKETS = 360;
/** What is said of a duration is at most so much more or less than it was, as a part of it; or half a millisecond. */
export const RELATIVE_ERROR = (GROWTH - 1) / (GROWTH + 1);

/** Durations in logarithmic buckets: how many fell into each. */
export type Counts = Uint32Array<ArrayBuffer>;

/** The bucket of a duration in ms; a clock that was set back makes it negative, which counts as none. */
export function bucketOf(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(BUCKETS - 1, Math.ceil(Math.log(ms) / LOG_GROWTH));
}

/** What a duration in this bucket is taken for, in ms. */
export function durationOf(bucket: number): number {
  return bucket === 0 ? 0.5 : (2 * GROWTH ** bucket) / (GROWTH + 1);
}

/** The durations that these parts of them (ascending) did not exceed, by nearest rank, in ms. */
function quantiles(counts: Counts, count: number, parts: readonly number[]): number[] {
  const told: number[] = [];
  let seen = 0;
  let bucket = -1;
  for (const part of parts) {
    const rank = Math.max(1, Math.ceil(part * count));
    while (seen < rank && bucket < BUCKETS - 1) {
      bucket += 1;
      seen += counts[bucket] ?? 0;
    }
    told.push(Math.round(durationOf(bucket)));
  }
  return told;
}

/** How many took longer than `ms`. */
export function longerThan(counts: Counts, ms: number): number {
  let sum = 0;
  for (let bucket = BUCKETS - 1; bucket >= 0 && Math.round(durationOf(bucket)) > ms; bucket -= 1)
    sum += counts[bucket] ?? 0;
  return sum;
}

export function percentiles(counts: Counts, count: number): Percentiles {
  if (count === 0) return { count };
  const [p50Ms = 0, p95Ms = 0, p99Ms = 0] = quantiles(counts, count, [0.5, 0.95, 0.99]);
  return { count, p50Ms, p95Ms, p99Ms };
}
