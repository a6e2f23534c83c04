/** What a window aims at: shorter timers cost CPU and come late by a good part of themselves. */
const WINDOW_MS = 20;

/**
 * A strict, smooth rate: no window of one second ever sees more than `requestsPerSecond` starts, and they are
 * spread over it.
 *
 * Below 100 a second each start has its own window of 1000 / rate ms. From there on several share a window of 13 to
 * 20 ms; a whole number of windows fills a second, so the rate may fall short by up to 2 %, and never goes over. The
 * windows slide: the n-th start waits until the (n - size)-th is a window old.
 */
export class Pacer {
  readonly windowMs: number;
  /** The times of the last starts, as a ring; the oldest stands at `#oldest`. */
  readonly #starts: Float64Array;
  #oldest = 0;

  constructor(requestsPerSecond: number) {
    const size = Math.max(1, Math.floor((requestsPerSecond * WINDOW_MS) / 1000));
    this.windowMs = size === 1 ? 1000 / requestsPerSecond : 1000 / Math.floor(requestsPerSecond / size);
    this.#starts = new Float64Array(size).fill(Number.NEGATIVE_INFINITY);
  }

  /** When the next start is allowed, in the time that `take` was told. */
  freeAt(): number {
    return (this.#starts[this.#oldest] ?? 0) + this.windowMs;
  }

  /** Something starts. Only to be called at `freeAt()` or later. */
  take(now: number): void {
    this.#starts[this.#oldest] = now;
    this.#oldest = (this.#oldest + 1) % this.#starts.length;
  }
}
