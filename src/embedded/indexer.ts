import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { nextTurn } from '../lib/slices.js';
import { type Database, isDiskFailure } from './database.js';
import type { DocumentStore, Pushed } from './documents.js';
import { Refusal } from './form.js';

export interface IndexerOptions {
  readonly database: Database;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Work between two answers, in milliseconds; one document is never cut, so a very long one takes
 * longer.
 */
const SLICE_MS = 15;
/** The same while people search. */
const SHORT_SLICE_MS = 3;
/** So long after a search there may be another one, in milliseconds. */
const SEARCHING_MS = 2_000;
/** Turns of the loop between two slices: one request takes several until it is answered. */
const TURNS = 4;

/**
 * Puts documents into the index, slice by slice, each a transaction that is on disk; others are
 * answered in between.
 */
export class Indexer {
  readonly #options: IndexerOptions;
  #isStopped = false;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(options: IndexerOptions) {
    this.#options = options;
  }

  /**
   * Resolves when they are on disk and searchable; one that cannot be indexed is logged, and left
   * out. No savepoint guards each: FTS5 writes all that it holds at a savepoint, which takes as
   * long as the rest.
   *
   * @returns of each whether it is in the index
   * @throws Refusal 503 when the peer stops meanwhile, or the error of a failing disk: some of them
   *   may be in the index
   */
  async index(pushed: readonly Pushed[]): Promise<boolean[]> {
    const { clock, database, documents } = this.#options;
    const unfit = new Set<Pushed>();
    for (let done = 0; done < pushed.length; await othersTurns()) {
      if (this.#isStopped) throw new Refusal(503, 'The peer is stopping.');
      const began = clock.now();
      const sliceMs = began - this.#searchedAt < SEARCHING_MS ? SHORT_SLICE_MS : SLICE_MS;
      let next = done;
      let current: Pushed | undefined;
      try {
        database.transaction(() => {
          do {
            current = pushed[next];
            if (current && !unfit.has(current)) documents.index(current);
            next += 1;
          } while (next < pushed.length && clock.now() - began < sliceMs);
          current = undefined;
          documents.merge(clock.now() - began);
        });
        done = next;
      } catch (error) {
        if (current === undefined || isDiskFailure(error)) throw error;
        unfit.add(current);
        this.#tell(current.url, error);
      }
    }
    return pushed.map((each) => !unfit.has(each));
  }

  /** Somebody searches: the work is cut into shorter slices for a while. */
  makeRoom(): void {
    this.#searchedAt = this.#options.clock.now();
  }

  /** No slice begins any more. */
  stop(): void {
    this.#isStopped = true;
  }

  #tell(url: string, error: unknown): void {
    this.#options.log.error(
      { url, err: messageOf(error) },
      `The document ${url} cannot be indexed`,
    );
  }
}

async function othersTurns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
}
