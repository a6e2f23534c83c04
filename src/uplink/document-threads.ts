import { availableParallelism } from 'node:os';
import PQueue from 'p-queue';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { WorkThread } from '../lib/work-thread.js';
import { type DocumentOrder, type Packed, STALE, unreadableDocument } from './documents.js';

/** How long one document may be read, in ms. */
const LONGEST_MS = 60_000;
/** The heap of a thread, in MiB; what is beside it, such as unpacked bytes, is looked at now and then. */
const HEAP_MB = 512;
const MOST_MEMORY = 512 * 2 ** 20;
/** Between two looks at the memory, in ms. */
const LOOK_MS = 200;

/**
 * Threads that make text of documents. A document that takes too long or too much memory ends its thread and nothing else: the next
 * one has a new thread.
 */
export class DocumentThreads {
  readonly #queue: PQueue;
  readonly #idle: WorkThread[];
  readonly #all: readonly WorkThread[];

  #isClosed = false;

  /**
   * @param program a module that serves `packDocument`
   * @param memory what the process takes, in bytes
   */
  constructor(
    program: URL,
    readonly clock: Clock,
    readonly memory: () => number = () => process.memoryUsage.rss(),
  ) {
    // A second one only where there are cores for both of them and the event loop.
    const threads = availableParallelism() > 2 ? 2 : 1;
    this.#all = Array.from({ length: threads }, () => new WorkThread(program, undefined, HEAP_MB));
    this.#idle = [...this.#all];
    this.#queue = new PQueue({ concurrency: threads });
  }

  /**
   * Reads one document when a thread is free, unless it is not wanted any more by then; never rejects. Once this is closed, everything
   * counts as changed meanwhile.
   */
  async read(order: DocumentOrder, isWanted = () => true): Promise<Packed | undefined> {
    return await this.#queue.add(async () => {
      if (this.#isClosed) return STALE;
      if (!isWanted()) return undefined;
      const thread = this.#idle.pop();
      if (thread === undefined) throw new Error('more documents are read than there are threads');
      try {
        return await this.#readIn(thread, order);
      } finally {
        this.#idle.push(thread);
      }
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const thread of this.#all) await thread.close();
  }

  async #readIn(thread: WorkThread, order: DocumentOrder): Promise<Packed> {
    const { clock, memory } = this;
    const end = clock.now() + LONGEST_MS;
    const before = memory();
    let why: string | undefined;
    const answer = thread.ask<Packed>('packDocument', order);
    const watching = new AbortController();
    const watch = async () => {
      while (!watching.signal.aborted) {
        await clock.sleep(LOOK_MS, watching.signal);
        if (clock.now() >= end) why = `it takes longer than ${LONGEST_MS / 1000} s`;
        if (memory() - before > MOST_MEMORY) why = TOO_MUCH;
        if (why !== undefined) return await thread.close();
      }
    };
    const watched = watch();
    try {
      return await answer;
    } catch (error) {
      if (this.#isClosed) return STALE;
      if (systemCode(error) === 'ERR_WORKER_OUT_OF_MEMORY') why = TOO_MUCH;
      const trouble =
        why === undefined
          ? unreadableDocument('DOCUMENT_BROKEN', messageOf(error))
          : unreadableDocument('DOCUMENT_TOO_LARGE', why);
      return { kind: 'refused', trouble };
    } finally {
      watching.abort();
      await watched;
    }
  }
}

const TOO_MUCH = 'it takes too much memory';
