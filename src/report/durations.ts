import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';
import type { Item } from '../state/entry.js';
import { beginningOf } from '../state/transitions.js';

/** How long it took; the percentiles are absent while nothing was counted in that time. In ms, exact to 1 %. */
export interface Percentiles {
  readonly count: number;
  readonly p50Ms?: number;
  readonly p95Ms?: number;
  readonly p99Ms?: number;
}

/** The durations that ended in one slot: when it began, in ms since the epoch, and an encoded histogram. */
export type DurationSlot = readonly [start: number, histogram: string];

const SLOT_MS = 300_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

export function newHistogram(): Histogram {
  return build({
    bitBucketSize: 32,
    highestTrackableValue: 2 ** 36,
    numberOfSignificantValueDigits: 2,
    useWebAssembly: false,
  });
}

/** A percentile is the smallest value that so many of a hundred do not exceed. */
export function percentilesOf(histogram: Histogram): Percentiles {
  const { totalCount: count } = histogram;
  if (count === 0) return { count };
  const at = (part: number) => histogram.getValueAtPercentile((100 * Math.ceil(part * count)) / count);
  return { count, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) };
}

/**
 * How long things took in the last hour and the last day.
 *
 * Durations are counted in slots of 5 minutes, of which the oldest is dropped whole: the hour is between 55 and 60 minutes.
 * The sums of both windows are kept as histograms; a slot that is over is kept encoded, in some hundred bytes.
 */
export class RecentDurations {
  readonly #sums = { hour: newHistogram(), day: newHistogram() };
  readonly #windows = [
    { lastsMs: HOUR_MS, sum: this.#sums.hour },
    { lastsMs: DAY_MS, sum: this.#sums.day },
  ];
  readonly #open = newHistogram();
  #openStart = Number.NEGATIVE_INFINITY;
  /** Those that are over, oldest first. */
  #slots: DurationSlot[] = [];

  add(ms: number, now: number): void {
    for (const histogram of [...Object.values(this.at(now)), this.#open])
      histogram.recordValue(Math.round(ms));
  }

  at(now: number): { readonly hour: Histogram; readonly day: Histogram } {
    const [before, start] = [this.#openStart, Math.floor(now / SLOT_MS) * SLOT_MS];
    if (start <= before) return this.#sums;
    this.#openStart = start;
    if (this.#open.totalCount > 0) this.#slots.push([before, encodeIntoCompressedBase64(this.#open)]);
    this.#open.reset();
    for (const { lastsMs, sum } of this.#windows)
      for (const [at, text] of this.#slots)
        if (at > before - lastsMs && at <= start - lastsMs)
          sum.subtract(decodeFromCompressedBase64(text, 32));
    this.#slots = this.#slots.filter(([at]) => at > start - DAY_MS);
    return this.#sums;
  }

  slots(now: number): readonly DurationSlot[] {
    this.at(now);
    if (this.#open.totalCount === 0) return this.#slots;
    return [...this.#slots, [this.#openStart, encodeIntoCompressedBase64(this.#open)]];
  }

  /** Takes up what an earlier run kept; what lies in the future or cannot be read is dropped. */
  restore(slots: readonly DurationSlot[], now: number): void {
    this.at(now);
    for (const slot of slots) {
      const [start, text] = slot;
      if (start > now || start <= this.#openStart - DAY_MS) continue;
      try {
        const histogram = decodeFromCompressedBase64(text, 32);
        for (const { lastsMs, sum } of this.#windows)
          if (start > this.#openStart - lastsMs) sum.add(histogram);
        this.#slots.push(slot);
      } catch {}
    }
  }
}

/** Items that wait are told apart by when they were at rest only as finely as this, in ms. */
const STEP_MS = 5_000;

/** How many items of a collection wait, and since when: a number for each step of time, and not the items. */
export class WaitingItems {
  readonly #steps = new Map<number, number>();

  /** @param by 1 for one more that was at rest then, -1 for one that waits no longer */
  add(restSince: number, by: 1 | -1): void {
    const step = Math.floor(restSince / STEP_MS);
    const count = (this.#steps.get(step) ?? 0) + by;
    if (count === 0) this.#steps.delete(step);
    else this.#steps.set(step, count);
  }

  /** `oldestSince` is about when the one that has waited longest was at rest: up to 5 s later than it was. */
  read(): { readonly waiting: number; readonly oldestSince?: number } {
    let [waiting, first] = [0, Number.POSITIVE_INFINITY];
    for (const [step, count] of this.#steps) {
      waiting += count;
      first = Math.min(first, step + 1);
    }
    return waiting === 0 ? { waiting } : { waiting, oldestSince: first * STEP_MS };
  }
}

/**
 * Since when a file has been *at rest* in the version that its item is about, in ms since the epoch: since when the present work on
 * it counts. It follows from the record alone, so that it is the same after a restart.
 */
export function atRestSince({ history, since }: Item): number {
  return history[Math.max(0, beginningOf(history))]?.at ?? since;
}
