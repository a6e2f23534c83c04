import { createHash, type Hash, hash } from 'node:crypto';
import { basename } from 'node:path';
import {
  pieces,
  type ReadOrder,
  type Refusal,
  readWhole,
  refusalFor,
} from '../content/file-reader.js';
import { documentKind, HEAD_BYTES } from '../content/signatures.js';
import { NO_WORDS } from '../content/words.js';
import type { Clock } from '../lib/clock.js';
import type { Encoding } from '../lib/file.js';
import type { Rewriting } from '../lib/rewriting.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { type EncodedText, encode, type Text, type TextSource } from '../peer/form.js';
import type { Failure, Version } from '../state/entry.js';
import { rewritten, type UploadPlan, uploadPlanOf } from './upload-plan.js';

/** The result of reading a file for a push. */
export type Packed =
  | {
      readonly kind: 'content';
      readonly text: Text;
      /** Size of the content that is sent, before it is encoded for the request, in bytes. */
      readonly size: number;
      /** sha256 of the content that is sent, before it is encoded for the request. */
      readonly digest: string;
      /** Media type, if the peer accepts files; '' otherwise. */
      readonly type: string;
      /** Number of words, counted up to 100; undefined if they cannot be counted here. */
      readonly words: number | undefined;
      /**
       * The reader that extracted the text, and the number of words it found; only for a document.
       */
      readonly extracted?: Extracted;
    }
  /** A text without a word, or a document in which its reader found none. */
  | { readonly kind: 'wordless'; readonly reader?: string }
  /** A document that is sent unchanged, with its number of words, counted up to 100. */
  | { readonly kind: 'counted'; readonly words: number }
  /** A document that cannot be read. */
  | { readonly kind: 'refused'; readonly failure: Failure }
  /** The file is not in the expected version any more: it has to be looked at again. */
  | { readonly kind: 'stale' }
  /** The file is larger than the peer accepts in one document. */
  | { readonly kind: 'tooLarge' }
  | { readonly kind: 'unreadable'; readonly code: string };

/** The text that a reader extracted, described. */
export interface Extracted {
  /** Name of the reader, such as `PDF`. */
  readonly reader: string;
  readonly words: number;
}

/** A file to be read and encoded. */
export interface PackFile {
  readonly file: string;
  /** See `ReadOrder`. */
  readonly linksWithin?: string | undefined;
  readonly version: Version;
  /** Whether the text of a document is sent even if the peer accepts the document itself. */
  readonly isExtracted?: boolean;
}

/** Files to be read and encoded. */
export interface PackOrder {
  readonly rules: ContentRules;
  readonly files: readonly PackFile[];
}

/** Files of one batch. */
interface BatchOrder extends PackOrder {
  /** The batch is full at this many bytes of extracted text. */
  readonly maxBytes: number;
}

/** One document to be read. */
export interface DocumentOrder extends Omit<PackFile, 'isExtracted'> {
  readonly rules: ContentRules;
  /** The text of the document, encoded; or only its number of words. */
  readonly wanted: 'text' | 'words';
}

/** The functions that read and encode files. */
export interface Packers {
  /** Reads small files, all in one call. */
  readonly pack: (order: PackOrder) => Promise<readonly Packed[]>;
  /**
   * Extracts the text of a document, or counts its words. Resolves to undefined if `isWanted` is
   * false when its turn comes.
   */
  readonly packDocument: (
    order: DocumentOrder,
    isWanted: () => boolean,
  ) => Promise<Packed | undefined>;
}

/** Files up to this many bytes are read whole; larger ones are streamed. */
const MAX_WHOLE_BYTES = 256 * 1024;
/** Longest time that a batch waits for its documents, in ms. */
const MAX_DOCUMENTS_MS = 10_000;

/**
 * Reads and encodes the files of a batch: small ones together in a thread, large ones each by
 * itself, and documents in their process. A document may take long, and a small one may have a
 * large text: when the batch is full or has waited for 10 s, the remaining documents are left for
 * the next batch.
 *
 * @param onProgress called after each file that takes long
 * @returns one result for each file; undefined for a document that is left
 */
export async function packAll(
  { clock, readers }: { readonly clock: Clock; readonly readers: Packers },
  { files, maxBytes, rules }: BatchOrder,
  onProgress: () => void = () => {},
): Promise<readonly (Packed | undefined)[]> {
  const end = clock.now() + MAX_DOCUMENTS_MS;
  let room = maxBytes;
  let count = 0;
  const readOne = async (order: DocumentOrder) => {
    count += 1;
    // The first document is always read, so that each batch makes progress.
    const isFirst = count === 1;
    const read = await readers.packDocument(
      order,
      () => isFirst || (room > 0 && clock.now() < end),
    );
    if (read?.kind === 'content') room -= read.size;
    onProgress();
    return read;
  };
  const isDocument = ({ version }: PackFile) => version.encoding === 'document';
  const isSmall = (each: PackFile) => !isDocument(each) && each.version.size <= MAX_WHOLE_BYTES;
  const readDocuments = async () => {
    const read: (Packed | undefined)[] = [];
    for (const each of files.filter(isDocument))
      read.push(await packDocumentFile(each, rules, readOne));
    return read;
  };
  const [smallOnes, documentsRead] = await Promise.all([
    readers.pack({ rules, files: files.filter(isSmall) }),
    readDocuments(),
  ]);
  const small = smallOnes.values();
  const documents = documentsRead.values();
  const packed: (Packed | undefined)[] = [];
  for (const each of files) {
    if (isSmall(each)) packed.push(small.next().value ?? STALE);
    else packed.push(isDocument(each) ? documents.next().value : await streamed(each, rules));
    onProgress();
  }
  return packed;
}

/**
 * Packs a document as its text, or unchanged with its words counted. If its reader fails on a
 * document that is to be sent unchanged, it is sent without a count: the peer may read it better.
 */
async function packDocumentFile(
  each: PackFile,
  rules: ContentRules,
  packDocument: (order: DocumentOrder) => Promise<Packed | undefined>,
): Promise<Packed | undefined> {
  const { file, linksWithin, version } = each;
  const order = { file, linksWithin, rules, version };
  let isText: boolean;
  try {
    isText = await isSentAsText(each, rules);
  } catch (error) {
    return refused(refusalFor(error));
  }
  if (isText) return await packDocument({ ...order, wanted: 'text' });
  const early = whyUnpackable(version, rules);
  if (early !== undefined) return early;
  const read = await packDocument({ ...order, wanted: 'words' });
  if (read?.kind !== 'counted' && read?.kind !== 'refused') return read;
  const packed = await streamed(each, rules);
  return packed.kind === 'content' && read.kind === 'counted'
    ? { ...packed, words: read.words }
    : packed;
}

/**
 * Whether the text of a document is sent instead of the document: if the folder asks for it, the
 * peer accepts only text, or the peer reads this kind badly.
 * @throws errors that `refusalFor` explains
 */
async function isSentAsText(
  { file, isExtracted = false, linksWithin, version }: PackFile,
  { convertHere: badlyRead, takesBinary }: ContentRules,
): Promise<boolean> {
  if (isExtracted || !takesBinary) return true;
  const kind = documentKind(basename(file), await headOf({ file, stat: version, linksWithin }));
  return kind !== undefined && badlyRead.includes(kind);
}

/**
 * Reads and encodes files, each in its expected version. Blocks while it reads: meant for a thread
 * of its own.
 */
export function pack({ rules, files }: PackOrder): readonly Packed[] {
  return files.map((each) => packOne(each, rules));
}

function packOne({ file, linksWithin, version }: PackFile, rules: ContentRules): Packed {
  const bytes = whyUnpackable(version, rules) ?? readWhole({ file, stat: version, linksWithin });
  if (!Buffer.isBuffer(bytes)) return refused(bytes);
  if (hash('sha256', bytes, 'hex') !== version.sha256) return STALE;
  const plan = uploadPlanOf(file, version.encoding, bytes, rules);
  const text = rewritten(bytes, plan.rewriting);
  plan.words?.write(text);
  const digest = text === bytes ? version.sha256 : hash('sha256', text, 'hex');
  const { encoding } = rules;
  return contentOf(plan, { encoding, size: text.length, encoded: encode(text, encoding) }, digest);
}

export const STALE: Packed = { kind: 'stale' };

/**
 * Returns why a version cannot be packed, if so. A file that was read before the dialect was known
 * may be one that the peer does not accept; the next scan skips it.
 */
function whyUnpackable({ encoding, size }: Version, rules: ContentRules): Packed | undefined {
  if (cannotTravel(encoding, rules) !== undefined) return STALE;
  return size > (rules.maxBytes ?? size) ? { kind: 'tooLarge' } : undefined;
}

/** Returns the content to send, or `wordless` for a text without a word. */
function contentOf(
  { type, words: counter }: UploadPlan,
  text: EncodedText | TextSource,
  digest: string,
): Packed {
  const words = counter?.end();
  if (counter !== undefined && words === undefined) return { kind: 'wordless' };
  return { kind: 'content', text, size: text.size, digest, type, words };
}

const NOTHING = new Uint8Array();
/** Size of the pieces in which a streamed file is converted, in bytes. */
const STREAMED_BYTES = 256 * 1024;

/**
 * Packs a file that is too large for memory. It is read twice: once to measure it and to check its
 * version, and again each time it is sent. Uses constant memory.
 */
async function streamed(
  { file, linksWithin, version }: PackFile,
  rules: ContentRules,
): Promise<Packed> {
  const early = whyUnpackable(version, rules);
  if (early !== undefined) return early;
  const order = { file, stat: version, linksWithin };
  try {
    const head = await headOf(order);
    const newPlan = () => uploadPlanOf(file, version.encoding, head, rules);
    const plan = newPlan();
    const [raw, sent] = [createHash('sha256'), createHash('sha256')];
    let size = 0;
    for await (const piece of rewrittenPieces(order, plan.rewriting, raw)) {
      size += piece.length;
      sent.update(piece);
      plan.words?.write(piece);
    }
    if (raw.digest('hex') !== version.sha256) return STALE;
    const text = { size, chunks: () => rewrittenPieces(order, newPlan().rewriting) };
    return contentOf(plan, text, sent.digest('hex'));
  } catch (error) {
    return refused(refusalFor(error));
  }
}

/** Returns the first bytes of a file. The version is checked only when the whole file is read. */
async function headOf(order: ReadOrder): Promise<Uint8Array> {
  for await (const piece of pieces(order, HEAD_BYTES)) return Buffer.from(piece);
  return NOTHING;
}

async function* rewrittenPieces(
  order: ReadOrder,
  rewriting: Rewriting | undefined,
  raw?: Hash,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of pieces(order, STREAMED_BYTES)) {
    raw?.update(bytes);
    yield rewriting?.piece(bytes) ?? bytes;
  }
  yield rewriting?.end() ?? NOTHING;
}

/** Returns what a refusal to read a file means for its push. */
export function refused(refusal: Refusal | Packed): Packed {
  return refusal.kind === 'unreadable' || refusal.kind === 'tooLarge' ? refusal : STALE;
}

/**
 * Returns why a file with this encoding cannot be sent to the peer: some peers accept only text.
 *
 * @param rules the rules of the peer's dialect; undefined until it is known, which refuses nothing
 */
export function cannotTravel(
  encoding: Encoding,
  rules: ContentRules | undefined,
): Failure | undefined {
  if (encoding === 'unknown-8bit')
    return {
      code: 'UNKNOWN_ENCODING',
      message: 'The file is text in an encoding that is not recognised: its words would be lost.',
      hint: 'Save it as UTF-8, or leave it; files of this kind are skipped.',
    };
  if (encoding !== 'binary' || rules === undefined || rules.takesBinary) return undefined;
  return {
    code: 'NOT_TEXT',
    message:
      'The file is not text, nothing here reads text from it, and this peer takes only text.',
    hint: 'Convert it to text or PDF, or leave it; files of this kind are skipped.',
  };
}

/** @param reader the reader that found no word in the document; undefined for a text */
export function withoutWords(reader?: string): Failure {
  return {
    code: NO_WORDS,
    message:
      reader === undefined
        ? 'There is no word in the file, so that no search could find it.'
        : 'There is no text in the file (a scanned document?), so that no search could find it.',
    hint: 'It is taken as soon as there is text in it.',
  };
}
