import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import { extractKey, type StoredExtract } from '../content/extracts.js';
import { refusalFor } from '../content/file-reader.js';
import { isThereNow } from '../content/helpers/programs.js';
import type { PageProgress } from '../content/readers/document-reader.js';
import type { StoredRefusal } from '../content/refusals.js';
import { messageOf } from '../lib/errors.js';
import type { DocumentKind } from '../lib/file.js';
import type { UplinkDeps } from './deps.js';
import type { ReadersFailure } from './document-processes.js';
import {
  type DocumentForm,
  type DocumentOrder,
  type Extracted,
  formOf,
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
export interface ExtractOrder extends Omit<DocumentOrder, 'wanted' | 'programs'> {
  /** Whether the text of a document is sent even if the peer accepts the document itself. */
  readonly asksForText: boolean;
}

type ExtractorDeps = Pick<UplinkDeps, 'clock' | 'extracts' | 'log' | 'programs' | 'readers'>;

/** The result of extracting a document. */
export type Found =
  | {
      readonly kind: 'ready';
      /** The key in the cache; undefined if the cache does not have it. */
      readonly key?: string;
      readonly extract: StoredExtract;
    }
  | Unsendable;

/** The file itself is sent, without a count of its words. */
const AS_IT_IS: Found = { kind: 'ready', extract: { words: undefined } };

/**
 * Extracts one document: decides whether its text or the document itself is sent, and has the text
 * extracted, or its words counted, unless the cache knows them.
 */
export class Extractor {
  readonly #deps: ExtractorDeps;
  /** Keys of entries in the cache that turned out to be damaged. */
  readonly #damaged = new Set<string>();
  /** The reason why no text can be stored. */
  failure: ReadersFailure | undefined;
  /** The numbers of documents and pages that were read since the start. */
  readonly totals = { documents: 0, pages: 0, ocrPages: 0 };

  constructor(deps: ExtractorDeps) {
    this.#deps = deps;
  }

  /** @param onProgress called after each page, if the document has pages and is read now */
  async extract(
    order: ExtractOrder,
    signal: AbortSignal,
    onProgress: (progress: PageProgress) => void = () => {},
  ): Promise<Found> {
    const { asksForText, ...file } = order;
    const { rules, version } = file;
    const programs = this.#deps.programs.current;
    let sent: DocumentForm;
    try {
      sent = await formOf(file, asksForText, rules, programs);
    } catch (error) {
      return refused(refusalFor(error));
    }
    const { form, kind, lacks } = sent;
    if ((form === 'words' || form === 'file') && isTooLarge(version, rules))
      return { kind: 'tooLarge' };
    if (form === 'file')
      return { kind: 'ready', extract: { words: undefined, lacks: lacks && [lacks] } };
    const read = (wanted: DocumentOrder['wanted']) =>
      this.#read({ ...file, wanted, programs }, sent.programs, signal, onProgress);
    const found = await read(form);
    // The peer may read an old format by itself.
    const isPeers = kind === 'helper' && found.kind === 'refused';
    if (form === 'text') return isPeers ? this.#orAsItIs(found, order, kind) : found;
    if (form === 'words' || kind !== 'pdf' || found.kind !== 'refused')
      return this.#orAsItIs(found, order, kind);
    // The pages of a PDF that OCR cannot read may have no word that the peer could find.
    const words = await read('words');
    const hasWords =
      words.kind === 'refused' || (words.kind === 'ready' && words.extract.words !== 0);
    return hasWords ? this.#orAsItIs(words, order, kind) : found;
  }

  /**
   * Returns what is sent of a document that a peer takes as a file: its text, if it is a scan, or
   * else the file. A document without a word is not sent, because nobody would find it. A
   * photograph is, because some peers show pictures.
   */
  #orAsItIs(found: Found, { rules, version }: ExtractOrder, kind: DocumentKind | undefined): Found {
    if (found.kind === 'ready' && found.extract.page !== undefined) return found;
    const isWordless =
      found.kind === 'ready' ? found.extract.words === 0 : found.kind === 'wordless';
    if (isWordless && kind !== 'picture') return { kind: 'wordless', reader: kind ?? 'document' };
    const isUnread = found.kind === 'refused' && found.failure.code !== 'NO_OCR';
    if (found.kind !== 'ready' && !isWordless && !isUnread) return found;
    if (isTooLarge(version, rules)) return { kind: 'tooLarge' };
    // The peer may read the document better: it is sent without a count of its words.
    return found.kind === 'ready' && !isWordless ? found : AS_IT_IS;
  }

  /** Has a damaged entry of the cache replaced when it is needed next. */
  drop(key: string): void {
    this.#damaged.add(key);
  }

  /**
   * Returns what the cache has of a document, or else reads it.
   * @param dependsOn see `DocumentForm.programs`
   */
  async #read(
    order: DocumentOrder,
    dependsOn: string,
    signal: AbortSignal,
    onProgress: (progress: PageProgress) => void,
  ): Promise<Found> {
    const { file, programs, rules, version, wanted } = order;
    const markup = wanted !== 'words' && rules.readsTextAsHtml ? 'without markup' : '';
    const variant = JSON.stringify([wanted, markup, dependsOn]);
    const key = extractKey(version.sha256, basename(file), variant);
    // What is read again replaces a damaged entry.
    const known = this.#damaged.delete(key) ? undefined : await this.#deps.extracts.find(key);
    if (known !== undefined && 'kind' in known) return known;
    if (known !== undefined && !isThereNow(programs, known.lacks))
      return { kind: 'ready', key, extract: known };
    const read = await this.#readNow(order, onProgress);
    if (read.kind === 'extracted') {
      // It must not answer for the same document later: it has a key that is never asked for.
      const isPartial = read.lacks?.includes('time');
      const itsKey = isPartial ? extractKey(version.sha256, '', randomUUID()) : key;
      return await this.#store(itsKey, read, signal);
    }
    if (isLasting(read)) await this.#storeRefusal(key, read);
    return read;
  }

  /** Reads a document, and counts it and its pages. */
  async #readNow(
    order: DocumentOrder,
    onProgress: (progress: PageProgress) => void,
  ): Promise<Extracted> {
    const { totals } = this;
    let counted = 0;
    const countTo = (page: number) => {
      totals.pages += Math.max(0, page - counted);
      counted = Math.max(counted, page);
    };
    const read = await this.#deps.readers.extractDocument(order, (progress) => {
      countTo(progress.page);
      onProgress(progress);
    });
    if (read.kind === 'stale' || read.kind === 'unreadable') return read;
    totals.documents += 1;
    const extracted = read.kind === 'extracted' ? read.page?.extracted : undefined;
    totals.ocrPages += extracted?.ocrPages ?? 0;
    countTo(extracted?.pages ?? 0);
    return read;
  }

  /** Stores why there is nothing to send. Without it, a copy is read again. */
  async #storeRefusal(key: string, refusal: StoredRefusal): Promise<void> {
    await this.#deps.extracts.storeRefusal(key, refusal).catch((error: unknown) => {
      this.#deps.log.debug({ event: 'documents-not-stored' }, messageOf(error));
    });
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

/** The failures of documents that depend on nothing but the document. */
const LASTING_FAILURES = new Set(['DOCUMENT_BROKEN', 'DOCUMENT_ENCRYPTED', 'DOCUMENT_TOO_LARGE']);

/** Whether another reading of the same document would end in the same way. */
function isLasting(read: Exclude<Extracted, { kind: 'extracted' }>): read is StoredRefusal {
  if (read.kind === 'wordless') return read.reader !== undefined;
  return (
    read.kind === 'refused' && read.isMomentary !== true && LASTING_FAILURES.has(read.failure.code)
  );
}
