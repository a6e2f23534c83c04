import type { Clock } from '../lib/clock.js';
import type { Task } from './task.js';
import { Waiters } from './waiters.js';

type Present = Pick<Task<unknown>, 'giveUp' | 'abort'>;

/**
 * Who is inside the door, so that each can be told to go.
 *
 * A task is *waiting* from `enter` to `begin`, then *running*, and gone from `leave` on, which it calls when it is settled.
 */
export class Roll {
  readonly #waiting = new Set<Present>();
  readonly #running = new Set<Present>();
  /** Those who wait until nothing runs. */
  readonly #ending = new Waiters();

  enter(task: Present): void {
    this.#waiting.add(task);
  }

  isWaiting(task: Present): boolean {
    return this.#waiting.has(task);
  }

  begin(task: Present): void {
    this.#waiting.delete(task);
    this.#running.add(task);
  }

  /** @returns whether it was still waiting */
  leave(task: Present): boolean {
    const wasWaiting = this.#waiting.delete(task);
    this.#running.delete(task);
    if (this.#running.size === 0) this.#ending.release(this.#ending.size);
    return wasWaiting;
  }

  /**
   * Sends all away: who waits at once, who runs when the grace is over. Resolves when nobody is here any more; called again
   * with a shorter grace, that one holds.
   */
  async sendAway(reason: unknown, graceMs: number, clock: Clock): Promise<void> {
    for (const task of this.#waiting) task.giveUp(reason);
    if (this.#running.size === 0) return;
    const ended = this.#ending.wait();
    if (graceMs > 0) {
      const grace = new AbortController();
      await Promise.race([ended, clock.sleep(graceMs, grace.signal)]);
      grace.abort();
    }
    for (const task of this.#running) task.abort(reason);
    await ended;
  }
}
