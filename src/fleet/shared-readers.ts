import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { isThereNow } from '../content/helpers/programs.js';
import { AWAITS_PROGRAM } from '../content/helpers/readable.js';
import type { PageProgress } from '../content/readers/document-reader.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { ItemKey } from '../state/entries.js';
import { resultOf } from '../uplink/document-answer.js';
import type { DocumentOrder, Extracted, Packers } from '../uplink/documents.js';
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
  readonly owner: Pick<FleetOwner, 'extract' | 'keys' | 'redis' | 'refresh'>;
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
    const { item } = order;
    let mayLeave = item !== undefined;
    for (let lost = 0; ; ) {
      const place = await this.#place(mayLeave);
      try {
        if (place === 'here' || item === undefined) return await this.#deps.here(order, onProgress);
        const answer = await this.#readElsewhere(item, order, onProgress);
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

  #freePlace(mayLeave: boolean): Place | undefined {
    const { slotsElsewhere, slotsHere } = this.#deps;
    if (this.#used.here < Math.max(1, slotsHere())) return 'here';
    return mayLeave && this.#used.elsewhere < slotsElsewhere() ? 'elsewhere' : undefined;
  }

  async #readElsewhere(
    item: ItemKey,
    order: DocumentOrder,
    onProgress: OnProgress,
  ): Promise<Answer> {
    const { rules, version, wanted } = order;
    const { owner, log } = this.#deps;
    const { readsTextAsHtml } = rules;
    const job: Omit<ExtractJob, 'epoch'> = { ...item, version, wanted, readsTextAsHtml };
    const end = await owner.extract.run(job, (progress) => {
      const { data } = PROGRESS.safeParse(progress);
      if (data !== undefined) onProgress(data);
    });
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
      return { kind: 'read', extracted: resultOf(result, page, order) };
    } catch (error) {
      log.warn(
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

  /** @throws Error if the text is not there any more, damaged, or larger than those of workers */
  async #textAt(name: string): Promise<Buffer> {
    const { keys, redis } = this.#deps.owner;
    const key = keys.text(name);
    const size = await redis.strlen(key);
    if (size > MAX_TEXT_BYTES) throw new Error(`its text has ${size} bytes, compressed`);
    const packed = await redis.getdelBuffer(key);
    if (packed === null) throw new Error('its text is not in Redis any more');
    return await unzip(packed, { maxOutputLength: MAX_PAGE_BYTES });
  }
}
