/**
 * Bounds the request bodies that are in memory at one time. A request takes its share before its body is read, and waits, in order,
 * while there is none: its client is held back by TCP meanwhile.
 */
export class BodyBudget {
  #free: number;
  readonly #waiting: { readonly bytes: number; readonly start: () => void }[] = [];

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Resolves with what gives the share back; calling that twice is harmless. `bytes` is at most the whole budget. */
  async take(bytes: number): Promise<() => void> {
    if (this.#waiting.length > 0 || bytes > this.#free)
      await new Promise<void>((start) => this.#waiting.push({ bytes, start }));
    else this.#free -= bytes;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#free += bytes;
      this.#admit();
    };
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next && next.bytes <= this.#free; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= next.bytes;
      next.start();
    }
  }
}
