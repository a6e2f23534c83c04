import mime from 'mime';
import { decoderOf } from '../content/encoding.js';
import { HEAD_BYTES, signedType } from '../content/signatures.js';
import { HtmlWords, PlainWords, type WordCounter } from '../content/words.js';
import type { Encoding } from '../lib/file.js';
import { inTurn, type Rewriting, sequencesRewriting } from '../lib/rewriting.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { htmlRewriting, plainTextRewriting } from '../peer/dialects/yacy-text.js';

const PLAIN = 'text/plain; charset=UTF-8';
export const HTML = 'text/html';
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
export function uploadPlanOf(
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
  if (!encoding.startsWith('utf-'))
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
