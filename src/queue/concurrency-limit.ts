/** How fast the smoothed latency follows: about the last five answers. */
const FOLLOW = 0.2;
/** Latency counts as slow above this multiple of its smoothed minimum … */
const SLOW_FACTOR = 3;
/** … and this much over it, in ms, so that the noise of a near peer does not count. */
const SLOW_SLACK_MS = 100;
const CUT_SLOW = 0.7;
const CUT_REFUSED = 0.5;
/**
 * However slow a peer becomes, it gets two requests at a time: while one is answered, it works on
 * the other. Fewer only where it refuses.
 */
const LEAST_SLOW = 2;

/**
 * How many requests of a lane the peer bears at a time, from 1 to `max`.
 *
 * - *Rising*, at the start and after an outage: one more with each answer, from 1 up.
 * - *Steady*, from the first cut on: one more each time that all slots have been answered.
 * - A *cut*, to 0.7 (and not below two) for latency well above its smoothed minimum, to 0.5 for a
 *   refusal. Requests that were under way at a cut cause no further one: they say nothing about the
 *   new limit.
 *
 * With two requests at a time or fewer, latency is the peer's own. There, and only there, the
 * minimum is learned anew: bodies that grew a hundredfold cost one dip, not the speed of the day,
 * and a slow rise is never mistaken for the normal.
 */
export class ConcurrencyLimit {
  #limit = 1;
  #max = 1;
  #isRising = true;
  #cutAt = Number.NEGATIVE_INFINITY;
  /** The smoothed minimum of the latency, in ms. */
  #leastMs: number | undefined;
  /** The smoothed latency since the last cut, in ms. */
  #recentMs: number | undefined;

  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** Up to how many it may rise from now on. */
  riseTo(max: number): void {
    this.#max = max;
    this.#limit = Math.min(this.#limit, max);
  }

  /**
   * A request that started at `startedAt` was answered now; `isFull` says whether all slots were in
   * use.
   */
  answered(startedAt: number, now: number, isFull: boolean): void {
    if (this.#isSlow(now - startedAt)) this.#cut(CUT_SLOW, LEAST_SLOW, startedAt, now);
    else if (isFull)
      this.#limit = Math.min(this.#max, this.#limit + (this.#isRising ? 1 : 1 / this.#limit));
  }

  /** A request that started at `startedAt` was refused, or not answered at all. */
  refused(startedAt: number, now: number): void {
    this.#cut(CUT_REFUSED, 1, startedAt, now);
  }

  /** The peer was away: what it bears is found out from one request on. */
  restart(): void {
    this.#limit = 1;
    this.#isRising = true;
  }

  #isSlow(ms: number): boolean {
    const leastMs = this.#leastMs ?? ms;
    const isMinimum = ms < leastMs || this.limit <= LEAST_SLOW;
    this.#leastMs = isMinimum ? smoothed(leastMs, ms) : leastMs;
    this.#recentMs = smoothed(this.#recentMs ?? ms, ms);
    return this.#recentMs > this.#leastMs * SLOW_FACTOR + SLOW_SLACK_MS;
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
  return before + (ms - before) * FOLLOW;
}
