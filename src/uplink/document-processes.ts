import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import PQueue from 'p-queue';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { type Frame, FrameReader } from '../lib/frames.js';
import type { Logger } from '../lib/logger.js';
import { answerOf, type DocumentAnswer, type DocumentRequest } from './document-answer.js';
import { type DocumentOrder, type Packed, STALE, unreadableDocument } from './documents.js';

/** How long one document may be read, in ms. */
const LONGEST_MS = 60_000;
/** How long a process may take until it is ready, in ms. */
const START_MS = 30_000;
/** Time before a process that did not start is started again, in ms: the first time, and at most. */
const RESTART_MS = 1_000;
const LONGEST_RESTART_MS = 60_000;
/** A process that has nothing to do for so long is ended, in ms: it takes about 80 MB. */
const IDLE_MS = 30_000;
/** Bytes of the text of one document, encoded for its way. */
const LARGEST_ANSWER = 96 * 2 ** 20;

/** The heap of a process, in MiB. `document-process.ts` limits the memory as a whole. */
const FLAGS = ['--max-old-space-size=256', '--max-semi-space-size=4'];
/** V8 ends a process whose heap is full, and the process ends itself when its memory is full. */
const MEMORY_SIGNALS = new Set<NodeJS.Signals | null>(['SIGABRT', 'SIGILL', 'SIGKILL', 'SIGTRAP']);

/**
 * Processes that make text of documents, one after the other. A hostile document ends at most the process that reads it: that costs the
 * document, and the next one is read by a new process.
 */
export class DocumentProcesses {
  /** One document at a time: two processes together would take more memory than a small machine has. */
  readonly #queue = new PQueue({ concurrency: 1 });
  /** The process that runs, with or without work. */
  #reader: ReaderProcess | undefined;
  readonly #closing = new AbortController();

  /** @param program what runs in each process; see `document-process.ts` */
  constructor(
    private readonly program: URL,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /**
   * Reads one document when a process is free, unless it is not wanted any more by then. Never rejects. Once this is
   * closed, every document counts as changed meanwhile.
   */
  async read(order: DocumentOrder, isWanted = () => true): Promise<Packed | undefined> {
    return await this.#queue.add(async () => {
      if (!isWanted()) return undefined;
      const packed = this.#reader && (await this.#readWith(this.#reader, order));
      if (packed !== undefined) return packed;
      // A document is to blame for a failure only where the process had read nothing else before.
      const fresh = await this.#start();
      return fresh === undefined ? STALE : await this.#readWith(fresh, order);
    });
  }

  /** Ends the process at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reader?.kill();
  }

  /** Starts a process, again and again until there is one. @returns undefined once this is closed */
  async #start(): Promise<ReaderProcess | undefined> {
    const { signal } = this.#closing;
    for (let pauseMs = RESTART_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_RESTART_MS)) {
      if (signal.aborted) return undefined;
      const reader = new ReaderProcess(this.program);
      this.#reader = reader;
      void reader.ended.then(() => this.#forget(reader));
      const limit = this.clock.after(START_MS, () => void reader.kill());
      try {
        await reader.next();
        return reader;
      } catch (error) {
        if (signal.aborted) return undefined;
        const again = `peersync tries again in ${pauseMs / 1000} s; until then no document is read.`;
        this.log.error(
          { err: error },
          `The program that reads documents does not start: ${messageOf(error)}. ${again}`,
        );
      } finally {
        limit.cancel();
      }
      await reader.kill();
      await this.clock.sleep(pauseMs, signal);
    }
  }

  #forget(reader: ReaderProcess): void {
    if (this.#reader === reader) this.#reader = undefined;
  }

  /** Ends a process when no other document comes for a while. */
  #keep(reader: ReaderProcess): void {
    const end = () => {
      this.#forget(reader);
      void reader.kill();
    };
    reader.idle = this.clock.after(IDLE_MS, end, { background: true });
  }

  /** @returns undefined where the process failed, perhaps because of what it had read before */
  async #readWith(reader: ReaderProcess, order: DocumentOrder): Promise<Packed | undefined> {
    const isFresh = reader.answers === 0;
    reader.idle?.cancel();
    let isLate = false;
    const limit = this.clock.after(LONGEST_MS, () => {
      isLate = true;
      void reader.kill();
    });
    try {
      const { isLast, packed } = await reader.ask(order);
      if (isLast) this.#forget(reader);
      else this.#keep(reader);
      return packed;
    } catch (error) {
      await reader.kill();
      if (this.#closing.signal.aborted) return STALE;
      if (isLate) return { kind: 'refused', trouble: TOO_SLOW };
      return isFresh ? { kind: 'refused', trouble: troubleOf(error) } : undefined;
    } finally {
      limit.cancel();
    }
  }
}

const TOO_SLOW = unreadableDocument('DOCUMENT_TOO_LARGE', `it takes longer than ${LONGEST_MS / 1000} s`);

/** Explains what a document did to the process that read it. */
function troubleOf(error: unknown): ReturnType<typeof unreadableDocument> {
  if (error instanceof ProcessEnded && MEMORY_SIGNALS.has(error.signal))
    return unreadableDocument('DOCUMENT_TOO_LARGE', 'it takes too much memory');
  return unreadableDocument('DOCUMENT_BROKEN', `the program that reads it failed (${messageOf(error)})`);
}

/** Thrown where a process ended instead of an answer. */
class ProcessEnded extends Error {
  constructor(
    how: string,
    readonly signal: NodeJS.Signals | null,
  ) {
    super(how);
  }
}

/** One process. It answers one order after the other. */
class ReaderProcess {
  /** Ends the process when it was idle for long. */
  idle: Timer | undefined;
  /** How many orders it has answered. */
  answers = 0;
  /** Resolves when it has ended. Never rejects. */
  readonly ended: Promise<void>;

  readonly #process: ChildProcess;
  readonly #frames = new FrameReader(LARGEST_ANSWER);
  #waiting:
    | { readonly resolve: (answer: Frame) => void; readonly reject: (error: Error) => void }
    | undefined;
  #end: Error | undefined;

  constructor(program: URL) {
    this.#process = spawn(process.execPath, [...FLAGS, fileURLToPath(program), `${process.pid}`], {
      // The daemon's environment may hold passwords, and options for the daemon alone.
      env: { MALLOC_ARENA_MAX: '2', ...(process.env.TZ === undefined ? {} : { TZ: process.env.TZ }) },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const { stdin, stdout } = this.#process;
    // A pipe that breaks tells nothing more than the end of the process.
    stdin?.on('error', () => {});
    stdout?.on('error', () => {});
    stdout?.on('data', (bytes: Buffer) => this.#take(bytes));
    this.ended = new Promise((resolve) => {
      const end = (error: Error) => {
        this.idle?.cancel();
        this.#fail(error);
        resolve();
      };
      this.#process.once('error', end);
      this.#process.once('close', (code, signal) =>
        end(
          new ProcessEnded(signal === null ? `it ended with code ${code}` : `it ended by ${signal}`, signal),
        ),
      );
    });
  }

  /** The next message. @throws Error when the process ends, or writes what is no message */
  async next(): Promise<Frame> {
    return await new Promise((resolve, reject) => {
      if (this.#end !== undefined) reject(this.#end);
      else this.#waiting = { resolve, reject };
    });
  }

  /** @throws Error as `next` does, and for what is no answer to this order */
  async ask(order: DocumentOrder): Promise<DocumentAnswer> {
    const request: DocumentRequest = { id: this.answers, order, mostBytes: LARGEST_ANSWER };
    this.#process.stdin?.write(`${JSON.stringify(request)}\n`);
    const answer = answerOf(await this.next(), request);
    this.answers += 1;
    return answer;
  }

  /** Ends the process, whatever it does. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.ended;
  }

  #take(bytes: Buffer): void {
    try {
      for (const answer of this.#frames.take(bytes)) {
        if (this.#waiting === undefined) throw new Error('it answered without an order');
        this.#waiting.resolve(answer);
        this.#waiting = undefined;
      }
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      void this.kill();
    }
  }

  #fail(error: Error): void {
    this.#end ??= error;
    this.#waiting?.reject(this.#end);
    this.#waiting = undefined;
  }
}
