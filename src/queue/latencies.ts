const KEPT = 101;

/** The last hundred latencies of a lane, for their median. */
export class Latencies {
  readonly #ms: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#ms[this.#next] = ms;
    this.#next = (this.#next + 1) % KEPT;
  }

  /** The median in ms, or undefined before the first. */
  median(): number | undefined {
    const sorted = this.#ms.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)];
  }
}
