import { createHash, type Hash, hash } from 'node:crypto';
import { basename } from 'node:path';
import mime from 'mime';
import { decoderOf, fromLatin1 } from '../content/encoding.js';
import { pieces, readWhole } from '../content/file-reader.js';
import { type ReadOrder, type Refusal, refusalFor } from '../content/open.js';
import { DocumentError, type Extract } from '../content/readers/document-reader.js';
import { documentKind, HEAD_BYTES, signedType } from '../content/signatures.js';
import { HtmlWords, NO_WORDS, PlainWords, type WordCounter } from '../content/words.js';
import type { Clock } from '../lib/clock.js';
import type { Encoding } from '../lib/file.js';
import { escapeText } from '../lib/markup.js';
import { inTurn, type Rewriting, sequencesRewriting, withoutSequences } from '../lib/rewriting.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { htmlRewriting, plainTextRewriting } from '../peer/dialects/yacy-text.js';
import { type EncodedText, encode, type Text, type TextSource } from '../peer/form.js';
import type { Failure, Version } from '../state/entry.js';

const PLAIN = 'text/plain; charset=UTF-8';
const HTML = 'text/html';
const UNKNOWN = 'application/octet-stream';
/** Media types of text, which no binary file has. */
const TEXT_TYPE = /^text\/|[/+](xml|json|javascript|yaml|sql|toml)$/;
const HTML_TYPES = new Set([HTML, 'application/xhtml+xml']);

/** How a file is sent. Its parts have state, so it serves one reading only. */
export interface UploadPlan {
  /** Media type, if the dialect sends one; '' otherwise. */
  readonly type: string;
  /**
   * Converts the bytes of the file to the bytes that are sent; undefined if they are sent
   * unchanged.
   */
  readonly rewriting: Rewriting | undefined;
  /** Counts the words of the text that is sent; undefined if that is no text. */
  readonly words: WordCounter | undefined;
}

/**
 * Decides how a file is sent. A peer that accepts only text gets text in UTF-8, without terminal
 * escape sequences. A peer that accepts files gets binary files and documents unchanged, with their
 * media type. Text is made safe for it (see yacy-text.ts). HTML is sent as HTML; other text
 * (Markdown, JSON, SVG, source code, CSV, logs) is sent as plain text, because the peer has no
 * parser for it and would index only its URL.
 *
 * @param path the path of the file, for its extension
 * @param begin at least the first `HEAD_BYTES` of the file, or all of a shorter one
 */
export function transferFormOf(
  path: string,
  encoding: Encoding,
  begin: Uint8Array,
  rules: ContentRules,
): UploadPlan {
  // A peer that accepts only text does not show the number of words. The counter only checks that
  // there is one.
  if (!rules.takesBinary)
    return {
      type: '',
      rewriting: toUtf8(encoding, sequencesRewriting()),
      words: new PlainWords(1),
    };
  const head = begin.subarray(0, HEAD_BYTES);
  const named = mime.getType(`/${path}`) ?? undefined;
  if (encoding === 'binary' || encoding === 'document')
    return { type: binaryType(named, head), rewriting: undefined, words: undefined };
  if (!isHtml(named, head)) {
    const plain = sequencesRewriting();
    const safe = rules.readsTextAsHtml ? inTurn(plain, plainTextRewriting()) : plain;
    return { type: PLAIN, rewriting: toUtf8(encoding, safe), words: new PlainWords() };
  }
  const safe = rules.readsTextAsHtml ? htmlRewriting() : undefined;
  // A page may declare its own 8-bit encoding, which is more reliable than a guess.
  if (encoding === 'windows-1252')
    return { type: HTML, rewriting: safe, words: new HtmlWords(encoding) };
  const rewriting = toUtf8(encoding, safe);
  return { type: `${HTML}; charset=UTF-8`, rewriting, words: new HtmlWords('utf-8') };
}

function isHtml(named: string | undefined, head: Uint8Array): boolean {
  if (named !== undefined && HTML_TYPES.has(named)) return true;
  // Old office programs saved HTML under their own extensions. In a file with an extension for
  // text, HTML is most likely an example.
  const isOpen =
    named === undefined || named === 'application/msword' || named === 'application/vnd.ms-excel';
  if (!isOpen) return false;
  const begin = Buffer.from(head.buffer, head.byteOffset, Math.min(512, head.byteLength)).toString(
    'latin1',
  );
  return /^\s*<(!doctype\s+html|html)\b/i.test(begin.replace(/^\xef\xbb\xbf/, ''));
}

function binaryType(named: string | undefined, head: Uint8Array): string {
  const signed = signedType(head);
  if (signed !== undefined && !signed.isContainer) return signed.type;
  // A binary file is never of the text type that its extension names.
  if (named !== undefined && !TEXT_TYPE.test(named)) return named;
  return signed?.type ?? UNKNOWN;
}

/** Converts text to UTF-8, then applies `next`. Returns undefined if neither changes anything. */
function toUtf8<T extends Rewriting | undefined>(encoding: Encoding, next: T): Rewriting | T {
  if (encoding === 'utf-8') return next;
  const decoder = decoderOf(encoding);
  const decoding: Rewriting = {
    piece: (bytes) => Buffer.from(decoder.decode(bytes, { stream: true })),
    end: () => Buffer.from(decoder.decode()),
  };
  return next === undefined ? decoding : inTurn(decoding, next);
}

/** Returns a whole file in the form in which it is sent. */
export function rewritten(bytes: Uint8Array, rewriting: Rewriting | undefined): Uint8Array {
  if (rewriting === undefined) return bytes;
  const whole = Buffer.concat([rewriting.piece(bytes), rewriting.end()]);
  return whole.equals(bytes) ? bytes : whole;
}

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
  { clock, pack, packDocument }: Packers & { readonly clock: Clock },
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
    const read = await packDocument(order, () => isFirst || (room > 0 && clock.now() < end));
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
    pack({ rules, files: files.filter(isSmall) }),
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

const WORD = /[\p{L}\p{N}]+/gu;
/**
 * Number of characters of a document in which words are counted; most pages of a long document are
 * not read.
 */
const COUNTED_CHARACTERS = 4_000;

/**
 * Reads a document with its reader, and makes an HTML page of its text or counts its words. Blocks,
 * and may need any time and memory: meant for a process that can be killed. Must not be called
 * again before it returns, because documents share a buffer.
 */
export async function packDocument(order: DocumentOrder): Promise<Packed> {
  const { file, linksWithin, rules, version, wanted } = order;
  const bytes = readWhole({ file, stat: version, linksWithin });
  if (!Buffer.isBuffer(bytes)) return refused(bytes);
  if (hash('sha256', bytes, 'hex') !== version.sha256) return STALE;
  try {
    const { readDocument } = await import('../content/readers/registry.js');
    const enough = wanted === 'words' ? COUNTED_CHARACTERS : undefined;
    const read = await readDocument(bytes, basename(file), 0, enough);
    if (read === undefined) return STALE;
    const words = new PlainWords();
    words.write(Buffer.from(read.text));
    const counted = words.end() ?? 0;
    if (wanted === 'words') return { kind: 'counted', words: counted };
    let found = 0;
    for (const _ of read.text.matchAll(WORD)) found += 1;
    if (found === 0) return { kind: 'wordless', reader: read.reader };
    const page = pageOf(read, rules);
    if (page.length > (rules.maxBytes ?? page.length)) return { kind: 'tooLarge' };
    const { encoding } = rules;
    const text = { encoding, size: page.length, encoded: encode(page, encoding) };
    const type = rules.takesBinary ? `${HTML}; charset=UTF-8` : '';
    const extracted = { reader: read.reader, words: found };
    const digest = hash('sha256', page, 'hex');
    return { kind: 'content', text, size: page.length, digest, type, words: counted, extracted };
  } catch (error) {
    if (error instanceof DocumentError) return { kind: 'refused', failure: failureOf(error) };
    throw error;
  }
}

/**
 * Returns an HTML page, which every search peer can read. It carries the title, the author, the
 * date and the language.
 */
function pageOf(
  { author, date, language, text, title }: Extract,
  { readsTextAsHtml }: ContentRules,
): Buffer {
  const safe = readsTextAsHtml ? withoutMarkup : escaped;
  const meta = (name: string, content: string | undefined) =>
    content === undefined
      ? ''
      : `<meta name="${name}" content="${safe(content).replaceAll('"', '&quot;')}">\n`;
  const tongue = /^[a-z]{2,3}(-[\w-]{1,20})?$/i.test(language ?? '') ? ` lang="${language}"` : '';
  const day = date === undefined ? undefined : new Date(date).toISOString();
  const head = `${title === undefined ? '' : `<title>${safe(title)}</title>\n`}${meta('author', author)}${meta('date', day)}`;
  const body = safe(text).replaceAll('\n', '<br>\n');
  return Buffer.from(
    `<!doctype html>\n<html${tongue}>\n<head>\n<meta charset="utf-8">\n${head}</head>\n<body>\n<p>${body}</p>\n</body>\n</html>\n`,
  );
}

const CONTROLS = /(?![\t\n])[\p{Cc}\ufffe\uffff]/gu;
const clean = (text: string) =>
  withoutSequences(fromLatin1(text.toWellFormed())).replace(CONTROLS, ' ');

function escaped(text: string): string {
  return escapeText(clean(text));
}

/**
 * Replaces the characters of tags, for a peer that decodes entities before it removes tags: none
 * may be left.
 */
function withoutMarkup(text: string): string {
  return Buffer.from(rewritten(Buffer.from(clean(text)), plainTextRewriting())).toString();
}

/** Returns the failure of an item. @param why the reason, without a full stop */
export function unreadableDocument(code: DocumentError['code'], why: string): Failure {
  return failureOf(new DocumentError(code, { why }));
}

function failureOf({ code, hint, message }: DocumentError): Failure {
  return { code, message, hint };
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
  const way = transferFormOf(file, version.encoding, bytes, rules);
  const text = rewritten(bytes, way.rewriting);
  way.words?.write(text);
  const digest = text === bytes ? version.sha256 : hash('sha256', text, 'hex');
  const { encoding } = rules;
  return contentOf(way, { encoding, size: text.length, encoded: encode(text, encoding) }, digest);
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
export async function streamed(
  { file, linksWithin, version }: PackFile,
  rules: ContentRules,
): Promise<Packed> {
  const early = whyUnpackable(version, rules);
  if (early !== undefined) return early;
  const order = { file, stat: version, linksWithin };
  try {
    const head = await headOf(order);
    const newWay = () => transferFormOf(file, version.encoding, head, rules);
    const way = newWay();
    const [raw, sent] = [createHash('sha256'), createHash('sha256')];
    let size = 0;
    for await (const piece of rewrittenPieces(order, way.rewriting, raw)) {
      size += piece.length;
      sent.update(piece);
      way.words?.write(piece);
    }
    if (raw.digest('hex') !== version.sha256) return STALE;
    const text = { size, chunks: () => rewrittenPieces(order, newWay().rewriting) };
    return contentOf(way, text, sent.digest('hex'));
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

function refused(refusal: Refusal | Packed): Packed {
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
