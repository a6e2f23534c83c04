import type { Clock, Timer } from '../../src/lib/clock.js';

interface Due {
  readonly at: number;
  readonly fn: () => void;
}

/** Lets everything that is ready run, including short chains of promises and real I/O callbacks. */
async function drain(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * By so many ms the wall clock of every fake clock jumps between two readings, ahead and back; by
 * hand, for the loops.
 */
const SWING_MS = Number(process.env.PEERSYNC_TEST_WALL_SWING_MS ?? 0);

/** Time that stands still until `advance` is called. */
export class FakeClock implements Clock {
  #now: number;
  #wallAheadMs = 0;
  #swingMs = SWING_MS / 2;
  #elapsed = 0;
  readonly #due = new Set<Due>();

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    this.#swingMs = -this.#swingMs;
    return this.#now + this.#wallAheadMs + this.#swingMs;
  }

  /** Returns the time that the clock ran, in ms. It does not run while the machine is suspended. */
  elapsed(): number {
    return this.#elapsed;
  }

  after(ms: number, fn: () => void): Timer {
    const due: Due = { at: this.#elapsed + Math.max(0, ms), fn };
    this.#due.add(due);
    return { cancel: () => void this.#due.delete(due) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const timer = this.after(ms, finish);
      function finish(): void {
        timer.cancel();
        signal?.removeEventListener('abort', finish);
        resolve();
      }
      signal?.addEventListener('abort', finish, { once: true });
    });
  }

  /** Moves time on by `ms`, running every timer that falls due on the way, in order. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await drain();
    for (;;) {
      const next = [...this.#due].filter((d) => d.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#due.delete(next);
      const wait = Math.max(0, next.at - this.#elapsed);
      this.#now += wait;
      this.#elapsed += wait;
      next.fn();
      await drain();
    }
    this.#now += end - this.#elapsed;
    this.#elapsed = end;
    await drain();
  }

  /**
   * Time passes without anybody running, as while a process is stopped: what falls due meanwhile is
   * due afterwards.
   */
  skip(ms: number): void {
    this.#now += ms;
    this.#elapsed += ms;
  }

  /** The machine is suspended: time passes, and no timer comes nearer. */
  suspend(ms: number): void {
    this.#now += ms;
  }

  /** Somebody sets the clock on the wall, ahead or back; no time passes. */
  set(byMs: number): void {
    this.#wallAheadMs += byMs;
  }

  /** Another run of the program: its steady time begins with what the wall says then. */
  restart(): void {
    this.#now += this.#wallAheadMs;
    this.#wallAheadMs = 0;
  }

  /** Number of pending timers. */
  get waiting(): number {
    return this.#due.size;
  }
}
