/** Items are told apart by when they were at rest only as finely as this, in ms. */
const STEP_MS = 5_000;

/**
 * How many items of a collection wait, and since when the first of them does. It holds a number for each step of time in
 * which something began to wait, and not the items.
 */
export class WaitingItems {
  readonly #steps = new Map<number, number>();
  #count = 0;
  /** Undefined where it has to be looked for. */
  #first: number | undefined;
  /** No step was later than this one since nothing waited. */
  #last = 0;

  get count(): number {
    return this.#count;
  }

  add(restSince: number): void {
    const step = Math.floor(restSince / STEP_MS);
    this.#steps.set(step, (this.#steps.get(step) ?? 0) + 1);
    this.#count += 1;
    this.#last = this.#count === 1 ? step : Math.max(this.#last, step);
    if (this.#count === 1 || (this.#first !== undefined && step < this.#first)) this.#first = step;
  }

  remove(restSince: number): void {
    const step = Math.floor(restSince / STEP_MS);
    const left = (this.#steps.get(step) ?? 0) - 1;
    this.#count -= 1;
    if (left > 0) {
      this.#steps.set(step, left);
      return;
    }
    this.#steps.delete(step);
    if (this.#first === step) this.#first = undefined;
  }

  clear(): void {
    this.#steps.clear();
    this.#count = 0;
  }

  /**
   * About when the one that has waited longest was at rest: up to 5 s later than it was. One that lies in the future was
   * written before the clock was set back, and counts since `startedAt`.
   */
  oldestSince(now: number, startedAt: number): number | undefined {
    if (this.#count === 0) return undefined;
    this.#first ??= [...this.#steps.keys()].reduce((first, step) => Math.min(first, step));
    const oldest = Math.min(now, (this.#first + 1) * STEP_MS);
    return this.#last * STEP_MS > now ? Math.min(oldest, startedAt) : oldest;
  }
}
