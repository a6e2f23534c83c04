import type { FileHandle } from 'node:fs/promises';
import type { MessagePort, Worker } from 'node:worker_threads';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Encoding, FileStat } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';

/**
 * The questions that the peer asks the daemon that runs it, and how they travel between the threads
 * of the two.
 */

/** The file of a confirmed document, or why it is not served. */
export type OriginalAnswer =
  | {
      readonly kind: 'opened';
      /** Open for reading. Whoever receives it closes it. */
      readonly handle: FileHandle;
      /** The name of the file, without its directories. */
      readonly name: string;
      /** The stat of the version that was confirmed, which the open file has. */
      readonly stat: FileStat;
      readonly sha256: string;
      readonly encoding: Encoding;
    }
  | {
      readonly kind: 'refused';
      readonly status: 404 | 409 | 503;
      /** One sentence about the reason, and one about what to do. */
      readonly message: string;
    };

/** A word to look for in the paths of files, folded as in `words.ts`. */
export interface SoughtWord {
  readonly spellings: readonly string[];
  /** Whether the word may go on. */
  readonly isPrefix: boolean;
}

/** A file that is skipped or quarantined. */
export interface NotIndexedFile {
  /** The absolute path. */
  readonly path: string;
  readonly status: 'skipped' | 'quarantined';
  readonly code: string;
  /** One sentence about the reason. */
  readonly reason: string;
  /** One sentence about what to do. */
  readonly hint: string;
  /** The command that explains the file. */
  readonly command: string;
  /** Set if the peer was sent an older version, which may still be searchable. */
  readonly isOlderSearchable?: true;
}

export interface NotIndexedFiles {
  /** The best matches, at most five. */
  readonly files: readonly NotIndexedFile[];
  /** The number of matches. A lower bound unless `totalIsExact`. */
  readonly total: number;
  /** False if there are so many such files that the names of some were not looked at. */
  readonly totalIsExact: boolean;
}

export interface ResultsQuestion {
  /** The URLs of the documents on the page. */
  readonly urls: readonly string[];
  /** The words for files that are not indexed; undefined if none are looked for. */
  readonly words?: readonly SoughtWord[] | undefined;
}

export interface ResultsFacts {
  /** For each URL, whether `openOriginal` is likely to open a file. */
  readonly originals: readonly boolean[];
  readonly notIndexed?: NotIndexedFiles | undefined;
}

/** The knowledge of the daemon that the pages of its peer show. */
export interface DaemonFacts {
  /** Opens the file of a document if it is confirmed in the version on disk. */
  openOriginal(url: string): Promise<OriginalAnswer>;
  /** Answers within a few milliseconds, without a look at the disk. */
  aboutResults(question: ResultsQuestion): Promise<ResultsFacts>;
}

/** The longest wait for facts about results, in ms. A page is sent without them after that. */
const MAX_WAIT_MS = 250;
const NO_FACTS: ResultsFacts = { originals: [] };

/**
 * The daemon of a peer. It is *unknown* until `facts` is set, and for good if the peer runs alone.
 * Pages show no originals and no files that are not indexed then.
 */
export class PeerDaemon {
  facts: DaemonFacts | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** Returns what the daemon knows about results; nothing if it does not answer soon. */
  async aboutResults(question: ResultsQuestion): Promise<ResultsFacts> {
    const { facts } = this;
    const isEmpty = question.urls.length === 0 && question.words === undefined;
    if (facts === undefined || isEmpty) return NO_FACTS;
    const wait = new AbortController();
    const none = this.clock.sleep(MAX_WAIT_MS, wait.signal).then(() => NO_FACTS);
    try {
      return await Promise.race([facts.aboutResults(question), none]);
    } catch (error) {
      this.log.error({ err: messageOf(error) }, 'The daemon failed on a question of its peer');
      return NO_FACTS;
    } finally {
      wait.abort();
    }
  }
}

/** The arguments of each question, by its name. */
type Questions = {
  readonly [Name in keyof DaemonFacts]: Parameters<DaemonFacts[Name]>[0];
};

/** A question of the peer's thread. */
export interface Question<Name extends keyof DaemonFacts = keyof DaemonFacts> {
  readonly type: 'question';
  readonly id: number;
  readonly name: Name;
  readonly value: Questions[Name];
}

/** The answer of the daemon's thread to the question with the same number. */
export type Answer = { readonly type: 'answer'; readonly id: number } & (
  | { readonly value: unknown }
  | { readonly failure: string }
);

/** Answers a question of the peer's thread. A file that the thread cannot take is closed. */
export async function answerQuestion(
  { id, name, value }: Question,
  facts: DaemonFacts,
  worker: Pick<Worker, 'postMessage'>,
): Promise<void> {
  const send = (answer: Answer, transfer: readonly FileHandle[] = []): void =>
    worker.postMessage(answer, transfer);
  let opened: FileHandle | undefined;
  try {
    if (name === 'aboutResults') {
      const answer = await facts.aboutResults(value as ResultsQuestion);
      send({ type: 'answer', id, value: answer });
      return;
    }
    const answer = await facts.openOriginal(value as string);
    opened = answer.kind === 'opened' ? answer.handle : undefined;
    send({ type: 'answer', id, value: answer }, opened === undefined ? [] : [opened]);
  } catch (error) {
    await opened?.close();
    send({ type: 'answer', id, failure: messageOf(error) });
  }
}

/** The facts of a daemon in another thread. */
export class DistantFacts implements DaemonFacts {
  readonly #waiting = new Map<
    number,
    { readonly resolve: (value: never) => void; readonly reject: (error: Error) => void }
  >();
  #last = 0;

  constructor(private readonly port: Pick<MessagePort, 'postMessage'>) {}

  openOriginal(url: string): Promise<OriginalAnswer> {
    return this.#ask('openOriginal', url);
  }

  aboutResults(question: ResultsQuestion): Promise<ResultsFacts> {
    return this.#ask('aboutResults', question);
  }

  /** Called with each answer. */
  answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ('failure' in answer) waiting?.reject(new Error(answer.failure));
    else waiting?.resolve(answer.value as never);
  }

  #ask<Name extends keyof DaemonFacts, Value>(name: Name, value: Questions[Name]): Promise<Value> {
    this.#last += 1;
    const question: Question<Name> = { type: 'question', id: this.#last, name, value };
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.set(question.id, { resolve, reject });
      this.port.postMessage(question);
    });
  }
}
