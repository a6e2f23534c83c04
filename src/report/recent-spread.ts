import { BUCKETS, bucketOf, type Counts, longerThan, percentiles } from './spread.js';
import type { Percentiles } from './time-to-search.js';

/** One stretch of time: when it began, and bucket and count in turns. */
export type KeptSlot = readonly [start: number, counts: readonly number[]];

interface Slot {
  start: number;
  readonly counts: Counts;
}

/**
 * How long things took in the last hour or day: durations in slots of time, of which the oldest is dropped whole. So the
 * hour is between 59 and 60 minutes. Only the buckets that something fell into take room.
 *
 * The clock of the wall is followed when it is set back, and what it passes when it is set forward is over.
 */
export class RecentSpread {
  readonly #slotMs: number;
  readonly #slots: number;
  readonly #total: Counts = new Uint32Array(BUCKETS);
  #count = 0;
  /** Undefined where it has to be computed anew. */
  #percentiles: Percentiles | undefined;
  /** Oldest first; bucket and count in turns. */
  readonly #closed: Slot[] = [];
  readonly #open = new Map<number, number>();
  #openStart = Number.NEGATIVE_INFINITY;

  constructor(slotMs: number, slots: number) {
    this.#slotMs = slotMs;
    this.#slots = slots;
  }

  add(ms: number, now: number): void {
    this.#moveOn(now);
    this.#count1(bucketOf(ms), 1);
  }

  count(now: number): number {
    this.#moveOn(now);
    return this.#count;
  }

  percentiles(now: number): Percentiles {
    this.#moveOn(now);
    this.#percentiles ??= percentiles(this.#total, this.#count);
    return this.#percentiles;
  }

  longerThan(ms: number, now: number): number {
    this.#moveOn(now);
    return longerThan(this.#total, ms);
  }

  kept(now: number): readonly KeptSlot[] {
    this.#moveOn(now);
    const open: KeptSlot = [this.#openStart, [...this.#open].flat()];
    return [...this.#closed.map(({ start, counts }): KeptSlot => [start, [...counts]]), open];
  }

  /** Takes up what an earlier run kept; into an empty one. */
  restore(slots: readonly KeptSlot[], now: number): void {
    for (const [start, counts] of slots) {
      if (start > now || start <= now - this.#slotMs * this.#slots) continue;
      this.#moveOn(start);
      for (let i = 0; i + 1 < counts.length; i += 2) {
        const [bucket = 0, count = 0] = counts.slice(i, i + 2);
        if (bucket >= 0 && bucket < BUCKETS) this.#count1(bucket, count);
      }
    }
    this.#moveOn(now);
  }

  #count1(bucket: number, count: number): void {
    this.#open.set(bucket, (this.#open.get(bucket) ?? 0) + count);
    this.#total[bucket] = (this.#total[bucket] ?? 0) + count;
    this.#count += count;
    this.#percentiles = undefined;
  }

  #moveOn(now: number): void {
    const start = Math.floor(now / this.#slotMs) * this.#slotMs;
    if (start === this.#openStart) return;
    if (start < this.#openStart) {
      // Else what lies in the future would never be over.
      const back = this.#openStart - start;
      for (const slot of this.#closed) slot.start -= back;
    } else if (this.#open.size > 0) {
      this.#closed.push({ start: this.#openStart, counts: Uint32Array.from([...this.#open].flat()) });
      this.#open.clear();
    }
    this.#openStart = start;
    const over = start - this.#slotMs * this.#slots;
    while (this.#closed[0] !== undefined && this.#closed[0].start <= over) this.#drop(this.#closed.shift());
  }

  #drop(slot: Slot | undefined): void {
    this.#percentiles = undefined;
    const counts = slot?.counts ?? [];
    for (let i = 0; i + 1 < counts.length; i += 2) {
      const [bucket = 0, count = 0] = [counts[i], counts[i + 1]];
      this.#total[bucket] = (this.#total[bucket] ?? 0) - count;
      this.#count -= count;
    }
  }
}
