import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { type Database, isDiskTrouble } from './database.js';
import type { DocumentStore, Queued } from './documents.js';
import type { FormReader } from './form.js';

export interface IndexerOptions {
  readonly database: Database;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds that an accepted document waits for others before it becomes visible. */
  readonly commitEveryMs: number;
  /** Bodies that are on their way in come in many small pieces, each needing a turn of the loop. */
  readonly forms: Pick<FormReader, 'isReceiving'>;
}

/** Work between two answers, in milliseconds; one document is never cut, so a very long one takes longer. */
const SLICE_MS = 15;
/** Turns of the loop between two slices: one request takes several until it is answered. */
const TURNS = 4;
/** How often it looks whether bodies are still coming in. */
const PAUSE_STEP_MS = 5;
/** After a failing disk the indexer looks again this much later. */
const RETRY_MS = 5_000;

/**
 * Moves documents from the queue into the index.
 *
 * It is *idle* while nothing waits; `notify` makes it *waiting* for `commitEveryMs`, so that documents which come together
 * become visible together; then it is *working*, slice by slice, each a transaction of its own and answers in
 * between, until the queue is empty; then, as slowly, it brings what an older peer indexed to the present format, and is idle again; while bodies come in it leaves them half of the time. A failing disk
 * makes it wait `RETRY_MS`. A document that cannot be indexed stays in the queue, is logged once, and is tried again at the next start.
 */
export class Indexer {
  readonly #options: IndexerOptions;
  readonly #unfit = new Set<number>();
  #timer: Timer | undefined;
  #working: Promise<void> | undefined;
  /** Something was accepted while it was working, perhaps after its last look. */
  #more = false;
  #stopped = false;

  constructor(options: IndexerOptions) {
    this.#options = options;
  }

  /** Something was accepted. */
  notify(): void {
    if (this.#working) this.#more = true;
    if (this.#timer || this.#working || this.#stopped) return;
    this.#wait(this.#options.commitEveryMs);
  }

  /** Indexes these now, before what was accepted earlier; resolves when they are visible. */
  async indexNow(seqs: readonly number[]): Promise<void> {
    const left = seqs.values();
    await this.#index(() => {
      for (const seq of left) {
        const queued = this.#options.documents.queued(seq);
        if (queued) return queued;
      }
      return undefined;
    });
    if (seqs.some((seq) => this.#unfit.has(seq))) throw new Error('a document could not be indexed');
  }

  /** Ends after the slice at hand; what waits stays in the queue. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#working;
  }

  #wait(ms: number): void {
    this.#timer = this.#options.clock.after(ms, () => {
      this.#timer = undefined;
      this.#working = this.#work().finally(() => {
        this.#working = undefined;
        if (!this.#more) return;
        this.#more = false;
        this.notify();
      });
    });
  }

  async #work(): Promise<void> {
    let last = 0;
    try {
      await this.#index(() => {
        const next = this.#options.documents.nextAfter(last);
        if (next) last = next.seq;
        return next;
      });
      await this.#renew();
    } catch (error) {
      const why = messageOf(error);
      this.#options.log.error({ err: why }, `Indexing is held up (${why}); next try in ${RETRY_MS / 1000} s`);
      if (!this.#stopped) this.#wait(RETRY_MS);
    }
  }

  #index(next: () => Queued | undefined): Promise<void> {
    const { documents } = this.#options;
    return this.#slices(() => {
      const queued = next();
      if (queued === undefined) return false;
      if (this.#unfit.has(queued.seq)) return true;
      if (!this.#wholly(queued.url, () => documents.index(queued))) this.#unfit.add(queued.seq);
      return true;
    });
  }

  /** Brings what an older peer indexed to the present format, until something else is to be done. */
  #renew(): Promise<void> {
    const { documents } = this.#options;
    return this.#slices(() => {
      const document = this.#more ? undefined : documents.nextToRenew();
      if (document === undefined) return false;
      this.#wholly(document.url, () => documents.renew(document));
      documents.wasRenewed(document);
      return true;
    });
  }

  /** Takes steps, slice by slice, each a transaction, until one says that it was the last; between slices others work, up to half of the time. */
  async #slices(step: () => boolean): Promise<void> {
    const { database, clock, forms } = this.#options;
    for (let more = true; more && !this.#stopped; ) {
      const began = clock.now();
      more = database.transaction(() => {
        do {
          if (!step()) return false;
        } while (clock.now() - began < SLICE_MS);
        return true;
      });
      const pauseEnd = 2 * clock.now() - began;
      for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
      while (forms.isReceiving && clock.now() < pauseEnd) await clock.sleep(PAUSE_STEP_MS);
    }
  }

  /** Does `work` for a document whole or not at all. @returns whether it was done */
  #wholly(url: string, work: () => void): boolean {
    const { database, log } = this.#options;
    database.run('SAVEPOINT document');
    let isDone = false;
    try {
      work();
      isDone = true;
    } catch (error) {
      if (isDiskTrouble(error)) throw error;
      database.run('ROLLBACK TO document');
      log.error({ url, err: messageOf(error) }, `The document ${url} cannot be indexed`);
    }
    database.run('RELEASE document');
    return isDone;
  }
}
