/** Work that somebody has to see to, as an outsider can check it: not by what a loop believes, but by what lies undone. */
export interface Duty {
  /** Which one it is, for as long as it exists. */
  readonly name: string;
  /** Another value whenever the work went on. */
  moves(): unknown;
  /**
   * What lies undone at this moment though nothing stands in its way, as the beginning of a sentence; undefined when there
   * is nothing to do, or a reason to wait: a time that has not come, a peer that is away, a request under way.
   */
  neglects(): string | undefined;
  /** How long that may last, in ms. @default that of whoever looks */
  readonly limitMs?: number;
}

/** Something that does not go on by itself any more. */
export interface Stuck {
  readonly name: string;
  /** What lies undone. */
  readonly what: string;
  /** When it was last seen to move, in ms since the epoch. */
  readonly since: number;
}

/**
 * Feels whether one duty is still seen to.
 *
 * - *Alive*: it moved since the last look, or neglects nothing.
 * - *Still*, entered by a look that finds the same neglect without a move since the look before.
 * - *Stuck*: still for as long as its limit. Any move makes it alive again.
 */
export class Pulse {
  #moves: unknown;
  #stillMs = 0;
  #since: number;
  #what: string | undefined;

  /** @param now in ms since the epoch */
  constructor(now: number) {
    this.#since = now;
  }

  /** @param elapsedMs the time that the process had since the last look: less than passed where it was held up */
  look(duty: Duty, elapsedMs: number, now: number, limitMs: number): Stuck | undefined {
    const moves = duty.moves();
    const what = duty.neglects();
    if (what === undefined || moves !== this.#moves) {
      this.#moves = moves;
      this.#stillMs = 0;
      this.#since = now;
      this.#what = undefined;
      return undefined;
    }
    this.#what = what;
    this.#stillMs += elapsedMs;
    if (this.#stillMs < (duty.limitMs ?? limitMs)) return undefined;
    return { name: duty.name, what, since: this.#since };
  }

  /** What the last look found still for at least `ms`, since when in ms since the epoch. */
  stillFor(ms: number): Omit<Stuck, 'name'> | undefined {
    if (this.#what === undefined || this.#stillMs < ms) return undefined;
    return { what: this.#what, since: this.#since };
  }
}

/** What is under way at this moment. */
export class UnderWay {
  readonly #numbers = new Set<number>();
  #begun = 0;

  get size(): number {
    return this.#numbers.size;
  }

  /** Which one began first; undefined when there is none. */
  get oldest(): number | undefined {
    const [first] = this.#numbers;
    return first;
  }

  /** Another value whenever one begins or ends. */
  get moves(): string {
    return `${this.#begun}-${this.#numbers.size}`;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#begun += 1;
    const number = this.#begun;
    this.#numbers.add(number);
    try {
      return await work();
    } finally {
      this.#numbers.delete(number);
    }
  }
}
