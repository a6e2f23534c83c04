import type { Clock } from '../lib/clock.js';

/** Longest wait for a time, in ms: a wall clock that is set ahead makes due what was not. */
const LONGEST_WAIT_MS = 30_000;

/** Lets one loop wait until something happens, a time comes, or it is to stop. */
export class Signal {
  readonly #clock: Clock;
  #isSet = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes the waiting loop, or the next call to `wait`. */
  notify(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  /** Resolves at `notify`, when `ms` or half a minute are over (never when undefined), or when `signal` aborts. */
  async wait(ms: number | undefined, signal: AbortSignal): Promise<void> {
    if (this.#isSet || signal.aborted || (ms !== undefined && ms <= 0)) {
      this.#isSet = false;
      return;
    }
    await new Promise<void>((resolve) => {
      const timer = ms === undefined ? undefined : this.#clock.after(Math.min(ms, LONGEST_WAIT_MS), finish);
      this.#wake = finish;
      signal.addEventListener('abort', finish, { once: true });
      function finish(): void {
        timer?.cancel();
        signal.removeEventListener('abort', finish);
        resolve();
      }
    });
    this.#wake = undefined;
    this.#isSet = false;
  }
}

/**
 * Work that a loop starts and does not wait for. The first failure is to end the loop: it looks at `hasFailed` whenever
 * something ended, starts nothing more, and `settled` throws that failure once the rest has ended.
 */
export class BackgroundWork {
  readonly #onEnd: () => void;
  readonly #running = new Set<Promise<void>>();
  #failure: unknown;

  /** @param onEnd called whenever one ended, and does not count any more */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get size(): number {
    return this.#running.size;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  start(work: Promise<void>): void {
    const running = work
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#running.delete(running);
        this.#onEnd();
      });
    this.#running.add(running);
  }

  /** Resolves when nothing runs. @throws what the first failure was */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
    if (this.hasFailed) throw this.#failure;
  }
}
