import { basename } from 'node:path';
import { extractKey, type StoredExtract } from '../content/extracts.js';
import { refusalFor } from '../content/file-reader.js';
import { messageOf } from '../lib/errors.js';
import type { UplinkDeps } from './deps.js';
import type { ReadersFailure } from './document-processes.js';
import {
  type DocumentOrder,
  type Extracted,
  isSentAsText,
  isTooLarge,
  refused,
  STALE,
  type Unsendable,
} from './documents.js';

/** Delay before a text is stored again that the disk did not take, in ms. */
const STORE_AGAIN_MS = 10_000;
const NOT_STORED_HINT =
  'It is tried again by itself, and text goes on. Free some space there, or make it writable.';

/** A document to be extracted in the form in which it is sent. */
export interface ExtractOrder extends Omit<DocumentOrder, 'wanted'> {
  /** Whether the text of a document is sent even if the peer accepts the document itself. */
  readonly isExtracted: boolean;
}

/** The result of extracting a document. */
export type Found =
  | {
      readonly kind: 'ready';
      /** The key in the cache; undefined if the cache does not have it. */
      readonly key?: string;
      readonly extract: StoredExtract;
    }
  | Unsendable;

/**
 * Extracts one document: decides whether its text or the document itself is sent, and has the text
 * extracted, or its words counted, unless the cache knows them. The same document under several
 * names is read once.
 */
export class Extractor {
  readonly #deps: Pick<UplinkDeps, 'clock' | 'extracts' | 'log' | 'readers'>;
  /** The readings under way, by the key of the cache. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  /** Keys of entries in the cache that turned out to be damaged. */
  readonly #damaged = new Set<string>();
  /** The reason why no text can be stored. */
  failure: ReadersFailure | undefined;

  constructor(deps: Pick<UplinkDeps, 'clock' | 'extracts' | 'log' | 'readers'>) {
    this.#deps = deps;
  }

  async extract(order: ExtractOrder, signal: AbortSignal): Promise<Found> {
    const { isExtracted, ...file } = order;
    const { rules, version } = file;
    let isText: boolean;
    try {
      isText = await isSentAsText(file, isExtracted, rules);
    } catch (error) {
      return refused(refusalFor(error));
    }
    if (!isText && isTooLarge(version, rules)) return { kind: 'tooLarge' };
    const wanted = isText ? 'text' : 'words';
    const variant = isText && rules.readsTextAsHtml ? 'text without markup' : wanted;
    const key = extractKey(version.sha256, basename(file.file), variant);
    while (this.#underWay.has(key)) await this.#underWay.get(key);
    const reading = this.#read(key, { ...file, wanted }, signal);
    const ended = reading.catch(() => {});
    this.#underWay.set(key, ended);
    try {
      return await reading;
    } finally {
      this.#underWay.delete(key);
    }
  }

  /** Has a damaged entry of the cache replaced when it is needed next. */
  drop(key: string): void {
    this.#damaged.add(key);
  }

  async #read(key: string, order: DocumentOrder, signal: AbortSignal): Promise<Found> {
    const { extracts, readers } = this.#deps;
    // What is read again replaces a damaged entry.
    const known = this.#damaged.delete(key) ? undefined : await extracts.find(key);
    if (known !== undefined) return { kind: 'ready', key, extract: known };
    const read = await readers.extractDocument(order);
    if (read.kind === 'extracted') return await this.#store(key, read, signal);
    // The peer may read the document better: it is sent without a count of its words.
    return read.kind === 'refused' && order.wanted === 'words'
      ? { kind: 'ready', extract: { words: undefined } }
      : read;
  }

  /** Stores a text, and tries until the disk takes it: reading the document again takes longer. */
  async #store(
    key: string,
    text: Extract<Extracted, { kind: 'extracted' }>,
    signal: AbortSignal,
  ): Promise<Found> {
    const { clock, extracts, log } = this.#deps;
    for (;;) {
      try {
        const extract = await extracts.store(key, text);
        this.failure = undefined;
        return { kind: 'ready', key, extract };
      } catch (error) {
        if (signal.aborted) return STALE;
        const message = `The texts of documents cannot be stored in \`extracts\` below state.dir (${messageOf(error)}).`;
        const since = this.failure?.since ?? clock.now();
        if (this.failure === undefined) log.error({ event: 'documents-not-stored' }, message);
        this.failure = { code: 'DOCUMENTS_NOT_STORED', message, hint: NOT_STORED_HINT, since };
      }
      await clock.sleep(STORE_AGAIN_MS, signal);
    }
  }
}
