import type { WorkThread } from '../lib/work-thread.js';
import type { Fingerprint } from './fingerprint.js';
import type { ReadingOrder } from './reading.js';

/** Reads many small files at once, away from the event loop. */
export interface GroupReader {
  /** One fingerprint for each order. Rejects when the reading itself broke down. */
  read(orders: readonly ReadingOrder[]): Promise<readonly Fingerprint[]>;
}

/** Reads in a thread, which serves `read` by `readNow` for each order. */
export class ThreadReader implements GroupReader {
  readonly #thread: Pick<WorkThread, 'ask'>;

  constructor(thread: Pick<WorkThread, 'ask'>) {
    this.#thread = thread;
  }

  read(orders: readonly ReadingOrder[]): Promise<readonly Fingerprint[]> {
    return this.#thread.ask('read', orders);
  }
}
