import type { Clock } from '../lib/clock.js';

/** Longest sleep where a time is waited for, in ms: a wall clock that is set ahead makes due what was not. */
const LONGEST_SLEEP_MS = 30_000;

/** Lets one loop sleep until something happens, a time comes, or it is told to stop. */
export class Wake {
  readonly #clock: Clock;
  #rung = false;
  #waiter: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something happened: the sleeper, or the next one to lie down, gets up at once. */
  ring(): void {
    this.#rung = true;
    this.#waiter?.();
  }

  /** Sleeps until `ring`, until `ms` or half a minute are over (for ever when undefined), or until `signal` aborts. */
  async wait(ms: number | undefined, signal: AbortSignal): Promise<void> {
    if (this.#rung || signal.aborted || (ms !== undefined && ms <= 0)) {
      this.#rung = false;
      return;
    }
    await new Promise<void>((resolve) => {
      const timer = ms === undefined ? undefined : this.#clock.after(Math.min(ms, LONGEST_SLEEP_MS), finish);
      const waiter = finish;
      this.#waiter = waiter;
      signal.addEventListener('abort', finish, { once: true });
      function finish(): void {
        timer?.cancel();
        signal.removeEventListener('abort', finish);
        resolve();
      }
    });
    this.#waiter = undefined;
    this.#rung = false;
  }
}
