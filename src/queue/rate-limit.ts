/** Rates from this one on are unlimited. In requests per second. */
const UNLIMITED_RATE = 10_000;
/**
 * Above this rate, requests start in groups: this many groups per second. Timers fire a millisecond
 * late, so one start per timer would turn a rate of 1,000 into 500.
 */
const GROUPS_PER_SECOND = 20;
/**
 * The clock counts whole milliseconds, so two times may be closer than it shows by this much, in
 * ms.
 */
const CLOCK_ROUNDING_MS = 1;

/**
 * Rate limiter of a lane: two sliding windows over the starts.
 *
 * A window of one second never has more starts than the rate allows. A window of a twentieth of a
 * second never has more than one group, which spreads the starts evenly. Idle time is not made up
 * for.
 *
 * All times come from one monotonic clock, so setting the wall clock changes nothing.
 */
export class RateLimit {
  /** Times of the latest starts, oldest first: at least as many as one second allows. */
  readonly #starts: number[] = [];
  #perSecond = Number.POSITIVE_INFINITY;

  /** Sets the rate, in requests per second. Earlier starts still count. */
  limit(perSecond: number): void {
    this.#perSecond = perSecond;
  }

  /** Earliest start of the next request, in ms; in the past if it may start at once. */
  get nextAt(): number {
    if (!this.#isLimited) return Number.NEGATIVE_INFINITY;
    return Math.max(
      this.#endOfWindow(this.#groupStarts),
      this.#endOfWindow(this.#windowStarts) + CLOCK_ROUNDING_MS,
    );
  }

  started(now: number): void {
    if (!this.#isLimited) return;
    this.#starts.push(now);
    const excess = this.#starts.length - this.#windowStarts;
    // Removed in bulk: removing one at a time would move all others each time.
    if (excess > this.#windowStarts) this.#starts.splice(0, excess);
  }

  get #isLimited(): boolean {
    return this.#perSecond < UNLIMITED_RATE;
  }

  /** Starts per second. At a rate below 1, it is one start in a longer window. */
  get #windowStarts(): number {
    return Math.max(1, Math.floor(this.#perSecond));
  }

  get #groupStarts(): number {
    return Math.max(1, Math.floor(this.#perSecond / GROUPS_PER_SECOND));
  }

  /** Returns when a window with this many starts has room for another one. */
  #endOfWindow(starts: number): number {
    const first = this.#starts.at(-starts);
    return first === undefined
      ? Number.NEGATIVE_INFINITY
      : first + (1_000 * starts) / this.#perSecond;
  }
}
