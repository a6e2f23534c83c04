/** What the interval of a group aims at: shorter timers cost CPU, and come late by a good part of themselves. */
const GROUP_MS = 20;
/** A start that comes later than this after it could have is no late timer: there was nothing to start. */
const LATE_MS = 50;

/**
 * A strict and smooth rate: no window of one second sees more than `requestsPerSecond` starts (a fraction rounded up),
 * and they are spread over it.
 *
 * Starts go in *groups* at equal intervals: of one start below 100 a second, of more above, so that there are 50 to
 * 100 groups a second. A group that opens late does not put off those after it, so that late timers cost no rate, but
 * whatever happened, a group opens a second after the last start of the group that many groups before it.
 * A pacer that takes the place of another begins a second after the last start, so that a change of the rate is no loophole.
 * A whole number of groups fills a second, so the rate falls short by up to 2 % where it does not divide.
 */
export class Pacer {
  readonly #groupSize: number;
  readonly #intervalMs: number;
  readonly #spanMs: number;
  /** The last start of each group within the span, as a ring; the latest group stands at `#latest`. */
  readonly #lastStarts: Float64Array;
  #latest = 0;
  /** How many starts are left of the latest group. */
  #left = 0;
  /** When the next group may open, were it not for the span. */
  #due = Number.NEGATIVE_INFINITY;

  /** @param before one that this takes the place of: as if all starts of a second had been at its last one */
  constructor(requestsPerSecond: number, before?: Pacer) {
    this.#groupSize = Math.max(1, Math.floor((requestsPerSecond * GROUP_MS) / 1000));
    const groups = Math.max(1, Math.floor(requestsPerSecond / this.#groupSize));
    this.#intervalMs = 1000 / (this.#groupSize === 1 ? requestsPerSecond : groups);
    this.#spanMs = groups * this.#intervalMs;
    this.#lastStarts = new Float64Array(groups).fill(before?.lastStart ?? Number.NEGATIVE_INFINITY);
  }

  get lastStart(): number {
    return this.#lastStarts[this.#latest] ?? Number.NEGATIVE_INFINITY;
  }

  /** When the next start is allowed, in the time that `take` was told. */
  freeAt(): number {
    if (this.#left > 0) return Number.NEGATIVE_INFINITY;
    const spanAgo = this.#lastStarts[this.#next] ?? Number.NEGATIVE_INFINITY;
    return Math.max(this.#due, spanAgo + this.#spanMs);
  }

  /** Something starts. Only to be called at `freeAt()` or later. */
  take(now: number): void {
    if (this.#left === 0) {
      const opened = now - this.#due <= LATE_MS ? this.#due : now;
      this.#due = opened + this.#intervalMs;
      this.#latest = this.#next;
      this.#left = this.#groupSize;
    }
    this.#left -= 1;
    this.#lastStarts[this.#latest] = now;
  }

  get #next(): number {
    return (this.#latest + 1) % this.#lastStarts.length;
  }
}
