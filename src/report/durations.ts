import { type KeptSlot, RecentSpread } from './recent-spread.js';
import type { SteadyTime } from './steady-time.js';

/** The upper ends of the buckets that monitoring reads, in ms: from half a second to a day. */
export const HISTOGRAM_ENDS_MS: readonly number[] = [
  500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
  10_800_000, 21_600_000, 43_200_000, 86_400_000,
];

/** How long the files of one collection took since the daemon began, as monitoring counts. */
export interface TimeHistogram {
  readonly collection: string;
  /** How many took at most so long, for each of `HISTOGRAM_ENDS_MS`. */
  readonly upTo: readonly number[];
  readonly sumMs: number;
  readonly count: number;
}

/** The two spreads of one collection, as they are kept. */
export interface KeptDurations {
  readonly hour: readonly KeptSlot[];
  readonly day: readonly KeptSlot[];
}

/** How long the files of one collection took: in the last hour, in the last day, and since the daemon began. */
export class Durations {
  readonly hour = new RecentSpread(60_000, 60);
  readonly day = new RecentSpread(600_000, 144);
  readonly #buckets = HISTOGRAM_ENDS_MS.map(() => 0);
  #sumMs = 0;
  #count = 0;

  add(ms: number, now: number): void {
    this.hour.add(ms, now);
    this.day.add(ms, now);
    this.#sumMs += ms;
    this.#count += 1;
    const bucket = HISTOGRAM_ENDS_MS.findIndex((end) => ms <= end);
    if (bucket >= 0) this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
  }

  histogram(collection: string): TimeHistogram {
    let sum = 0;
    const upTo = this.#buckets.map((count) => {
      sum += count;
      return sum;
    });
    return { collection, upTo, sumMs: this.#sumMs, count: this.#count };
  }

  kept(now: number, time: Pick<SteadyTime, 'dated'>): KeptDurations {
    const dated = ([start, counts]: KeptSlot): KeptSlot => [time.dated(start), counts];
    return { hour: this.hour.kept(now).map(dated), day: this.day.kept(now).map(dated) };
  }

  restore({ hour, day }: KeptDurations, now: number): void {
    this.hour.restore(hour, now);
    this.day.restore(day, now);
  }
}
