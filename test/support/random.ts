/** Chance that can be had again: the same seed gives the same numbers. */
export class Random {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** A seed that PEERSYNC_TEST_SEED names, or a new one. */
  static seeded(): Random {
    const given = process.env.PEERSYNC_TEST_SEED;
    return new Random(given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given));
  }

  /** From 0 to below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  pick<const T extends readonly [unknown, ...unknown[]]>(values: T): T[number] {
    return values[this.between(0, values.length - 1)];
  }

  chance(share: number): boolean {
    return this.next() < share;
  }
}
