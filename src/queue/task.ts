import type { Clock, Timer } from '../lib/clock.js';

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

/**
 * One piece of work on its way through the door.
 *
 * - *Waiting*: in its lane. `giveUp` settles it.
 * - *Running*, from `begin` on: its own result settles it. `abort` tells it to end; if it does not within `abortMs`,
 *   it is given up.
 * - *Settled*: the caller has the result or the error. Work that was given up may still be at it and keeps its slot;
 *   nobody hears of its result.
 */
export class Task<T> {
  readonly id: string;
  readonly #work: (signal: AbortSignal) => Promise<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #onSettled: () => void;
  readonly #clock: Clock;
  readonly #abortMs: number;
  readonly #controller = new AbortController();
  #timer: Timer | undefined;
  #isSettled = false;

  constructor(
    id: string,
    work: (signal: AbortSignal) => Promise<T>,
    settle: {
      readonly resolve: (value: T) => void;
      readonly reject: (reason: unknown) => void;
      /** Called once, just before the caller hears of it. */
      readonly onSettled: () => void;
    },
    clock: Clock,
    abortMs: number,
  ) {
    this.id = id;
    this.#work = work;
    this.#resolve = settle.resolve;
    this.#reject = settle.reject;
    this.#onSettled = settle.onSettled;
    this.#clock = clock;
    this.#abortMs = abortMs;
  }

  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Does the work; never rejects. */
  async begin(): Promise<Result<T>> {
    try {
      return { ok: true, value: await this.#work(this.#controller.signal) };
    } catch (error) {
      return { ok: false, error };
    }
  }

  resolve(value: T): void {
    if (this.#settle()) this.#resolve(value);
  }

  giveUp(reason: unknown): void {
    if (this.#settle()) this.#reject(reason);
  }

  /** Tells running work to end. */
  abort(reason: unknown): void {
    if (this.#isSettled || this.isAborted) return;
    this.#timer = this.#clock.after(this.#abortMs, () => this.giveUp(reason));
    this.#controller.abort(reason);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#timer?.cancel();
    this.#onSettled();
    return true;
  }
}
