/** So far back is looked, in ms: a rate is that of now, and still calm where things come in bursts. */
const WINDOW_MS = 15_000;
/** Marks are at least so far apart, in ms, so that their number is bounded. */
const STEP_MS = 250;
/** Before this a rate would be a guess, in ms. */
const LEAST_MS = 1_000;

interface Mark {
  readonly at: number;
  readonly count: number;
}

/** How fast a count grows, over the last seconds. */
export class Rate {
  readonly #marks: Mark[] = [];

  /** @param at in ms of a clock that never goes back */
  note(at: number, count: number): void {
    const last = this.#marks.at(-1);
    if (last !== undefined && at - last.at < STEP_MS) return;
    this.#marks.push({ at, count });
    // One mark from before the window stays, for the count grew from there.
    while (this.#marks.length > 2 && at - (this.#marks[1]?.at ?? at) >= WINDOW_MS) this.#marks.shift();
  }

  /** Per second; undefined while there is too little to tell it from. */
  perSecond(at: number, count: number): number | undefined {
    const first = this.#marks[0];
    if (first === undefined || at - first.at < LEAST_MS) return undefined;
    return Math.max(0, ((count - first.count) * 1000) / (at - first.at));
  }
}
