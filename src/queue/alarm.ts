import type { Clock, Timer } from '../lib/clock.js';

/** Timers bear no more than 24 days. */
const LONGEST_MS = 3_600_000;

/** Wakes the door at the first moment at which time alone lets something start. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #set: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at this time of the monotonic clock, if not before; infinity for never. */
  setFor(at: number): void {
    if (at === Number.POSITIVE_INFINITY || (this.#set !== undefined && this.#set.at <= at)) return;
    this.#set?.timer.cancel();
    const ms = Math.min(Math.max(0, Math.ceil(at - this.#clock.monotonic())), LONGEST_MS);
    const timer = this.#clock.after(ms, () => {
      this.#set = undefined;
      this.#ring();
    });
    this.#set = { at, timer };
  }

  cancel(): void {
    this.#set?.timer.cancel();
  }
}
