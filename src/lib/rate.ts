/** Half a minute is short enough to be current, and long enough to smooth bursts. */
const USUAL_WINDOW_MS = 30_000;
/** The most marks in a period. */
const MAX_MARKS = 120;
/** The least period of a rate, in ms. A shorter one would be a guess. */
const LEAST_MS = 5_000;

/**
 * Measures the growth of a count over a period that ends now. The caller notes the count at the
 * start, and whenever it grows or at intervals.
 *
 * After a period without growth there is no rate. The next one counts from the next growth on, so
 * that the time before does not lower it.
 */
export class Rate {
  #marks: { readonly at: number; readonly count: number }[] = [];
  #grewAt = Number.NEGATIVE_INFINITY;

  /** @param windowMs the period, in ms */
  constructor(private readonly windowMs = USUAL_WINDOW_MS) {}

  /** @param at ms of a clock that never goes back */
  note(at: number, count: number): void {
    const before = this.#marks.at(-1);
    if (at - this.#grewAt >= this.windowMs) this.#marks = [];
    if (before !== undefined && count !== before.count) this.#grewAt = at;
    const last = this.#marks.at(-1);
    const stepMs = this.windowMs / MAX_MARKS;
    if (last !== undefined && Math.floor(last.at / stepMs) === Math.floor(at / stepMs))
      this.#marks.pop();
    this.#marks.push({ at, count });
    this.#dropOld(at);
  }

  /** Returns the growth per second; undefined if the period is too short or nothing grows. */
  perSecond(at: number, count: number): number | undefined {
    this.#dropOld(at);
    const [first] = this.#marks;
    if (first === undefined || at - first.at < LEAST_MS || count <= first.count) return undefined;
    return ((count - first.count) * 1_000) / (at - first.at);
  }

  /** Starts anew: the rate counts from the next growth on. */
  restart(at: number, count: number): void {
    this.#marks = [{ at, count }];
    this.#grewAt = Number.NEGATIVE_INFINITY;
  }

  /** Drops old marks, except one before the period: the count grew from there. */
  #dropOld(at: number): void {
    const inWindow = this.#marks.findIndex((mark) => at - mark.at < this.windowMs);
    const begin = inWindow === -1 ? this.#marks.length - 1 : inWindow - 1;
    if (begin > 0) this.#marks.splice(0, begin);
  }
}
