import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { isThereNow } from '../content/helpers/programs.js';
import { AWAITS_PROGRAM } from '../content/helpers/readable.js';
import type { PageProgress } from '../content/readers/document-reader.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { resultOf } from '../uplink/document-answer.js';
import type { DocumentOrder, Extracted, Packers } from '../uplink/documents.js';
import { programsDigest } from './abilities.js';
import type { JobEnd, JobQueue } from './job-queue.js';
import type { FleetOwner } from './owner.js';
import {
  EXTRACT_RESULT,
  type ExtractJob,
  type ExtractResult,
  MAX_TEXT_BYTES,
  PROGRESS,
} from './protocol.js';

const unzip = promisify(gunzip);
/** The most bytes of a text that was uncompressed. */
const MAX_PAGE_BYTES = 96 * 2 ** 20;
/** The most times that workers may lose a document until it is read here. */
const MAX_LOST = 3;

type ExtractDocument = Packers['extractDocument'];
type OnProgress = (progress: PageProgress) => void;

interface SharedReadersDeps {
  readonly owner: Pick<
    FleetOwner,
    'abilities' | 'keys' | 'looked' | 'redis' | 'refresh' | 'takeEarlier'
  >;
  /** The jobs that workers do. */
  readonly jobs: Pick<JobQueue, 'resume' | 'run'>;
  readonly log: Logger;
  /** Reads a document on this machine. */
  readonly here: ExtractDocument;
  /** The most documents that are read on this machine at the same time. */
  readonly slotsHere: () => number;
  /** The most documents that workers read at the same time. */
  readonly slotsElsewhere: () => number;
}

type Place = 'here' | 'elsewhere';

/** A document that waits until it can be read somewhere. */
interface Waiting {
  /** Whether a worker may read it. */
  readonly mayLeave: boolean;
  readonly start: (place: Place) => void;
}

/** The job of a document: what it reads, and how. */
type Job = Omit<ExtractJob, 'abilities' | 'epoch'>;

/** The result of a worker. */
type Answer =
  | { readonly kind: 'read'; readonly extracted: Extracted }
  /** Another worker may read it. */
  | { readonly kind: 'lost' }
  /** This machine has to read it. */
  | { readonly kind: 'notThere' };

type WhyNotHere = Extract<ExtractResult, { kind: 'notHere' }>['why'];

const LOST: Answer = { kind: 'lost' };
const NOT_THERE: Answer = { kind: 'notThere' };

/**
 * Reads documents on this machine as long as one more can be read here, and else by workers. A
 * document waits while neither has room.
 *
 * - What a worker cannot do is read here, and so is a document that ended the workers which tried
 *   it.
 * - What a worker has lost, because it stopped or Redis forgot the job, waits again for a place.
 *   After three times it is read here.
 * - What a worker reads, or has read, for an earlier run of the owner is awaited. No document is
 *   read before it is known which these are, or this was asked for 10 s.
 *
 * The text of a worker counts only if the worker read the version that was asked for. "Not that
 * version" is never believed: the worker's view of a network file system may be older than ours.
 */
export class SharedReaders {
  readonly #deps: SharedReadersDeps;
  readonly #waiting: Waiting[] = [];
  readonly #used = { here: 0, elsewhere: 0 };

  constructor(deps: SharedReadersDeps) {
    this.#deps = deps;
  }

  /**
   * The number of documents that may be under way beside those that are read here: as many as
   * workers can read, and those that wait to be read here, so that they do not take the places of
   * workers. At most twice as many as workers can read.
   */
  get elsewhere(): number {
    const slots = this.#deps.slotsElsewhere();
    const awaited = this.#waiting.filter(({ mayLeave }) => !mayLeave).length;
    return slots + Math.min(slots, awaited);
  }

  /** Must be called after `elsewhere`, or the number of slots here, has changed. */
  readonly startWaiting = (): void => {
    for (const waiting of [...this.#waiting]) {
      const place = this.#freePlace(waiting.mayLeave);
      if (place === undefined) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      this.#used[place] += 1;
      waiting.start(place);
    }
  };

  readonly extractDocument: ExtractDocument = async (order, onProgress = () => {}) => {
    const { owner } = this.#deps;
    const job = jobOf(order);
    await owner.looked;
    let earlier = job && owner.takeEarlier(job);
    let mayLeave = job !== undefined;
    for (let lost = 0; ; ) {
      const place = earlier === undefined ? await this.#place(mayLeave) : this.#placeElsewhere();
      try {
        if (place === 'here' || job === undefined) return await this.#deps.here(order, onProgress);
        const answer = await this.#readElsewhere(job, earlier, order, onProgress);
        earlier = undefined;
        if (answer.kind === 'read') return answer.extracted;
        if (answer.kind === 'lost') lost += 1;
        mayLeave = answer.kind === 'lost' && lost < MAX_LOST;
      } finally {
        this.#used[place] -= 1;
        this.startWaiting();
      }
    }
  };

  /** Waits until the document can be read somewhere, and takes the place. */
  async #place(mayLeave: boolean): Promise<Place> {
    return await new Promise((start) => {
      this.#waiting.push({ mayLeave, start });
      this.startWaiting();
    });
  }

  /** Takes the place of a job that a worker has already. */
  #placeElsewhere(): Place {
    this.#used.elsewhere += 1;
    return 'elsewhere';
  }

  #freePlace(mayLeave: boolean): Place | undefined {
    const { slotsElsewhere, slotsHere } = this.#deps;
    if (this.#used.here < Math.max(1, slotsHere())) return 'here';
    return mayLeave && this.#used.elsewhere < slotsElsewhere() ? 'elsewhere' : undefined;
  }

  /** @param earlier the id of a job of an earlier run that reads the same */
  async #readElsewhere(
    job: Job,
    earlier: string | undefined,
    order: DocumentOrder,
    onProgress: OnProgress,
  ): Promise<Answer> {
    const { jobs, owner } = this.#deps;
    const report = (progress: unknown) => {
      const { data } = PROGRESS.safeParse(progress);
      if (data !== undefined) onProgress(data);
    };
    if (earlier !== undefined)
      return await this.#answerOf(await jobs.resume(earlier, report), order);
    const abilities = await owner.abilities.digestOf(order.programs);
    const end = await jobs.run({ ...job, abilities }, report);
    return await this.#answerOf(end, order);
  }

  async #answerOf(end: JobEnd, order: DocumentOrder): Promise<Answer> {
    if (end.kind === 'lost') return LOST;
    if (end.kind === 'failed') return NOT_THERE;
    try {
      const answer = EXTRACT_RESULT.parse(end.value);
      if (answer.kind === 'notHere') return await this.#answerOfNotHere(answer.why);
      const { result, text } = answer;
      if (result.kind === 'stale' || result.kind === 'unreadable') return NOT_THERE;
      if (result.kind === 'refused' && AWAITS_PROGRAM.has(result.failure.code)) return NOT_THERE;
      // This machine has a program that the worker lacks.
      if (result.kind === 'extracted' && isThereNow(order.programs, result.lacks)) return NOT_THERE;
      const hasText = result.kind === 'extracted' && result.extracted !== undefined;
      if (hasText !== (text !== undefined)) throw new Error('it has no text, or one too many');
      const page = text === undefined ? new Uint8Array() : await this.#textAt(text);
      if (page === undefined) return LOST;
      return { kind: 'read', extracted: resultOf(result, page, order) };
    } catch (error) {
      this.#deps.log.warn(
        { event: 'fleet-result' },
        `the answer of a worker cannot be used (${messageOf(error)}); the document is read here`,
      );
      return NOT_THERE;
    }
  }

  async #answerOfNotHere(why: WhyNotHere): Promise<Answer> {
    if (why === 'program' || why === 'too large') return NOT_THERE;
    // That worker may take no more jobs. Without this look, its slots would be counted on.
    await this.#deps.owner.refresh();
    return LOST;
  }

  /**
   * Returns a text; undefined if Redis does not have it any more.
   *
   * @throws Error if it is damaged, or larger than those of workers
   */
  async #textAt(name: string): Promise<Buffer | undefined> {
    const { keys, redis } = this.#deps.owner;
    const key = keys.text(name);
    const size = await redis.strlen(key);
    if (size > MAX_TEXT_BYTES) throw new Error(`its text has ${size} bytes, compressed`);
    const packed = await redis.getdelBuffer(key);
    if (packed === null) return undefined;
    return await unzip(packed, { maxOutputLength: MAX_PAGE_BYTES });
  }
}

/** Returns the job to read a document; undefined if only this machine may read it. */
function jobOf({ item, programs, rules, version, wanted }: DocumentOrder): Job | undefined {
  const { readsTextAsHtml } = rules;
  return item && { ...item, version, wanted, readsTextAsHtml, programs: programsDigest(programs) };
}
