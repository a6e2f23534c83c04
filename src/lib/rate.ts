/**
 * So far back is looked, in ms: a rate is that of now, and still calm where things come in bursts.
 */
const WINDOW_MS = 30_000;
/** There is one mark in so many ms, the last, so that their number is bounded. */
const STEP_MS = 250;
/** Before this a rate would be a guess, in ms. */
const LEAST_MS = 5_000;

/**
 * How fast a count grows, over the last half minute. The count is noted at the start, and when it
 * grows or all the time.
 *
 * The rate counts from the first growth after half a minute of none, so that the time before does
 * not make it slower. Where nothing grows for half a minute, there is no rate.
 */
export class Rate {
  #marks: { readonly at: number; readonly count: number }[] = [];
  #grewAt = Number.NEGATIVE_INFINITY;

  /** @param at in ms of a clock that never goes back */
  note(at: number, count: number): void {
    const before = this.#marks.at(-1);
    if (at - this.#grewAt >= WINDOW_MS) this.#marks = [];
    if (before !== undefined && count !== before.count) this.#grewAt = at;
    const last = this.#marks.at(-1);
    if (last !== undefined && Math.floor(last.at / STEP_MS) === Math.floor(at / STEP_MS))
      this.#marks.pop();
    this.#marks.push({ at, count });
    this.#dropOld(at);
  }

  /** Per second; undefined while there is too little to tell it from, and while nothing grows. */
  perSecond(at: number, count: number): number | undefined {
    this.#dropOld(at);
    const [first] = this.#marks;
    if (first === undefined || at - first.at < LEAST_MS || count <= first.count) return undefined;
    return ((count - first.count) * 1_000) / (at - first.at);
  }

  /** Forgets all growth until now: the rate is that from the next growth on. */
  restart(at: number, count: number): void {
    this.#marks = [{ at, count }];
    this.#grewAt = Number.NEGATIVE_INFINITY;
  }

  /** One mark from before the window stays, for the count grew from there. */
  #dropOld(at: number): void {
    const inWindow = this.#marks.findIndex((mark) => at - mark.at < WINDOW_MS);
    const begin = inWindow === -1 ? this.#marks.length - 1 : inWindow - 1;
    if (begin > 0) this.#marks.splice(0, begin);
  }
}
