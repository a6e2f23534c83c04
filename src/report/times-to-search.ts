import type { Standing } from './alerts.js';
import { Durations, type KeptDurations, type TimeHistogram } from './durations.js';
import { CollectionNames } from './names.js';
import type { SteadyTime } from './steady-time.js';
import type { TimeToSearch } from './time-to-search.js';
import { Waiting } from './waiting.js';

/** What is known of each collection: what waits in it, and how long the others took. In steady time, but for what waits. */
export class TimesToSearch {
  readonly #names = new CollectionNames();
  readonly #durations = new Map<string, Durations>();
  readonly #waiting = new Waiting();
  readonly #time: SteadyTime;

  constructor(time: SteadyTime) {
    this.#time = time;
  }

  /** These are reported even before anything is in them, in this order. */
  configured(collections: Iterable<string>): void {
    for (const collection of collections) this.#durationsOf(collection);
  }

  /** @param restSince by the clock on the wall, as the record tells it */
  enters(collection: string, restSince: number): void {
    this.#waiting.enters(this.#names.of(collection), restSince);
  }

  leaves(collection: string, restSince: number): void {
    this.#waiting.leaves(this.#names.of(collection), restSince);
  }

  nothingWaits(): void {
    this.#waiting.clear();
  }

  took(collection: string, ms: number, now: number): void {
    this.#durationsOf(collection).add(ms, now);
  }

  rows(now: number): TimeToSearch[] {
    return this.#all().map((collection) => {
      const { hour, day } = this.#durationsOf(collection);
      return {
        collection,
        hour: hour.percentiles(now),
        day: day.percentiles(now),
        ...this.#waitingIn(collection, now),
      };
    });
  }

  standings(limitMs: number, now: number): Standing[] {
    return this.#all().map((collection) => {
      const { hour } = this.#durationsOf(collection);
      const { count, p95Ms } = hour.percentiles(now);
      return {
        collection,
        count,
        ...(p95Ms === undefined ? {} : { p95Ms }),
        longer: hour.longerThan(limitMs, now),
        ...this.#waitingIn(collection, now),
      };
    });
  }

  histograms(): TimeHistogram[] {
    return [...this.#durations].map(([collection, durations]) => durations.histogram(collection));
  }

  /** By the clock on the wall. */
  kept(now: number): Record<string, KeptDurations> {
    const kept: Record<string, KeptDurations> = {};
    for (const [collection, durations] of this.#durations)
      if (durations.day.count(now) > 0) kept[collection] = durations.kept(now, this.#time);
    return kept;
  }

  restore(kept: Readonly<Record<string, KeptDurations>>, now: number): void {
    for (const [collection, durations] of Object.entries(kept))
      this.#durationsOf(collection).restore(durations, now);
  }

  #all(): string[] {
    for (const collection of this.#waiting.collections()) this.#durationsOf(collection);
    return [...this.#durations.keys()];
  }

  #waitingIn(collection: string, now: number): { readonly waiting: number; readonly oldestSince?: number } {
    const waiting = this.#waiting.count(collection);
    const oldestSince = this.#waiting.oldestSince(collection, this.#time);
    return oldestSince === undefined ? { waiting } : { waiting, oldestSince: Math.min(now, oldestSince) };
  }

  #durationsOf(collection: string): Durations {
    const name = this.#names.of(collection);
    let durations = this.#durations.get(name);
    if (durations === undefined) {
      durations = new Durations();
      this.#durations.set(name, durations);
    }
    return durations;
  }
}
