import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { PageProgress } from '../content/readers/document-reader.js';
import type { Timer } from '../lib/clock.js';
import { type Frame, FrameReader } from '../lib/pipe-messages.js';
import {
  answerOf,
  type DocumentAnswer,
  type DocumentRequest,
  progressOf,
} from './document-answer.js';
import type { DocumentOrder } from './documents.js';

/** Maximum processor time for one document, and for each page of a PDF, in ms. */
export const MAX_CPU_MS = 60_000;
/** Maximum size of the page of one document, in bytes. */
const MAX_ANSWER_BYTES = 96 * 2 ** 20;
/**
 * Options of Node that limit the heap of a process, in MiB. `document-process.ts` limits its whole
 * memory.
 */
const FLAGS = ['--max-old-space-size=256', '--max-semi-space-size=4'];
/** Number of characters of the error output that are kept until a process is ready. */
const ERROR_TAIL_CHARACTERS = 2048;

/** Thrown when a process ended without an answer. */
export class ProcessEnded extends Error {
  constructor(
    how: string,
    readonly signal: NodeJS.Signals | null,
  ) {
    super(how);
  }
}

/** One process. It answers one order at a time. */
export class ReaderProcess {
  /** The timer that ends the idle process. */
  idle: Timer | undefined;
  /** The number of orders that it has answered. */
  answers = 0;
  /** The end of its error output from before it was ready. */
  errorTail = '';
  /** Resolves when the process has ended. Never rejects. */
  readonly ended: Promise<void>;

  readonly #process: ChildProcess;
  readonly #frames = new FrameReader(MAX_ANSWER_BYTES);
  #waiting:
    | { readonly resolve: (message: Frame) => void; readonly reject: (error: Error) => void }
    | undefined;
  /** Messages that were not asked for yet: pages of a document are reported one after another. */
  readonly #received: Frame[] = [];
  /** Whether an order is being answered, or the process is starting. */
  #isExpected = true;
  #end: Error | undefined;
  #isReady = false;

  constructor(
    program: URL,
    readonly directory: string,
    private readonly pages: string,
  ) {
    const { LANG, PATH, TZ } = process.env;
    this.#process = spawn(process.execPath, [...FLAGS, fileURLToPath(program), `${process.pid}`], {
      // The daemon's environment may hold passwords, and options for the daemon alone.
      env: {
        MALLOC_ARENA_MAX: '2',
        ...(LANG !== undefined && { LANG }),
        ...(PATH !== undefined && { PATH }),
        ...(TZ !== undefined && { TZ }),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
      // The process leads a group of its own.
      detached: true,
    });
    const { stderr, stdin, stdout } = this.#process;
    // A broken pipe adds nothing to the end of the process.
    for (const pipe of [stderr, stdin, stdout]) pipe?.on('error', () => {});
    stdout?.on('data', (bytes: Buffer) => this.#take(bytes));
    stderr?.on('data', (bytes: Buffer) => {
      if (!this.#isReady)
        this.errorTail = `${this.errorTail}${bytes}`.slice(-ERROR_TAIL_CHARACTERS);
    });
    this.ended = new Promise((resolve) => {
      const end = (error: Error) => {
        this.idle?.cancel();
        this.#killGroup();
        this.#fail(error);
        // Another program may hold these pipes open.
        stdout?.destroy();
        stderr?.destroy();
        resolve();
      };
      this.#process.once('error', end);
      this.#process.once('exit', (code, signal) => {
        const how = signal === null ? `it ended with code ${code}` : `it ended by ${signal}`;
        // The pipes may still hold output.
        setImmediate(() => end(new ProcessEnded(how, signal)));
      });
    });
  }

  /**
   * Returns the next message.
   * @throws Error if the process ends, or writes an invalid message
   */
  async next(): Promise<Frame> {
    const received = this.#received.shift();
    if (received !== undefined) return received;
    return await new Promise((resolve, reject) => {
      if (this.#end !== undefined) reject(this.#end);
      else this.#waiting = { resolve, reject };
    });
  }

  /**
   * Sends an order and returns its answer.
   * @throws Error as `next` does, or if the answer is invalid or belongs to another order
   */
  async ask(
    order: DocumentOrder,
    onProgress: (progress: PageProgress) => void,
  ): Promise<DocumentAnswer> {
    const request: DocumentRequest = {
      id: this.answers,
      order,
      directory: this.directory,
      pages: this.pages,
      mostBytes: MAX_ANSWER_BYTES,
      mostCpuMs: MAX_CPU_MS,
    };
    if (this.#received.length > 0) throw new Error('it answered without an order');
    this.#isExpected = true;
    this.#process.stdin?.write(`${lineOf(request)}\n`);
    for (;;) {
      const message = await this.next();
      const progress = progressOf(message, request);
      if (progress === undefined) {
        const answer = answerOf(message, request);
        this.#isExpected = false;
        this.answers += 1;
        return answer;
      }
      onProgress(progress);
    }
  }

  /**
   * Kills the process.
   * @param why the error with which a pending `next` rejects
   */
  async kill(why?: Error): Promise<void> {
    if (why !== undefined) this.#fail(why);
    this.#killGroup();
    await this.ended;
  }

  /** Kills the process, and the programs that it started. */
  #killGroup(): void {
    const { pid } = this.#process;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The group has ended.
    }
  }

  #take(bytes: Buffer): void {
    try {
      for (const message of this.#frames.take(bytes)) {
        if (!this.#isExpected) throw new Error('it answered without an order');
        this.#isReady = true;
        if (this.#waiting === undefined) this.#received.push(message);
        else this.#waiting.resolve(message);
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

/** Returns JSON in one line. Two other characters also end a line for the process. */
function lineOf(request: DocumentRequest): string {
  return JSON.stringify(request).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}
