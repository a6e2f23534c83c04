import mime from 'mime';
import { type Decoder, decoderOf } from '../content/decoding.js';
import { signedType } from '../content/signatures.js';
import { HtmlWords, PlainWords, type WordCounter } from '../content/words.js';
import type { Encoding } from '../lib/encodings.js';
import type { ContentRules } from '../peer/dialect.js';
import { htmlRewriting, plainTextRewriting, type Rewriting } from '../peer/yacy-text.js';
import type { Trouble } from '../state/entry.js';

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
export function wordCounterOf({ text, treatment }: Content, encoding: Encoding): WordCounter | undefined {
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
