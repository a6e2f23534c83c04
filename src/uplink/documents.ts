import { createHash, type Hash, hash } from 'node:crypto';
import { basename } from 'node:path';
import mime from 'mime';
import { decoderOf, fromLatin1 } from '../content/encoding.js';
import { type ReadOrder, type Refusal, refusalFor } from '../content/open.js';
import { pieces, readWhole } from '../content/reader.js';
import { DocumentError, type Extract } from '../content/readers/reader.js';
import { documentKind, HEAD_BYTES, signedType } from '../content/signatures.js';
import { HtmlWords, NO_WORDS, PlainWords, type WordCounter } from '../content/words.js';
import type { Clock } from '../lib/clock.js';
import type { Encoding } from '../lib/file.js';
import { inTurn, type Rewriting, sequencesRewriting, withoutSequences } from '../lib/rewriting.js';
import type { ContentRules } from '../peer/dialect.js';
import { type EncodedText, encode, type Text, type TextSource } from '../peer/form.js';
import { htmlRewriting, plainTextRewriting } from '../peer/yacy-text.js';
import type { Trouble, Version } from '../state/entry.js';

const PLAIN = 'text/plain; charset=UTF-8';
const HTML = 'text/html';
const UNKNOWN = 'application/octet-stream';
/** Types of what is text, which no binary file has. */
const TEXT_TYPE = /^text\/|[/+](xml|json|javascript|yaml|sql|toml)$/;
const HTML_TYPES = new Set([HTML, 'application/xhtml+xml']);

/** How a file travels. Good for one time. */
export interface Way {
  /** Media type, where the dialect sends one; '' otherwise. */
  readonly type: string;
  /** What makes of its bytes those that travel; undefined where they travel as they are. */
  readonly rewriting: Rewriting | undefined;
  /** Counts the words of what travels; undefined where that is no text. */
  readonly words: WordCounter | undefined;
}

/**
 * Tells how a file travels. A peer that takes only text gets its text, in UTF-8 and without
 * sequences for terminals. A peer that takes files gets the bytes unchanged, with their media type.
 * Text is made safe for it (see yacy-text.ts), and travels as plain text where the peer has no
 * parser for its type (Markdown, JSON, SVG, source code, CSV, logs): of other types the peer
 * indexes nothing but the URL.
 *
 * @param path for its ending
 * @param begin at least the first `HEAD_BYTES` of the file, or all of a shorter one
 */
export function wayOf(
  path: string,
  encoding: Encoding,
  begin: Uint8Array,
  rules: ContentRules,
): Way {
  // Such a peer does not show how many words there are: one is enough.
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
    const safe = inTurn(sequencesRewriting(), plainTextRewriting());
    return { type: PLAIN, rewriting: toUtf8(encoding, safe), words: new PlainWords() };
  }
  // A page may name an encoding of eight bits itself, and knows better than a guess.
  if (encoding === 'windows-1252')
    return { type: HTML, rewriting: htmlRewriting(), words: new HtmlWords(encoding) };
  const rewriting = toUtf8(encoding, htmlRewriting());
  return { type: `${HTML}; charset=UTF-8`, rewriting, words: new HtmlWords('utf-8') };
}

function isHtml(named: string | undefined, head: Uint8Array): boolean {
  if (named !== undefined && HTML_TYPES.has(named)) return true;
  // Old offices wrote pages under their own endings; in a text file the same is somebody's example.
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
  // What is no text is not what an ending of text says.
  if (named !== undefined && !TEXT_TYPE.test(named)) return named;
  return signed?.type ?? UNKNOWN;
}

/** Makes text UTF-8, and then what `next` makes of that. */
function toUtf8(encoding: Encoding, next: Rewriting): Rewriting {
  if (encoding === 'utf-8') return next;
  const decoder = decoderOf(encoding);
  const decoding: Rewriting = {
    piece: (bytes) => Buffer.from(decoder.decode(bytes, { stream: true })),
    end: () => Buffer.from(decoder.decode()),
  };
  return inTurn(decoding, next);
}

/** A whole file in the form in which it travels. */
export function rewritten(bytes: Uint8Array, rewriting: Rewriting | undefined): Uint8Array {
  if (rewriting === undefined) return bytes;
  const whole = Buffer.concat([rewriting.piece(bytes), rewriting.end()]);
  return whole.equals(bytes) ? bytes : whole;
}

/** What came of reading a file for its way. */
export type Packed =
  | {
      readonly kind: 'content';
      readonly text: Text;
      /** Bytes of what travels, before it is encoded. */
      readonly size: number;
      /** sha256 of what travels, before it is encoded. */
      readonly digest: string;
      /** Media type, where files travel with one; '' otherwise. */
      readonly type: string;
      /** How many words it has, counted up to 100; undefined where nothing here can tell. */
      readonly words: number | undefined;
      /** What made text of it, and how many words that found; only for a document. */
      readonly extracted?: Extracted;
    }
  /** A text in which there is no word; or a document in which a reader found none. */
  | { readonly kind: 'wordless'; readonly reader?: string }
  /** A document that travels as it is, with how many words it has, counted up to 100. */
  | { readonly kind: 'counted'; readonly words: number }
  /** A document that cannot be read. */
  | { readonly kind: 'refused'; readonly trouble: Trouble }
  /** Not that version any more: somebody should look at it again. */
  | { readonly kind: 'stale' }
  /** The peer does not bear so much in one document. */
  | { readonly kind: 'tooLarge' }
  | { readonly kind: 'unreadable'; readonly code: string };

/** What a reader found in a document. */
export interface Extracted {
  /** Its name, such as `PDF`. */
  readonly reader: string;
  readonly words: number;
}

/** A file to be read and encoded. */
export interface PackFile {
  readonly file: string;
  /** As in `ReadOrder`. */
  readonly linksWithin?: string | undefined;
  readonly version: Version;
  /** Whether the text of every document travels, also where the peer takes it as it is. */
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
  /** Its text, encoded; or only how many words it has. */
  readonly wanted: 'text' | 'words';
}

/** What reads files for their way. */
export interface Packers {
  /** Small files, all at once. */
  readonly pack: (order: PackOrder) => Promise<readonly Packed[]>;
  /**
   * A document, which becomes text or is counted, unless it is not wanted any more when its turn
   * comes.
   */
  readonly packDocument: (
    order: DocumentOrder,
    isWanted: () => boolean,
  ) => Promise<Packed | undefined>;
}

/** Files up to this many bytes are read whole; larger ones are streamed. */
const WHOLE_BYTES = 256 * 1024;
/** A batch waits so long for its documents, in ms. */
const DOCUMENTS_MS = 10_000;

/**
 * Reads files for their way: small ones all at once in a thread, large ones each by itself, and
 * documents as their processes read them. A small document may become a large text, and take its
 * time: when the batch is full or has waited, the rest is left for the next one.
 *
 * @param onProgress called whenever one was read that takes long
 * @returns one for each file; undefined for what is left
 */
export async function packAll(
  { clock, pack, packDocument }: Packers & { readonly clock: Clock },
  { files, maxBytes, rules }: BatchOrder,
  onProgress: () => void = () => {},
): Promise<readonly (Packed | undefined)[]> {
  const end = clock.now() + DOCUMENTS_MS;
  let room = maxBytes;
  let count = 0;
  const readOne = async (order: DocumentOrder) => {
    count += 1;
    // The first one is read however long it waits, so that each batch makes progress.
    const isFirst = count === 1;
    const read = await packDocument(order, () => isFirst || (room > 0 && clock.now() < end));
    if (read?.kind === 'content') room -= read.size;
    onProgress();
    return read;
  };
  const isDocument = ({ version }: PackFile) => version.encoding === 'document';
  const isSmall = (each: PackFile) => !isDocument(each) && each.version.size <= WHOLE_BYTES;
  const readDocuments = async () => {
    const read: (Packed | undefined)[] = [];
    for (const each of files.filter(isDocument)) read.push(await packEither(each, rules, readOne));
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
 * A document as its text, or in its own bytes with its words counted. One that nothing here can
 * read travels uncounted in its own bytes: the peer may read it better.
 */
async function packEither(
  each: PackFile,
  rules: ContentRules,
  packDocument: (order: DocumentOrder) => Promise<Packed | undefined>,
): Promise<Packed | undefined> {
  const { file, linksWithin, version } = each;
  const order = { file, linksWithin, rules, version };
  let isText: boolean;
  try {
    isText = await travelsAsText(each, rules);
  } catch (error) {
    return refused(refusalFor(error));
  }
  if (isText) return await packDocument({ ...order, wanted: 'text' });
  const early = unfit(version, rules);
  if (early !== undefined) return early;
  const read = await packDocument({ ...order, wanted: 'words' });
  if (read?.kind !== 'counted' && read?.kind !== 'refused') return read;
  const packed = await streamed(each, rules);
  return packed.kind === 'content' && read.kind === 'counted'
    ? { ...packed, words: read.words }
    : packed;
}

/**
 * Where that is wanted of all, or the peer takes only text or reads this kind badly. @throws what
 * `refusalFor` tells the meaning of
 */
async function travelsAsText(
  { file, isExtracted = false, linksWithin, version }: PackFile,
  { badlyRead, takesBinary }: ContentRules,
): Promise<boolean> {
  if (isExtracted || !takesBinary) return true;
  const kind = documentKind(basename(file), await headOf({ file, stat: version, linksWithin }));
  return kind !== undefined && badlyRead.includes(kind);
}

const WORD = /[\p{L}\p{N}]+/gu;
/**
 * Characters in which the words of a document are counted; most pages of a long one are not looked
 * at.
 */
const COUNTED_TEXT = 4_000;

/**
 * Reads a document with its reader, and makes a page of what it says or counts its words. Blocks,
 * and may take any time and memory: meant for a process that can be ended. One document at a time:
 * the next one is read into the same memory.
 */
export async function packDocument(order: DocumentOrder): Promise<Packed> {
  const { file, linksWithin, rules, version, wanted } = order;
  const bytes = readWhole({ file, stat: version, linksWithin });
  if (!Buffer.isBuffer(bytes)) return refused(bytes);
  if (hash('sha256', bytes, 'hex') !== version.sha256) return STALE;
  try {
    const { readDocument } = await import('../content/readers/readers.js');
    const enough = wanted === 'words' ? COUNTED_TEXT : undefined;
    const read = await readDocument(bytes, basename(file), 0, enough);
    if (read === undefined) return STALE;
    const words = new PlainWords();
    words.write(Buffer.from(read.text));
    const counted = words.end() ?? 0;
    if (wanted === 'words') return { kind: 'counted', words: counted };
    let found = 0;
    for (const _ of read.text.matchAll(WORD)) found += 1;
    if (found === 0) return { kind: 'wordless', reader: read.reader };
    const page = pageOf(read, rules.takesBinary);
    if (page.length > (rules.maxBytes ?? page.length)) return { kind: 'tooLarge' };
    const { encoding } = rules;
    const text = { encoding, size: page.length, encoded: encode(page, encoding) };
    const type = rules.takesBinary ? `${HTML}; charset=UTF-8` : '';
    const extracted = { reader: read.reader, words: found };
    const digest = hash('sha256', page, 'hex');
    return { kind: 'content', text, size: page.length, digest, type, words: counted, extracted };
  } catch (error) {
    if (error instanceof DocumentError)
      return { kind: 'refused', trouble: unreadableDocument(error.code, error.message) };
    throw error;
  }
}

/**
 * A page of HTML, which every search peer reads: it has a place for the title, the author, the date
 * and the language.
 */
function pageOf({ author, date, language, text, title }: Extract, isForYacy: boolean): Buffer {
  const safe = isForYacy ? safeForYacy : escaped;
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
  return clean(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** It decodes entities before it takes tags out, so that no sign of a tag may be left. */
function safeForYacy(text: string): string {
  return Buffer.from(rewritten(Buffer.from(clean(text)), plainTextRewriting())).toString();
}

const HINTS: Readonly<Record<DocumentError['code'], string>> = {
  DOCUMENT_ENCRYPTED: 'Save it without a password, or keep it out with `ignore`.',
  DOCUMENT_BROKEN: 'Open it in its own program and save it anew, or keep it out with `ignore`.',
  DOCUMENT_TOO_LARGE:
    'Split it, or keep it out with `ignore`; `peersync retry PATH` tries it again.',
};

/** @param message why, without a full stop */
export function unreadableDocument(code: DocumentError['code'], message: string): Trouble {
  return { code, message: `No text can be read from the file: ${message}.`, hint: HINTS[code] };
}

/**
 * Reads files, each of which proves to be the version it should be, treats them as their way asks
 * for and encodes them. Blocks while it reads: meant for a thread of its own.
 */
export function pack({ rules, files }: PackOrder): readonly Packed[] {
  return files.map((each) => packOne(each, rules));
}

function packOne({ file, linksWithin, version }: PackFile, rules: ContentRules): Packed {
  const bytes = unfit(version, rules) ?? readWhole({ file, stat: version, linksWithin });
  if (!Buffer.isBuffer(bytes)) return refused(bytes);
  if (hash('sha256', bytes, 'hex') !== version.sha256) return STALE;
  const way = wayOf(file, version.encoding, bytes, rules);
  const text = rewritten(bytes, way.rewriting);
  way.words?.write(text);
  const digest = text === bytes ? version.sha256 : hash('sha256', text, 'hex');
  const { encoding } = rules;
  return contentOf(way, { encoding, size: text.length, encoded: encode(text, encoding) }, digest);
}

export const STALE: Packed = { kind: 'stale' };

/**
 * What keeps a version from being read. Files read before the dialect was known may not be allowed;
 * the next scan skips them.
 */
function unfit({ encoding, size }: Version, rules: ContentRules): Packed | undefined {
  if (cannotTravel(encoding, rules) !== undefined) return STALE;
  return size > (rules.maxBytes ?? size) ? { kind: 'tooLarge' } : undefined;
}

/** What travels, if there is a word in it. */
function contentOf(
  { type, words: counter }: Way,
  text: EncodedText | TextSource,
  digest: string,
): Packed {
  const words = counter?.end();
  if (counter !== undefined && words === undefined) return { kind: 'wordless' };
  return { kind: 'content', text, size: text.size, digest, type, words };
}

const NOTHING = new Uint8Array();
/** Of a file that is streamed this many bytes are treated at once. */
const STREAMED_BYTES = 256 * 1024;

/**
 * Reads a version that is too large to be held: twice, once to prove that it is that version and to
 * measure it, and once whenever it is sent. Constant memory whatever the size.
 */
export async function streamed(
  { file, linksWithin, version }: PackFile,
  rules: ContentRules,
): Promise<Packed> {
  const early = unfit(version, rules);
  if (early !== undefined) return early;
  const order = { file, stat: version, linksWithin };
  try {
    const head = await headOf(order);
    const newWay = () => wayOf(file, version.encoding, head, rules);
    const way = newWay();
    const [raw, travelling] = [createHash('sha256'), createHash('sha256')];
    let size = 0;
    for await (const piece of rewrittenPieces(order, way.rewriting, raw)) {
      size += piece.length;
      travelling.update(piece);
      way.words?.write(piece);
    }
    if (raw.digest('hex') !== version.sha256) return STALE;
    const text = { size, chunks: () => rewrittenPieces(order, newWay().rewriting) };
    return contentOf(way, text, travelling.digest('hex'));
  } catch (error) {
    return refused(refusalFor(error));
  }
}

/**
 * The beginning of a file. That it belongs to the right version is found out by reading all of it.
 */
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
 * Why a file with this encoding cannot go to the peer: a peer that takes no files gets an item's
 * content as text.
 *
 * @param rules of the peer's dialect; as long as that is not known nothing is refused
 */
export function cannotTravel(
  encoding: Encoding,
  rules: ContentRules | undefined,
): Trouble | undefined {
  if (encoding !== 'binary' || rules === undefined || rules.takesBinary) return undefined;
  return {
    code: 'NOT_TEXT',
    message:
      'The file is not text, nothing here reads text from it, and this peer takes only text.',
    hint: 'Convert it to text or PDF, or leave it; files of this kind are skipped.',
  };
}

/** @param reader of a document in which it found no word */
export function withoutWords(reader?: string): Trouble {
  return {
    code: NO_WORDS,
    message:
      reader === undefined
        ? 'There is no word in the file, so that no search could find it.'
        : 'There is no text in the file (a scanned document?), so that no search could find it.',
    hint: 'It is taken as soon as there is text in it.',
  };
}
