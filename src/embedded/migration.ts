import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { nextTurn, Yielder } from '../lib/slices.js';
import { type Database, isDiskFailure } from './database.js';
import type { DocumentStore } from './documents.js';

export interface MigrationOptions {
  readonly database: Database;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Adds the symbol words to an index of the format before, from the texts that the database has.
 *
 * It takes the documents in slices, the newest first. Each slice is a transaction that records its
 * progress too, so after a stop, a crash or a disk error the next start continues. Requests are
 * answered between two slices. Until all documents are done, a search takes symbol words as plain
 * words.
 */
export class Migration {
  readonly #options: MigrationOptions;
  /** The documents that cannot be indexed again. */
  readonly #rejected = new Set<number>();

  constructor(options: MigrationOptions) {
    this.#options = options;
  }

  /** Migrates all documents. Ends early if the database is closed. */
  async run(): Promise<void> {
    const { database, documents, log } = this.#options;
    if (documents.isMigrated) return;
    const count = documents.count('documents');
    log.info({ documents: count }, 'Words such as C++, .NET and #tag are added to the index');
    try {
      for (; database.isOpen && !documents.isMigrated; await nextTurn()) this.runSlice();
      if (database.isOpen) log.info({}, 'Words such as C++, .NET and #tag are in the index');
    } catch (error) {
      const why = messageOf(error);
      log.error(
        { err: why },
        `Words such as C++, .NET and #tag cannot be added to the index now: ${why}. The next start continues`,
      );
    }
  }

  /**
   * Migrates some documents. If one cannot be indexed again, it is logged and left out, and the
   * slice is repeated without it.
   *
   * @throws the error of a failing disk, or of a database that has lost its place
   */
  runSlice(): void {
    const { clock, database, documents } = this.#options;
    const slice = new Yielder(clock);
    const began = clock.now();
    /** The document whose words are being added. */
    let current: number | undefined;
    try {
      database.transaction(() => {
        let next: number | undefined;
        do {
          next = documents.nextToMigrate();
          if (next === undefined) break;
          if (!this.#rejected.has(next)) {
            current = next;
            documents.addSymbolWords(next);
            current = undefined;
          }
          documents.setMigratedFrom(next);
        } while (!slice.isDue);
        if (next === undefined) documents.endMigration();
        documents.merge(clock.now() - began);
      });
    } catch (error) {
      if (current === undefined || isDiskFailure(error)) throw error;
      this.#rejected.add(current);
      this.#logFailure(current, error);
    }
  }

  #logFailure(id: number, error: unknown): void {
    const { documents, log } = this.#options;
    const url = documents.find('id', id)?.url;
    log.error({ url, err: messageOf(error) }, `The document ${url} cannot be indexed again`);
  }
}
