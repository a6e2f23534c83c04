import { BUCKETS, bucketOf, type Counts, percentiles } from './spread.js';
import { SAMPLE_MS, type Sample } from './time-to-search.js';

const HOUR_MS = 3_600_000;
/** The present speed is that of so long, in ms. */
const SPEED_MS = 60_000;

/** What happened in each slot of the last hour. What outlived a restart leaves a gap between. */
export class Samples {
  readonly #samples: Sample[] = [];
  readonly #listeners = new Set<(sample: Sample) => void>();
  readonly #spread: Counts = new Uint32Array(BUCKETS);
  #confirmed = 0;
  #accepted = 0;

  /** Oldest first. */
  list(): readonly Sample[] {
    return this.#samples;
  }

  /** Calls `listener` with each new sample; returns how to stop that. */
  onSample(listener: (sample: Sample) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  restore(samples: readonly Sample[], now: number): void {
    this.#samples.push(...samples.filter(({ at }) => at <= now));
    this.#forget(now);
  }

  accepted(): void {
    this.#accepted += 1;
  }

  confirmed(tookMs: number): void {
    this.#confirmed += 1;
    const bucket = bucketOf(tookMs);
    this.#spread[bucket] = (this.#spread[bucket] ?? 0) + 1;
  }

  /** Ends the present slot. */
  take(waiting: number, now: number): void {
    const [confirmed, accepted] = [this.#confirmed, this.#accepted];
    const { p50Ms, p95Ms } = percentiles(this.#spread, confirmed);
    const spread = p50Ms === undefined || p95Ms === undefined ? {} : { p50Ms, p95Ms };
    const sample: Sample = { at: now, confirmed, accepted, waiting, ...spread };
    this.#confirmed = 0;
    this.#accepted = 0;
    this.#spread.fill(0);
    this.#samples.push(sample);
    this.#forget(now);
    for (const listener of this.#listeners) listener(sample);
  }

  confirmedPerSecond(now: number): number {
    const last = this.#samples.filter(({ at }) => at > now - SPEED_MS);
    if (last.length === 0) return 0;
    return (last.reduce((sum, { confirmed }) => sum + confirmed, 0) * 1000) / (last.length * SAMPLE_MS);
  }

  /** Also what lies in the future, because the clock was set back: it would stay for ever. */
  #forget(now: number): void {
    const kept = this.#samples.filter(({ at }) => at > now - HOUR_MS && at <= now);
    if (kept.length < this.#samples.length) this.#samples.splice(0, this.#samples.length, ...kept);
  }
}
