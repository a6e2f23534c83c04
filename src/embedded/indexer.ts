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
 * 15 instead of 30, other requests wait 19 ms instead of 33 ms (median), and documents of 2 kB are
 * indexed 6 % slower.
 */
const SLICE_MS = 30;
/** The length of a slice while people search, in ms. */
const SHORT_SLICE_MS = 3;
/** The time after a search in which another one is expected, in ms. */
const SEARCHING_MS = 2_000;
/** The turns of the event loop between two slices. A request takes several until it is answered. */
const TURNS = 4;

/** Documents that were pushed together. */
interface Push {
  readonly documents: readonly Pushed[];
  /** The position of the next document. */
  next: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Indexes documents in slices. Each slice is a transaction. Requests are answered between two
 * slices. A slice takes documents of all pushes that wait. If each push has slices of its own (of
 * 15 ms), there are more fsyncs and more segments to merge, and a request waits for a slice of each
 * push: four pushes of 50 documents each are indexed 19 % slower, and other requests wait 67 ms
 * instead of 33 ms (median). After a slice, an unfinished push goes to the end, so that a short one
 * does not wait for a long one.
 *
 * - *Idle*: no push waits.
 * - *Long slices*: nobody searches.
 * - *Short slices*: someone searched within the last 2 s.
 * - *Stopped*: no slice begins. `stop` is final.
 */
export class Indexer {
  readonly #options: IndexerOptions;
  readonly #pushes: Push[] = [];
  readonly #rejected = new WeakSet<Pushed>();
  #isRunning = false;
  #isStopped = false;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(options: IndexerOptions) {
    this.#options = options;
  }

  /**
   * Indexes documents. They are on disk and searchable when this resolves.
   *
   * @returns for each document whether it is in the index
   * @throws Refusal 503 if the peer stops meanwhile, or the error of a failing disk. Some documents
   *   may then be in the index.
   */
  async index(documents: readonly Pushed[]): Promise<boolean[]> {
    if (documents.length > 0)
      await new Promise<void>((resolve, reject) => {
        this.#pushes.push({ documents, next: 0, resolve, reject });
        void this.#run();
      });
    return documents.map((each) => !this.#rejected.has(each));
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (; this.#pushes.length > 0; await turnsForRequests()) {
      try {
        if (this.#isStopped) throw new Refusal(503, 'The peer is stopping.');
        this.#indexSlice();
      } catch (error) {
        for (const push of this.#pushes.splice(0)) push.reject(error);
      }
    }
    this.#isRunning = false;
  }

  /**
   * Indexes documents in a transaction. If one cannot be indexed, it is logged and left out, and
   * the slice is repeated without it. A savepoint for each document would avoid that, but FTS5
   * writes all of its pending postings at a savepoint, which doubles the time.
   */
  #indexSlice(): void {
    const { clock, database, documents } = this.#options;
    const began = clock.now();
    const sliceMs = began - this.#searchedAt < SEARCHING_MS ? SHORT_SLICE_MS : SLICE_MS;
    const isOver = (): boolean => clock.now() - began >= sliceMs;
    const reached: number[] = [];
    let current: Pushed | undefined;
    try {
      database.transaction(() => {
        for (const push of this.#pushes) {
          let { next } = push;
          do {
            current = push.documents[next];
            if (current && !this.#rejected.has(current)) documents.index(current);
            next += 1;
          } while (next < push.documents.length && !isOver());
          reached.push(next);
          if (isOver()) break;
        }
        current = undefined;
        documents.merge(clock.now() - began);
      });
    } catch (error) {
      if (current === undefined || isDiskFailure(error)) throw error;
      this.#rejected.add(current);
      this.#logFailure(current.url, error);
      return;
    }
    this.#advance(reached);
  }

  /** Ends the pushes that are indexed. One that is not finished goes to the end. */
  #advance(reached: readonly number[]): void {
    for (const next of reached) {
      const push = this.#pushes.shift();
      if (push === undefined) return;
      push.next = next;
      if (next < push.documents.length) this.#pushes.push(push);
      else push.resolve();
    }
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
