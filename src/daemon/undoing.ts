import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** What a stop has to undo: the last that was begun is ended first. */
export class Undoing {
  readonly #log: Logger;
  readonly #undo: (readonly [what: string, undo: () => Promise<void> | void])[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  add(what: string, undo: () => Promise<void> | void): void {
    this.#undo.push([what, undo]);
  }

  /** Undoes everything, also where some of it fails. @throws what failed, an AggregateError when that was more than one thing */
  async all(): Promise<void> {
    const failures: unknown[] = [];
    for (const [what, undo] of this.#undo.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        this.#log.error(
          { what, error: messageOf(error) },
          `stopping the ${what} failed: ${messageOf(error)}`,
        );
        failures.push(error);
      }
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'the daemon did not stop cleanly');
  }
}
