import type { Clock } from '../lib/clock.js';

/** Lets one loop sleep until a time comes or somebody rings. */
export class Bell {
  readonly #clock: Clock;
  #ringing = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The sleeper, or the next one to lie down, gets up at once. */
  ring(): void {
    this.#ringing.abort();
  }

  async wait(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#ringing.signal);
    this.#ringing = new AbortController();
  }
}
