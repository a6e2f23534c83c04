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
 * The length of a slice, in ms. A document is never cut, so a long one takes longer. The slice is a
 * transaction with an fsync of its own, so the slices of `lib/slices.ts` are too short for it. With
 * 30 instead of 15, documents of 2 kB took a quarter less time on a busy machine, but other
 * requests waited 99 ms instead of 86 ms (median).
 */
const SLICE_MS = 15;
/** The length of a slice while people search, in ms. */
const SHORT_SLICE_MS = 3;
/** The time after a search in which another one is expected, in ms. */
const SEARCHING_MS = 2_000;
/** The turns of the event loop between two slices. A request takes several until it is answered. */
const TURNS = 4;

/**
 * Indexes documents in slices. Each slice is a transaction. Requests are answered between two
 * slices.
 *
 * - *Long slices*: nobody searches.
 * - *Short slices*: someone searched within the last 2 s.
 * - *Stopped*: no slice begins. `stop` is final.
 */
export class Indexer {
  readonly #options: IndexerOptions;
  #isStopped = false;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(options: IndexerOptions) {
    this.#options = options;
  }

  /**
   * Indexes documents. They are on disk and searchable when this resolves. A document that cannot
   * be indexed is logged and left out, and the slice is repeated without it. A savepoint for each
   * document would avoid that, but FTS5 writes all of its pending postings at a savepoint, which
   * doubles the time.
   *
   * @returns for each document whether it is in the index
   * @throws Refusal 503 if the peer stops meanwhile, or the error of a failing disk. Some documents
   *   may then be in the index.
   */
  async index(pushed: readonly Pushed[]): Promise<boolean[]> {
    const { clock, database, documents } = this.#options;
    const rejected = new Set<Pushed>();
    for (let done = 0; done < pushed.length; await turnsForRequests()) {
      if (this.#isStopped) throw new Refusal(503, 'The peer is stopping.');
      const began = clock.now();
      const sliceMs = began - this.#searchedAt < SEARCHING_MS ? SHORT_SLICE_MS : SLICE_MS;
      let next = done;
      let current: Pushed | undefined;
      try {
        database.transaction(() => {
          do {
            current = pushed[next];
            if (current && !rejected.has(current)) documents.index(current);
            next += 1;
          } while (next < pushed.length && clock.now() - began < sliceMs);
          current = undefined;
          documents.merge(clock.now() - began);
        });
        done = next;
      } catch (error) {
        if (current === undefined || isDiskFailure(error)) throw error;
        rejected.add(current);
        this.#logFailure(current.url, error);
      }
    }
    return pushed.map((each) => !rejected.has(each));
  }

  /** Called for each search. Shortens the slices for a while. */
  onSearch(): void {
    this.#searchedAt = this.#options.clock.now();
  }

  /** Ends the work after the current slice. */
  stop(): void {
    this.#isStopped = true;
  }

  #logFailure(url: string, error: unknown): void {
    this.#options.log.error(
      { url, err: messageOf(error) },
      `The document ${url} cannot be indexed`,
    );
  }
}

async function turnsForRequests(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
}
