import { backoffMs } from './backoff.js';
import type { QueuePolicy } from './policy.js';

/**
 * The peer asked to be left alone for a while.
 *
 * - *Over*: `until` is past.
 * - *Paused*, entered by `busy`: until the longest wait that was asked for is over. Without a Retry-After the wait is
 *   ours, longer with each `busy` of a task that started after the last one; `answered` makes it short again.
 */
export class Pause {
  readonly #policy: QueuePolicy;
  readonly #random: () => number;
  #until = Number.NEGATIVE_INFINITY;
  #busyAt = Number.NEGATIVE_INFINITY;
  #since = 0;
  #step = 0;

  constructor(policy: QueuePolicy, random: () => number) {
    this.#policy = policy;
    this.#random = random;
  }

  /** On the monotonic clock. */
  get until(): number {
    return this.#until;
  }

  /** Since when the peer has been busy, or was when it last was. */
  get since(): number {
    return this.#since;
  }

  /** @returns whether this is the first since the peer last answered */
  busy(startedAt: number, now: number, retryAfterMs: number | undefined): boolean {
    const first = this.#step === 0;
    if (first) this.#since = now;
    if (first || startedAt >= this.#busyAt) this.#step += 1;
    this.#busyAt = now;
    this.#until = Math.max(this.#until, now + this.#waitMs(retryAfterMs));
    return first;
  }

  /** @returns whether the peer had been busy and is not any more */
  answered(startedAt: number): boolean {
    if (this.#step === 0 || startedAt < this.#busyAt) return false;
    this.#step = 0;
    return true;
  }

  #waitMs(asked: number | undefined): number {
    const { busyMs, busyMaxMs, retryAfterMaxMs } = this.#policy;
    if (asked !== undefined && asked > 0) return Math.min(asked, retryAfterMaxMs);
    return backoffMs(this.#step - 1, busyMs, busyMaxMs, this.#random);
  }
}
