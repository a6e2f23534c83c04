import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import PQueue from 'p-queue';
import type { PageProgress } from '../content/readers/document-reader.js';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Failure } from '../state/entry.js';
import { LIMIT_SIGNALS, MAX_PROCESS_BYTES } from './document-answer.js';
import { unreadableDocument } from './document-text.js';
import { type DocumentOrder, type Extracted, STALE } from './documents.js';
import { MAX_CPU_MS, ProcessEnded, ReaderProcess } from './reader-process.js';

/**
 * Maximum time for one document, or for each page of a document that has pages, in ms: on a busy
 * machine, it takes much longer than its processor time.
 */
const MAX_SILENCE_MS = 10 * 60_000;
/** Maximum time for one document, in ms. It ends a process that reports pages without end. */
const MAX_READING_MS = 24 * 60 * 60_000;
/** Maximum time until a process is ready, in ms. */
const START_MS = 30_000;
/**
 * Number of kills by the system after which a document is refused: the first one may have another
 * cause.
 */
const MAX_KILLS = 2;
/**
 * Delay before a process that did not start is started again, in ms: the first one and the longest
 * one.
 */
const RESTART_MS = 1_000;
const LONGEST_RESTART_MS = 60_000;
/** Idle time after which a process is ended, in ms: it takes about 80 MB. */
const IDLE_MS = 30_000;

/** Signals that end a process for lack of memory. V8 uses the last three for a full heap. */
const MEMORY_SIGNALS = new Set<NodeJS.Signals | null>([
  LIMIT_SIGNALS.memory,
  'SIGABRT',
  'SIGILL',
  'SIGTRAP',
]);

/**
 * Returns how many documents are read at the same time unless the configuration says otherwise: as
 * many as there are processor cores without one, but no more than fit into half of the memory.
 * Otherwise the system would kill processes, and good documents would be refused for that.
 */
export function usualConcurrency(
  cores = availableParallelism(),
  memory = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem()),
): number {
  const fitting = Math.floor(memory / 2 / MAX_PROCESS_BYTES);
  return Math.max(1, Math.min(cores - 1, fitting));
}

/** The reason why no document can be read at present. */
export type ReadersFailure = Failure & {
  /** In ms since the epoch. */
  readonly since: number;
};

/**
 * Reads documents, each in a process that reads no other one meanwhile. As many processes run as
 * documents are read at the same time: the caller decides how many those are.
 *
 * A process may start programs, which belong to its process group. The group is killed when the
 * process has ended, so that nothing of it goes on.
 *
 * A hostile document can end only the process that reads it. The document is refused, and the next
 * one is read by another process. A failure is blamed on the document only if its process had read
 * nothing before; otherwise the document is read again by a new process. If the system killed the
 * process (SIGKILL, as it does when the machine lacks memory), the document is read once more
 * before it is refused.
 */
export class DocumentProcesses {
  /** Processes start one after the other. If none starts, one failure is told for all. */
  readonly #starts = new PQueue({ concurrency: 1 });
  /** The running processes, busy or idle. */
  readonly #readers = new Set<ReaderProcess>();
  /** The idle ones, the one that was busy last at the end. */
  readonly #idle: ReaderProcess[] = [];
  readonly #closing = new AbortController();
  /** The reason why no process starts; undefined if one does. */
  failure: ReadersFailure | undefined;

  /** Number of processes that were started. */
  #started = 0;

  /**
   * @param program the program of each process; see `document-process.ts`
   * @param directory a directory for the private files of the processes. It is made when needed.
   * @param pages the directory of the pages that were read by OCR; see `PageStore`
   */
  constructor(
    private readonly program: URL,
    private readonly directory: string,
    private readonly pages: string,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /**
   * Reads one document. Never rejects. After `close`, every document is reported as stale.
   *
   * @param onProgress called while a document with pages is read, at most a few times a second
   */
  async read(
    order: DocumentOrder,
    onProgress: (progress: PageProgress) => void = () => {},
  ): Promise<Extracted> {
    let kills = 0;
    let used = this.#idle.pop();
    for (;;) {
      const reader = used ?? (await this.#starts.add(() => this.#start()));
      if (reader === undefined) return STALE;
      used = undefined;
      const isFresh = reader.answers === 0;
      try {
        return await this.#readWith(reader, order, onProgress);
      } catch (error) {
        await reader.kill();
        if (this.#closing.signal.aborted) return STALE;
        // An earlier document may have damaged the process.
        if (!isFresh) continue;
        const isKilled = error instanceof ProcessEnded && error.signal === 'SIGKILL';
        if (isKilled) kills += 1;
        if (!isKilled || kills === MAX_KILLS)
          return { kind: 'refused', failure: troubleOf(error), isMomentary: true };
      }
    }
  }

  /** Ends all processes at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#readers].map((reader) => reader.kill()));
  }

  /**
   * Starts a process, and retries until it is ready.
   * @returns undefined after `close`
   */
  async #start(): Promise<ReaderProcess | undefined> {
    const { signal } = this.#closing;
    for (let pauseMs = RESTART_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_RESTART_MS)) {
      if (signal.aborted) return undefined;
      let reader: ReaderProcess | undefined;
      try {
        // Throws if the system has no memory for another process.
        reader = new ReaderProcess(this.program, this.#newDirectory(), this.pages);
        await this.#ready(reader);
        if (this.failure !== undefined)
          this.log.info({ event: 'documents-readable' }, 'Documents are read again.');
        this.failure = undefined;
        return reader;
      } catch (error) {
        if (signal.aborted) return undefined;
        this.#complain(error, reader?.errorTail ?? '', pauseMs);
      }
      await reader?.kill();
      await this.clock.sleep(pauseMs, signal);
    }
  }

  /** Removes private files of an earlier daemon. Must be called before the first document. */
  async removeLeftovers(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  /** Makes a directory for the private files of a process. */
  #newDirectory(): string {
    this.#started += 1;
    const directory = join(this.directory, `${this.#started}`);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return directory;
  }

  /**
   * Waits until a process is ready.
   * @throws Error if it is not ready in time
   */
  async #ready(reader: ReaderProcess): Promise<void> {
    this.#readers.add(reader);
    void reader.ended.then(() => {
      this.#readers.delete(reader);
      void rm(reader.directory, { recursive: true, force: true }).catch(() => {});
      const at = this.#idle.indexOf(reader);
      if (at !== -1) this.#idle.splice(at, 1);
    });
    const late = new Error(`it was not ready after ${START_MS / 1000} s`);
    const limit = this.clock.after(START_MS, () => void reader.kill(late));
    try {
      await reader.next();
    } finally {
      limit.cancel();
    }
  }

  /**
   * Records and logs that no process starts.
   * @param errorTail the end of the error output of the process
   */
  #complain(error: unknown, errorTail: string, pauseMs: number): void {
    const words = errorIn(errorTail);
    const why = words === undefined ? messageOf(error) : `${messageOf(error)} (${words})`;
    const message = `The program that reads documents does not start: ${why}.`;
    const since = this.failure?.since ?? this.clock.now();
    this.failure = { code: 'DOCUMENTS_UNREADABLE', message, hint: UNREADABLE_HINT, since };
    this.log.error(
      { event: 'documents-unreadable', stderr: errorTail },
      `${message} peersync tries again in ${pauseMs / 1000} s; until then no document is read.`,
    );
  }

  /** @throws Error if the process failed, perhaps because of an earlier document */
  async #readWith(
    reader: ReaderProcess,
    order: DocumentOrder,
    onProgress: (progress: PageProgress) => void,
  ): Promise<Extracted> {
    reader.idle?.cancel();
    // A page that is read by OCR is drawn first, and may be read once more.
    const { commandTimeoutMs = 0 } = order.programs ?? {};
    const maxSilenceMs = Math.max(MAX_SILENCE_MS, 2 * commandTimeoutMs);
    const limitTo = (ms: number) =>
      this.clock.after(ms, () => void reader.kill(new TooSlow('it takes too long')));
    const whole = limitTo(MAX_READING_MS);
    let silence = limitTo(maxSilenceMs);
    try {
      const { isLast, result } = await reader.ask(order, (progress) => {
        silence.cancel();
        silence = limitTo(maxSilenceMs);
        onProgress(progress);
      });
      // It ends before its successor starts: the two together would take more memory.
      if (isLast) await reader.kill();
      else this.#rest(reader);
      // A stop of the service ends the programs of a document, too, and that is not its fault.
      return this.#closing.signal.aborted ? STALE : result;
    } finally {
      whole.cancel();
      silence.cancel();
    }
  }

  #rest(reader: ReaderProcess): void {
    if (!this.#readers.has(reader)) return;
    reader.idle = this.clock.after(IDLE_MS, () => void reader.kill(), { background: true });
    this.#idle.push(reader);
  }
}

const UNREADABLE_HINT =
  'It is tried again by itself, and text goes on. Make room where memory or processes ran out; ' +
  'else install peersync anew.';

/** Returns the line of an error output that names the error. */
function errorIn(output: string): string | undefined {
  const lines = output.split('\n').map((line) => line.trim());
  const named =
    lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.findLast((line) => line !== '');
  return named?.slice(0, 300);
}

/** Explains how a document ended the process that read it. */
function troubleOf(error: unknown): Failure {
  const tooLarge = (why: string) => unreadableDocument('DOCUMENT_TOO_LARGE', why);
  const { signal = null } = error instanceof ProcessEnded ? error : {};
  if (error instanceof TooSlow)
    return tooLarge(`it, or one page of it, takes longer than ${MAX_SILENCE_MS / 60_000} min`);
  if (signal === LIMIT_SIGNALS.cpu)
    return tooLarge(
      `it, or one page of it, takes longer than ${MAX_CPU_MS / 1000} s of processor time`,
    );
  if (MEMORY_SIGNALS.has(signal)) return tooLarge('it takes too much memory');
  if (signal === 'SIGKILL')
    return tooLarge(
      'the system killed the program that reads it twice, as it does when the machine lacks memory',
    );
  return unreadableDocument(
    'DOCUMENT_BROKEN',
    `the program that reads it failed (${messageOf(error)})`,
  );
}

/** Thrown when reading a document takes too long. */
class TooSlow extends Error {}
