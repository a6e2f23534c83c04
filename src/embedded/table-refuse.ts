import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { type Database, int } from './database.js';

export interface TableRefuseOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
}

const SLICE_MS = 10;
/** Rows of one statement; a slice is not cut within one. */
const BITE = 50;

/**
 * Clears the rows of tables that were dropped away, slice by slice, so that dropping a large table stops nobody.
 *
 * It is idle until `notify`, works until nothing is left, and is idle again. What it did not get to, because of a stop, a crash or
 * a failing disk, is left for the next `notify`, which also comes at the start.
 */
export class TableRefuse {
  readonly #options: TableRefuseOptions;
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(options: TableRefuseOptions) {
    this.#options = options;
  }

  notify(): void {
    if (this.#stopped) return;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Ends after the slice at hand. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    try {
      do await nextTurn();
      while (!this.#stopped && this.#slice());
    } catch (error) {
      const why = messageOf(error);
      this.#options.log.error({ err: why }, `The rows of a deleted table cannot be cleared away now: ${why}`);
    }
  }

  /** Whether there is more. */
  #slice(): boolean {
    const { database, clock } = this.#options;
    const row = database.row('SELECT in_table FROM table_refuse LIMIT 1');
    if (!row) return false;
    const id = int(row, 'in_table');
    const end = clock.now() + SLICE_MS;
    const bite = `DELETE FROM table_rows WHERE rowid IN (SELECT rowid FROM table_rows WHERE in_table = ? LIMIT ${BITE})`;
    database.transaction(() => {
      do {
        database.run(bite, id);
        if (database.row('SELECT 1 FROM table_rows WHERE in_table = ? LIMIT 1', id)) continue;
        database.run('DELETE FROM table_refuse WHERE in_table = ?', id);
        return;
      } while (clock.now() < end);
    });
    return true;
  }
}
