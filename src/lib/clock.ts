import { uptime } from 'node:os';

/** A timer. `cancel` may be called twice. */
export interface Timer {
  cancel(): void;
}

/**
 * The only source of time. Code that waits or needs a date gets a Clock as a parameter, so a test
 * with a fake clock runs a day of retries in milliseconds.
 */
export interface Clock {
  /**
   * *Steady* time in ms since the epoch: the wall time at the start of the process, plus the time
   * since then. It includes time that the machine slept. It never goes back, and does not change
   * when somebody sets the wall clock.
   */
  now(): number;
  /**
   * Wall time in ms since the epoch. Used only to show a date, for times of the day, and to compare
   * with the times of files.
   */
  wall(): number;
  /** Calls `fn` once, `ms` from now. Keeps the process alive unless `background`. */
  after(ms: number, fn: () => void, options?: { readonly background?: boolean }): Timer;
  /** Resolves after `ms`, or at once when `signal` aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * The smallest difference that counts as sleep, in ms. Smaller ones come from an uptime in whole
 * seconds, or from the drift between clocks.
 */
const MIN_SLEEP_MS = 2_000;
/** The longest timer of Node, in ms: a signed 32-bit number. A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Returns the `now` of a clock that starts now. The three parameters read the clocks of the system,
 * in ms.
 *
 * `uptime` includes the time that the machine slept. It is coarse and expensive. It is read only
 * when the wall clock and the monotonic clock diverge: either the machine slept, or somebody set
 * the wall clock. The uptime shows which.
 */
export function steadyTime(
  wall: () => number,
  monotonic: () => number,
  uptime: () => number,
): () => number {
  const startedAt = wall() - monotonic();
  const uptimeAheadAtStart = uptime() - monotonic();
  let wallAhead = startedAt;
  let sleptMs = 0;
  return () => {
    const elapsed = monotonic();
    const ahead = wall() - elapsed;
    if (Math.abs(ahead - wallAhead) > MIN_SLEEP_MS) {
      wallAhead = ahead;
      const slept = uptime() - elapsed - uptimeAheadAtStart;
      if (slept - sleptMs > MIN_SLEEP_MS) sleptMs = slept;
    }
    return Math.round(startedAt + elapsed + sleptMs);
  };
}

/** Returns how far the wall clock is ahead of steady time, in ms; 0 while nobody has set it. */
export function wallAheadMs(clock: Pick<Clock, 'now' | 'wall'>): number {
  const ahead = clock.wall() - clock.now();
  return Math.abs(ahead) < MIN_SLEEP_MS ? 0 : ahead;
}

/** Resolves with `result`, or with `late` if that takes longer than `ms`. */
export async function within<Result>(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  result: Promise<Result>,
  late: Result,
): Promise<Result> {
  const limit = new AbortController();
  try {
    return await Promise.race([result, clock.sleep(ms, limit.signal).then(() => late)]);
  } finally {
    limit.abort();
  }
}

export const systemClock: Clock = {
  now: steadyTime(
    () => Date.now(),
    () => performance.now(),
    () => uptime() * 1000,
  ),
  wall: () => Date.now(),
  after(ms, fn, options) {
    const timer = setTimeout(fn, Math.min(ms, MAX_TIMER_MS));
    if (options?.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  // timers/promises is not used here: on abort it creates an error with a stack, and that would
  // happen for every change of an item.
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, signal?.aborted ? 0 : Math.min(ms, MAX_TIMER_MS));
      signal?.addEventListener('abort', end);
    }),
};
