/** How many observations are remembered. */
const REMEMBERED = 64;
const FIRST_GUESS_MS = 1_000;
const SHORTEST_MS = 50;

/** What was learned of the peer's time-to-visible: from the answer to a push until a look-up shows it. */
export class Visibility {
  readonly #seen: number[] = [];
  #next = 0;

  constructor(learned: number | undefined) {
    if (learned !== undefined) this.saw(learned);
  }

  /** An item was first shown `ms` after it was accepted. */
  saw(ms: number): void {
    this.#seen[this.#next] = Math.max(SHORTEST_MS, ms);
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** The wait after which three of four items were visible, in ms. */
  get typicalMs(): number {
    if (this.#seen.length === 0) return FIRST_GUESS_MS;
    const sorted = [...this.#seen].sort((a, b) => a - b);
    return sorted[Math.floor((sorted.length - 1) * 0.75)] ?? FIRST_GUESS_MS;
  }
}
