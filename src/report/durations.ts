import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';

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

export function percentilesOf(histogram: Histogram): Percentiles {
  const { totalCount: count } = histogram;
  if (count === 0) return { count };
  const [p50Ms = 0, p95Ms = 0, p99Ms = 0] = [0.5, 0.95, 0.99].map((part) =>
    valueAt(histogram, Math.ceil(part * count)),
  );
  return { count, p50Ms, p95Ms, p99Ms };
}

/** The value that so many do not exceed. */
function valueAt(histogram: Histogram, rank: number): number {
  return histogram.getValueAtPercentile((100 * rank) / histogram.totalCount);
}

/** How many took longer than `ms`: the library tells which value stands at a rank, so the rank is searched for. */
export function countAbove(histogram: Histogram, ms: number): number {
  const { totalCount } = histogram;
  let [atMost, more] = [0, totalCount + 1];
  while (more - atMost > 1) {
    const rank = Math.floor((atMost + more) / 2);
    if (valueAt(histogram, rank) <= ms) atMost = rank;
    else more = rank;
  }
  return totalCount - atMost;
}

/**
 * How long things took in the last hour and the last day.
 *
 * Durations are counted in slots of 5 minutes, of which the oldest is dropped whole: the hour is between 55 and 60 minutes.
 * The sums of both windows are kept as histograms; a slot that is over is kept encoded, in some hundred bytes.
 */
export class RecentDurations {
  readonly #hour = newHistogram();
  readonly #day = newHistogram();
  readonly #open = newHistogram();
  #openStart = Number.NEGATIVE_INFINITY;
  /** Oldest first. */
  #closed: { readonly start: number; readonly text: string; isInHour: boolean }[] = [];

  add(ms: number, now: number): void {
    this.#moveOn(now);
    for (const histogram of [this.#open, this.#hour, this.#day]) histogram.recordValue(Math.round(ms));
  }

  hour(now: number): Histogram {
    this.#moveOn(now);
    return this.#hour;
  }

  day(now: number): Histogram {
    this.#moveOn(now);
    return this.#day;
  }

  slots(now: number): readonly DurationSlot[] {
    this.#moveOn(now);
    const closed = this.#closed.map(({ start, text }): DurationSlot => [start, text]);
    if (this.#open.totalCount === 0) return closed;
    return [...closed, [this.#openStart, encodeIntoCompressedBase64(this.#open)]];
  }

  /** Takes up what an earlier run kept; what lies in the future or cannot be read is dropped. */
  restore(slots: readonly DurationSlot[], now: number): void {
    for (const [start, text] of slots) {
      if (start > now || start <= now - DAY_MS) continue;
      const isInHour = start > now - HOUR_MS;
      try {
        const histogram = decodeFromCompressedBase64(text, 32);
        this.#day.add(histogram);
        if (isInHour) this.#hour.add(histogram);
      } catch {
        continue;
      }
      this.#closed.push({ start, text, isInHour });
    }
  }

  #moveOn(now: number): void {
    const start = Math.floor(now / SLOT_MS) * SLOT_MS;
    if (start <= this.#openStart) return;
    if (this.#open.totalCount > 0) {
      const text = encodeIntoCompressedBase64(this.#open);
      this.#closed.push({ start: this.#openStart, text, isInHour: true });
      this.#open.reset();
    }
    this.#openStart = start;
    if ((this.#closed.at(-1)?.start ?? 0) <= start - DAY_MS) {
      this.#closed = [];
      this.#hour.reset();
      this.#day.reset();
      return;
    }
    for (const slot of this.#closed) {
      if (!slot.isInHour || slot.start > start - HOUR_MS) continue;
      this.#hour.subtract(decodeFromCompressedBase64(slot.text, 32));
      slot.isInHour = false;
    }
    for (
      let [oldest] = this.#closed;
      oldest !== undefined && oldest.start <= start - DAY_MS;
      [oldest] = this.#closed
    ) {
      this.#day.subtract(decodeFromCompressedBase64(oldest.text, 32));
      this.#closed.shift();
    }
  }
}
