/**
 * What a loop sends off and does not wait for.
 *
 * Each is *under way* from `begin` on until it ends, which is told. One that fails is the end of the loop, which is to look at
 * `hasFailed` whenever something ended: then it begins no more, and `ended` waits for the others and throws the first failure.
 */
export class Errands {
  readonly #onEnd: () => void;
  readonly #underWay = new Set<Promise<void>>();
  #failure: unknown;

  /** @param onEnd called whenever one ended, and does not count any more */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** How many are under way. */
  get size(): number {
    return this.#underWay.size;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  begin(work: Promise<void>): void {
    const errand = work
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#underWay.delete(errand);
        this.#onEnd();
      });
    this.#underWay.add(errand);
  }

  /** Resolves when none is under way. @throws what the first that failed threw */
  async ended(): Promise<void> {
    await Promise.all(this.#underWay);
    if (this.hasFailed) throw this.#failure;
  }
}
