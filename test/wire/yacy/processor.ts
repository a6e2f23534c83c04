import { setTimeout as sleep } from 'node:timers/promises';

/** The one processor of the peer: what needs its time stands in line for it. */
export class Processor {
  /** When the work that stands in line is done, in ms of `performance.now()`. */
  #busyUntil = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves when the work is done, after all that was asked for before. */
  async work(ms: number): Promise<void> {
    this.#busyUntil = Math.max(this.#busyUntil, performance.now()) + ms;
    const until = this.#busyUntil;
    this.#last = this.#last.then(() => waited(until));
    await this.#last;
  }
}

async function waited(until: number): Promise<void> {
  const ms = until - performance.now();
  if (ms > 0) await sleep(ms);
}
