import type { Clock } from './clock.js';

/** Two clocks that run beside each other come apart a little; one that was set, by more than this, in ms. */
export const SET_MS = 2_000;

/**
 * A moment that is over, dated as the clock on the wall has it now: set since then, it would tell another duration than
 * really passed. The machine's sleep is part of that. While nobody sets the clock the date stays the same to the millisecond.
 */
export class Moment {
  readonly #clock: Clock;
  readonly #boottime: number;
  #at: number;
  /** How far the wall was ahead of the monotonic clock when it was dated. */
  #ahead: number;

  /** @param agoMs how long ago it was */
  constructor(clock: Clock, agoMs = 0) {
    this.#clock = clock;
    this.#boottime = clock.boottime() - agoMs;
    this.#at = Math.round(clock.now() - agoMs);
    this.#ahead = clock.now() - clock.monotonic();
  }

  /** In ms since the epoch. */
  get at(): number {
    const clock = this.#clock;
    const ahead = clock.now() - clock.monotonic();
    if (Math.abs(ahead - this.#ahead) < SET_MS) return this.#at;
    this.#ahead = ahead;
    const at = Math.round(clock.now() - (clock.boottime() - this.#boottime));
    // It only slept.
    if (Math.abs(at - this.#at) >= SET_MS) this.#at = at;
    return this.#at;
  }
}
