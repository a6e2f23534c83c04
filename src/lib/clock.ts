import { uptime } from 'node:os';
import { SleepOfMachine } from './machine-sleep.js';

/** A timer that can be called off; calling it off twice is harmless. */
export interface Timer {
  cancel(): void;
}

/**
 * The only source of time. Everything that waits or dates asks a Clock it was given, so that a day of retries is
 * tested in milliseconds with a fake one.
 */
export interface Clock {
  /** Milliseconds since the epoch; may jump when the system clock is set. */
  now(): number;
  /** Milliseconds since some start; never goes back, and stands still while the machine is suspended. For durations of work. */
  monotonic(): number;
  /** As `monotonic`, but goes on while the machine is suspended. For durations as a person reckons them. */
  boottime(): number;
  /** Calls `fn` once, `ms` from now. Keeps the process alive unless `background`. */
  after(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer;
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Node's timers take at most a signed 32-bit number of milliseconds; longer ones fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const sleep = new SleepOfMachine({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  uptime: () => uptime() * 1000,
});

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  boottime: () => performance.now() + sleep.totalMs(),
  after(ms, fn, options) {
    const timer = setTimeout(fn, Math.min(ms, LONGEST_TIMER_MS));
    if (options?.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const finish = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const timer = setTimeout(finish, Math.min(ms, LONGEST_TIMER_MS));
      signal?.addEventListener('abort', finish, { once: true });
    });
  },
};
