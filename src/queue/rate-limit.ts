/** From this rate on there is no limit. */
const UNLIMITED_RATE = 10_000;
/**
 * Above this rate the starts of a lane come in groups, so many groups a second: timers fire a
 * millisecond late, and with one start a timer a rate of 1,000 would become 500.
 */
const GROUPS_PER_SECOND = 20;
/**
 * The clock tells whole milliseconds: two moments may be closer to each other than it says by this,
 * in ms.
 */
const ROUNDED_MS = 1;

/**
 * Says from when on a lane may start its next request, so that its rate is kept.
 *
 * Two windows slide over the starts. In a second there are never more than the rate allows. In a
 * twentieth of a second there is never more than one group, which makes the starts even. A time
 * without starts is not made up for.
 *
 * All times are by one steady clock: a wall clock that is set changes nothing.
 */
export class RateLimit {
  /** When the last requests started, oldest first: at least as many as a second allows. */
  readonly #starts: number[] = [];
  #perSecond = Number.POSITIVE_INFINITY;

  /** From now on this rate holds. Earlier starts still count. */
  limit(perSecond: number): void {
    this.#perSecond = perSecond;
  }

  /** When the next request may start, in ms; in the past where it may start at once. */
  get nextAt(): number {
    if (!this.#isLimited) return Number.NEGATIVE_INFINITY;
    return Math.max(this.#endOfWindow(this.#group), this.#endOfWindow(this.#second) + ROUNDED_MS);
  }

  started(now: number): void {
    if (!this.#isLimited) return;
    this.#starts.push(now);
    const superfluous = this.#starts.length - this.#second;
    // Not one at a time, which would move all others each time.
    if (superfluous > this.#second) this.#starts.splice(0, superfluous);
  }

  get #isLimited(): boolean {
    return this.#perSecond < UNLIMITED_RATE;
  }

  /** How many may start in a second; one in a longer time where the rate is lower than that. */
  get #second(): number {
    return Math.max(1, Math.floor(this.#perSecond));
  }

  get #group(): number {
    return Math.max(1, Math.floor(this.#perSecond / GROUPS_PER_SECOND));
  }

  /** When the window that allows so many starts is open for another one. */
  #endOfWindow(starts: number): number {
    const first = this.#starts.at(-starts);
    return first === undefined
      ? Number.NEGATIVE_INFINITY
      : first + (1_000 * starts) / this.#perSecond;
  }
}
