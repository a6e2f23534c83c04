import { uptime } from 'node:os';

/** A timer that can be called off; calling it off twice is harmless. */
export interface Timer {
  cancel(): void;
}

/**
 * The only source of time. Everything that waits or dates asks a Clock it was given, so that a day
 * of retries is tested in milliseconds with a fake one.
 */
export interface Clock {
  /**
   * Milliseconds since the epoch, *steady*: the wall time when the process started plus the time
   * that has passed since, the machine's sleep included. It never goes back, and a wall clock that
   * is set does not move it.
   */
  now(): number;
  /**
   * What the clock on the wall says, in ms since the epoch. Only to show a date and to compare with
   * the times of files.
   */
  wall(): number;
  /** Calls `fn` once, `ms` from now. Keeps the process alive unless `background`. */
  after(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer;
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * The kernel may tell its uptime in whole seconds, and two clocks drift apart a little; more than
 * this is a sleep. In ms.
 */
const COARSE_MS = 2_000;
/** Node's timers take at most a signed 32-bit number of milliseconds; longer ones fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * `Clock.now` of a clock that begins now, by the clocks of the system, in ms. `uptime` is how long
 * the machine has been up, its sleep included: coarse, and expensive to ask for.
 *
 * The kernel is asked for it only when the wall clock and the monotonic one came apart: either the
 * machine slept, or somebody set the clock, and the uptime tells which.
 */
export function steadyTime(
  wall: () => number,
  monotonic: () => number,
  uptime: () => number,
): () => number {
  const uptimeAhead = () => uptime() - monotonic();
  const startedAt = wall() - monotonic();
  const aheadAtStart = uptimeAhead();
  let wallAhead = startedAt;
  let sleptMs = 0;
  return () => {
    const ahead = wall() - monotonic();
    if (Math.abs(ahead - wallAhead) > COARSE_MS) {
      wallAhead = ahead;
      const slept = uptimeAhead() - aheadAtStart;
      if (slept - sleptMs > COARSE_MS) sleptMs = slept;
    }
    return Math.round(startedAt + monotonic() + sleptMs);
  };
}

/** How far the wall clock is ahead of steady time, in ms; 0 while nobody has set it. */
export function wallAheadMs(clock: Pick<Clock, 'now' | 'wall'>): number {
  const ahead = clock.wall() - clock.now();
  return Math.abs(ahead) < COARSE_MS ? 0 : ahead;
}

export const systemClock: Clock = {
  now: steadyTime(
    () => Date.now(),
    () => performance.now(),
    () => uptime() * 1000,
  ),
  wall: () => Date.now(),
  after(ms, fn, options) {
    const timer = setTimeout(fn, Math.min(ms, LONGEST_TIMER_MS));
    if (options?.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  // Not by timers/promises: where the signal ends it, that makes an error with its stack, for every
  // change of an item.
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, signal?.aborted ? 0 : Math.min(ms, LONGEST_TIMER_MS));
      signal?.addEventListener('abort', end);
    }),
};
