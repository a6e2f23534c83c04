/** Smoothing factor of the latency: it follows about the last five answers. */
const SMOOTHING = 0.2;
/** Latency is slow above this multiple of its smoothed minimum … */
const SLOW_FACTOR = 3;
/** … plus this many ms, so that the noise of a nearby peer does not count. */
const SLOW_SLACK_MS = 100;
const SLOW_CUT = 0.7;
const REFUSAL_CUT = 0.5;
/**
 * Lowest limit for a slow peer: it works on the second request while the first is answered. Only
 * refusals reduce the limit to one.
 */
const MIN_WHEN_SLOW = 2;

/**
 * Adaptive concurrency limit: how many requests of a lane the peer can handle at a time, from 1 to
 * `max`.
 *
 * - *Rising*, at the start and after an outage (`restart`): from 1 up, by one with each answer.
 * - *Steady*, from the first cut on: by one each time that all slots have been answered.
 *
 * The limit rises only while all slots are in use. It is *cut* to 0.7 (not below two) when latency
 * is well above its smoothed minimum, and to 0.5 for a refusal. Requests that were running at a cut
 * cause no further cut, because they say nothing about the new limit.
 *
 * At two requests at a time or fewer, latency is the peer's own. Only there may the learned minimum
 * rise. Bodies that grow a hundredfold then cost one dip and not the speed of the day, and a slow
 * rise of latency is not taken for normal.
 */
export class ConcurrencyLimit {
  #limit = 1;
  #max = 1;
  #isRising = true;
  #cutAt = Number.NEGATIVE_INFINITY;
  /** Smoothed minimum of the latency, in ms. */
  #minimumMs: number | undefined;
  /** Smoothed latency since the last cut, in ms. */
  #recentMs: number | undefined;

  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** Sets the maximum, to which the limit may rise. */
  setMax(max: number): void {
    this.#max = max;
    this.#limit = Math.min(this.#limit, max);
  }

  /**
   * Called when a request that started at `startedAt` was answered. `isFull` says whether all slots
   * were in use.
   */
  answered(startedAt: number, now: number, isFull: boolean): void {
    if (this.#isSlow(now - startedAt)) this.#cut(SLOW_CUT, MIN_WHEN_SLOW, startedAt, now);
    else if (isFull)
      this.#limit = Math.min(this.#max, this.#limit + (this.#isRising ? 1 : 1 / this.#limit));
  }

  /** Called when a request that started at `startedAt` was refused, or not answered at all. */
  refused(startedAt: number, now: number): void {
    this.#cut(REFUSAL_CUT, 1, startedAt, now);
  }

  /** Called after an outage. The limit rises from one again. */
  restart(): void {
    this.#limit = 1;
    this.#isRising = true;
  }

  #isSlow(ms: number): boolean {
    const minimumMs = this.#minimumMs ?? ms;
    const isMinimum = ms < minimumMs || this.limit <= MIN_WHEN_SLOW;
    this.#minimumMs = isMinimum ? smoothed(minimumMs, ms) : minimumMs;
    this.#recentMs = smoothed(this.#recentMs ?? ms, ms);
    return this.#recentMs > this.#minimumMs * SLOW_FACTOR + SLOW_SLACK_MS;
  }

  #cut(factor: number, least: number, startedAt: number, now: number): void {
    if (startedAt < this.#cutAt) return;
    this.#limit = Math.min(this.#limit, Math.max(least, this.#limit * factor));
    this.#isRising = false;
    this.#cutAt = now;
    this.#recentMs = undefined;
  }
}

function smoothed(before: number, ms: number): number {
  return before + (ms - before) * SMOOTHING;
}
