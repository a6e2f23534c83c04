import type { Clock, Timer } from '../lib/clock.js';

/**
 * The time in which a worker may push: Redis has shown lately that the owner lives, and that it
 * sees this worker.
 *
 * A lease that was over, be it for a moment, ends all requests that were begun before: the owner
 * may have given them up. Each has the `signal` of its beginning, and asks `isOver` before each
 * piece of its body. A timer ends those that wait for the peer at that moment.
 */
export class PushLease {
  /** Aborted when the lease ends, and replaced then. */
  #ending = new AbortController();
  #until = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor(private readonly clock: Clock) {}

  /** The signal of requests that begin now. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** @param signal the signal of a request, from its beginning */
  isOver(signal: AbortSignal): boolean {
    return signal.aborted || this.clock.now() >= this.#until;
  }

  /**
   * @param until by the clock
   * @param isContinued whether requests that were begun may go on
   */
  renew(until: number, isContinued: boolean): void {
    const { clock } = this;
    if (!isContinued || clock.now() >= this.#until) this.#end();
    this.#until = until;
    this.#timer?.cancel();
    this.#timer = clock.after(this.#until - clock.now(), () => this.#end());
  }

  /** Ends the timer. */
  close(): void {
    this.#timer?.cancel();
  }

  #end(): void {
    this.#ending.abort();
    this.#ending = new AbortController();
  }
}
