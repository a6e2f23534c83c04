/** Counts of values by size, as monitoring reads them. */
export interface BucketsReading {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  /** For each bound, how many values were at most that. */
  readonly atMost: readonly number[];
  readonly count: number;
  readonly sum: number;
}

/** Counts values by size; what it takes does not grow with how many. */
export class Buckets {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  add(value: number): void {
    this.#count += 1;
    this.#sum += value;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at !== -1) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  read(): BucketsReading {
    let sum = 0;
    const atMost = this.#counts.map((count) => {
      sum += count;
      return sum;
    });
    return { bounds: this.#bounds, atMost, count: this.#count, sum: this.#sum };
  }
}
