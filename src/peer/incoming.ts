import type { Failed } from './exchange.js';

/** Bytes that may wait for their reader, beyond one piece. */
const MOST_WAITING = 128 * 1024;

/**
 * The body of an answer between the connection that gives it and the one who reads it.
 *
 * - `open`: pieces are given and taken. While more wait than a little, it is full: whoever gives is to stop until
 *   `drained` is called.
 * - `whole`: the answer ended as it should; what waits can still be taken.
 * - `failed`: what waited is dropped, and the reader learns why.
 */
export class Incoming {
  #state: 'open' | 'whole' | Failed = 'open';
  #waiting: Buffer[] = [];
  #bytes = 0;
  #wake: () => void = () => {};
  readonly #drained: () => void;

  constructor(drained: () => void) {
    this.#drained = drained;
  }

  get isFull(): boolean {
    return this.#bytes > MOST_WAITING;
  }

  give(chunk: Buffer): void {
    this.#waiting.push(chunk);
    this.#bytes += chunk.length;
    this.#wake();
  }

  end(): void {
    this.#state = 'whole';
    this.#wake();
  }

  fail(failed: Failed): void {
    this.#state = failed;
    this.#waiting = [];
    this.#bytes = 0;
    this.#wake();
  }

  /** The next piece, as soon as there is one; undefined after the last. One reader, one call at a time. */
  async take(): Promise<Buffer | Failed | undefined> {
    while (this.#waiting.length === 0 && this.#state === 'open') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunk = this.#waiting.shift();
    if (chunk === undefined)
      return this.#state === 'whole' || this.#state === 'open' ? undefined : this.#state;
    const wasFull = this.isFull;
    this.#bytes -= chunk.length;
    if (wasFull && !this.isFull) this.#drained();
    return chunk;
  }
}
