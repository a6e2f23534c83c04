import { createHash, type Hash, hash } from 'node:crypto';
import mime from 'mime';
import { type Decoder, decoderOf } from '../content/decoding.js';
import { pieces, type ReadOrder, type Refusal, readWhole, refusalFor } from '../content/reader.js';
import { HEAD_BYTES, signedType } from '../content/signatures.js';
import { HtmlWords, NO_WORDS, PlainWords, type WordCounter } from '../content/words.js';
import type { Encoding } from '../lib/file.js';
import type { ContentRules } from '../peer/dialect.js';
import { EncodingBuffer, type Text, type TextEncoding } from '../peer/form.js';
import { htmlRewriting, plainTextRewriting, type Rewriting } from '../peer/yacy-text.js';
import type { Trouble, Version } from '../state/entry.js';

/**
 * What happens to the bytes of a file before they travel: nothing, or they become UTF-8. For YaCy they are made safe as plain
 * text or as HTML besides (see yacy-text.ts).
 */
export type Treatment = 'none' | 'utf-8' | 'plain' | 'html';

export interface Content {
  readonly treatment: Treatment;
  /** Where the dialect sends one; '' otherwise. */
  readonly type: string;
  /** What its words are counted in; undefined for what is no text. */
  readonly text: 'plain' | 'html' | undefined;
}

const PLAIN = 'text/plain; charset=UTF-8';
const HTML = 'text/html';
const UNKNOWN = 'application/octet-stream';
/** Types of what is text, which no binary file has. */
const TEXT_TYPE = /^text\/|[/+](xml|json|javascript|yaml|sql|toml)$/;
const HTML_TYPES = new Set([HTML, 'application/xhtml+xml']);

/** What travels to a peer that takes only text: the text, in UTF-8. */
export function textContent(encoding: Encoding): Content {
  return { treatment: encoding === 'utf-8' ? 'none' : 'utf-8', type: '', text: 'plain' };
}

/**
 * What travels to a peer that takes files: the bytes as they are with what they are, and text made safe. Text for which such
 * a peer has no parser (Markdown, JSON, SVG, source code, CSV, logs) is plain text to it, for of other types it indexes
 * nothing but the URL.
 *
 * @param path for its ending
 * @param head the first `HEAD_BYTES` of the file, or all of a shorter one
 */
export function fileContent(path: string, encoding: Encoding, head: Uint8Array): Content {
  const named = mime.getType(`/${path}`) ?? undefined;
  if (encoding === 'binary') return { treatment: 'none', type: binaryType(named, head), text: undefined };
  if (!isHtml(named, head)) return { treatment: 'plain', type: PLAIN, text: 'plain' };
  // A page may name an encoding of eight bits itself, and knows better than a guess.
  const type = encoding === 'windows-1252' ? HTML : `${HTML}; charset=UTF-8`;
  return { treatment: 'html', type, text: 'html' };
}

function isHtml(named: string | undefined, head: Uint8Array): boolean {
  if (named !== undefined && HTML_TYPES.has(named)) return true;
  // Old offices wrote pages under their own endings; in a text file the same is somebody's example.
  const isOpen =
    named === undefined || named === 'application/msword' || named === 'application/vnd.ms-excel';
  if (!isOpen) return false;
  const begin = Buffer.from(head.buffer, head.byteOffset, Math.min(512, head.byteLength)).toString('latin1');
  return /^\s*<(!doctype\s+html|html)\b/i.test(begin.replace(/^\xef\xbb\xbf/, ''));
}

function binaryType(named: string | undefined, head: Uint8Array): string {
  const signed = signedType(head);
  if (signed !== undefined && !signed.isContainer) return signed.type;
  // What is no text is not what an ending of text says.
  if (named !== undefined && !TEXT_TYPE.test(named)) return named;
  return signed?.type ?? UNKNOWN;
}

/** Undefined where nothing has to be done. */
export function rewritingOf(treatment: Treatment, encoding: Encoding): Rewriting | undefined {
  const safe =
    treatment === 'plain' ? plainTextRewriting() : treatment === 'html' ? htmlRewriting() : undefined;
  const isAsItIs =
    treatment === 'none' || encoding === 'utf-8' || (treatment === 'html' && encoding === 'windows-1252');
  if (isAsItIs) return safe;
  const decoder = decoderOf(encoding);
  return safe === undefined ? decoding(decoder) : joined(decoding(decoder), safe);
}

/** A whole file in the form in which it travels. */
export function treated(bytes: Uint8Array, treatment: Treatment, encoding: Encoding): Uint8Array {
  const way = rewritingOf(treatment, encoding);
  if (way === undefined) return bytes;
  const first = way.piece(bytes);
  const rest = way.end();
  const whole = rest.length === 0 ? first : Buffer.concat([first, rest]);
  return whole.length === bytes.length && Buffer.compare(whole, bytes) === 0 ? bytes : whole;
}

/** What counts the words of what travels; undefined where that is no text. */
function wordCounterOf({ text, treatment }: Content, encoding: Encoding): WordCounter | undefined {
  if (text === undefined) return undefined;
  if (text === 'html') return new HtmlWords(encoding === 'windows-1252' ? encoding : 'utf-8');
  // A peer that takes only text does not show how many there are: one is enough.
  return treatment === 'plain' ? new PlainWords() : new PlainWords(1);
}

function decoding(decoder: Decoder): Rewriting {
  return {
    piece: (bytes) => Buffer.from(decoder.decode(bytes, { stream: true })),
    end: () => Buffer.from(decoder.decode()),
  };
}

function joined(first: Rewriting, second: Rewriting): Rewriting {
  return {
    piece: (bytes) => second.piece(first.piece(bytes)),
    end: () => Buffer.concat([second.piece(first.end()), second.end()]),
  };
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
      /** How many words it has, counted up to 100; undefined for what is no text. */
      readonly words: number | undefined;
    }
  /** A text in which there is no word. */
  | { readonly kind: 'wordless' }
  /** Not that version any more: somebody should look at it again. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'unreadable'; readonly code: string };

/** Files to be read whole and encoded, in a thread. */
export interface PackOrder {
  readonly rules: ContentRules;
  readonly files: readonly { readonly file: string; readonly version: Version }[];
}

/** Memory for the encoded contents of one order; used again for the next, for orders are packed in turn. */
let encoded: { readonly encoding: TextEncoding; readonly buffer: EncodingBuffer } | undefined;

/**
 * Reads files, each of which proves to be the version it should be, treats them as their way asks for and encodes them, one after
 * the other into `bytes`. Blocks while it reads: meant for a thread of its own.
 */
export function pack({ rules, files }: PackOrder): {
  readonly packed: readonly Packed[];
  readonly bytes: Uint8Array<ArrayBuffer>;
} {
  const { encoding } = rules;
  if (encoded?.encoding !== encoding) encoded = { encoding, buffer: new EncodingBuffer(encoding) };
  const { buffer } = encoded;
  const ends = [0];
  const packed = files.map(({ file, version }) => {
    const content = packOne(file, version, rules, buffer);
    ends.push(buffer.length);
    return content;
  });
  const bytes = buffer.take();
  const texts = packed.map((content, i) =>
    content.kind === 'content'
      ? { ...content, text: { encoding, size: content.size, encoded: bytes.subarray(ends[i], ends[i + 1]) } }
      : content,
  );
  return { packed: texts, bytes };
}

function packOne(file: string, version: Version, rules: ContentRules, buffer: EncodingBuffer): Packed {
  const bytes = readWhole({ file, stat: version });
  if (!Buffer.isBuffer(bytes)) return refused(bytes);
  if (hash('sha256', bytes, 'hex') !== version.sha256) return { kind: 'stale' };
  const way = wayOf(file, version.encoding, bytes, rules);
  const text = treated(bytes, way.treatment, version.encoding);
  const counter = wordCounterOf(way, version.encoding);
  counter?.write(text);
  const words = counter?.end();
  if (counter !== undefined && words === undefined) return { kind: 'wordless' };
  buffer.add(text);
  const digest = text === bytes ? version.sha256 : hash('sha256', text, 'hex');
  return { kind: 'content', text: NOTHING, size: text.length, digest, type: way.type, words };
}

const NOTHING = new Uint8Array();
/** Of a file that is streamed this many bytes are treated at once. */
const STREAMED_BYTES = 256 * 1024;

/**
 * Reads a version that is too large to be held: twice, once to prove that it is that version and to measure it, and once whenever
 * it is sent. Constant memory whatever the size.
 */
export async function streamed(file: string, version: Version, rules: ContentRules): Promise<Packed> {
  const { encoding, sha256 } = version;
  const order = { file, stat: version };
  try {
    const way = wayOf(file, encoding, await headOf(order), rules);
    const counter = wordCounterOf(way, encoding);
    const [raw, travelling] = [createHash('sha256'), createHash('sha256')];
    let size = 0;
    for await (const piece of treatedPieces(order, way.treatment, encoding, raw)) {
      size += piece.length;
      travelling.update(piece);
      counter?.write(piece);
    }
    if (raw.digest('hex') !== sha256) return { kind: 'stale' };
    const words = counter?.end();
    if (counter !== undefined && words === undefined) return { kind: 'wordless' };
    const text = { size, chunks: () => treatedPieces(order, way.treatment, encoding) };
    return { kind: 'content', text, size, digest: travelling.digest('hex'), type: way.type, words };
  } catch (error) {
    return refused(refusalFor(error));
  }
}

/** The beginning of a file. That it belongs to the right version is found out by reading all of it. */
async function headOf(order: ReadOrder): Promise<Uint8Array> {
  for await (const piece of pieces(order, STREAMED_BYTES)) return piece;
  return NOTHING;
}

async function* treatedPieces(
  order: ReadOrder,
  treatment: Treatment,
  encoding: Encoding,
  raw?: Hash,
): AsyncGenerator<Uint8Array> {
  const way = rewritingOf(treatment, encoding);
  for await (const bytes of pieces(order, STREAMED_BYTES)) {
    raw?.update(bytes);
    const piece = way === undefined ? bytes : way.piece(bytes);
    if (piece.length > 0) yield piece;
  }
  const rest = way?.end() ?? NOTHING;
  if (rest.length > 0) yield rest;
}

function wayOf(file: string, encoding: Encoding, bytes: Uint8Array, rules: ContentRules): Content {
  return rules.takesBinary
    ? fileContent(file, encoding, bytes.subarray(0, HEAD_BYTES))
    : textContent(encoding);
}

function refused(refusal: Refusal): Packed {
  return refusal.kind === 'unreadable' ? refusal : { kind: 'stale' };
}

/**
 * Why a file with this encoding cannot go to the peer: a peer that takes no files gets an item's content as text.
 *
 * @param rules of the peer's dialect; as long as that is not known nothing is refused
 */
export function cannotTravel(encoding: Encoding, rules: ContentRules | undefined): Trouble | undefined {
  if (encoding !== 'binary' || rules === undefined || rules.takesBinary) return undefined;
  return {
    code: 'NOT_TEXT',
    message: 'The file is not text, and this peer takes only text.',
    hint: 'Convert it to text, or leave it; files of this kind are passed over.',
  };
}

export function withoutWords(): Trouble {
  return {
    code: NO_WORDS,
    message: 'There is no word in the file, so that no search could find it.',
    hint: 'It is taken as soon as there is text in it.',
  };
}
