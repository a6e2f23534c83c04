import mime from 'mime';
import type { Encoding } from '../state/entry.js';
import { decoderOf } from './decoding.js';

/**
 * What happens to the bytes of a file before they travel: nothing; they become UTF-8; or they become UTF-8 in which no `<`
 * is left (see `withoutMarkup`).
 */
export type Treatment = 'none' | 'utf-8' | 'plain';

export interface Content {
  readonly treatment: Treatment;
  /** Where the dialect sends one; '' otherwise. */
  readonly type: string;
}

/** How many bytes of the beginning of a file tell its kind. */
export const HEAD_BYTES = 512;

const PLAIN = 'text/plain; charset=UTF-8';
const HTML = 'text/html';
const UNKNOWN = 'application/octet-stream';
/** Kinds of text, beside HTML, that a peer which takes files has a parser for. */
const PARSED_TEXT = new Set(['application/rtf', 'application/postscript', 'image/svg+xml']);
const HTML_TYPES = new Set([HTML, 'application/xhtml+xml']);

/** What travels to a peer that takes only text: the text, in UTF-8. */
export function textContent(encoding: Encoding): Content {
  return { treatment: encoding === 'utf-8' ? 'none' : 'utf-8', type: '' };
}

/**
 * What travels to a peer that takes files: the bytes as they are with what they are. Text for which such a peer has no
 * parser (Markdown, JSON, source code, CSV, logs) is plain text to it, for of other types it indexes nothing but the URL;
 * and its parser for plain text takes `<` for the beginning of a tag (measured with YaCy 1.92).
 *
 * @param path for its ending
 * @param head the first `HEAD_BYTES` of the file, or all of a shorter one
 */
export function fileContent(path: string, encoding: Encoding, head: Uint8Array): Content {
  const named = mime.getType(`/${path}`) ?? undefined;
  if (encoding === 'binary') return { treatment: 'none', type: binaryType(named, head) };
  const type = textType(named, head);
  if (type === undefined) return { treatment: 'plain', type: PLAIN };
  if (type !== HTML) return { treatment: 'none', type };
  // A page may name an encoding of eight bits itself, and knows better than a guess.
  if (encoding === 'windows-1252') return { treatment: 'none', type };
  return { treatment: encoding === 'utf-8' ? 'none' : 'utf-8', type: `${HTML}; charset=UTF-8` };
}

/** Undefined for what is to travel as plain text. */
function textType(named: string | undefined, head: Uint8Array): string | undefined {
  if (named !== undefined && HTML_TYPES.has(named)) return HTML;
  if (named !== undefined && PARSED_TEXT.has(named)) return named;
  const begin = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1');
  if (begin.startsWith('{\\rtf')) return 'application/rtf';
  if (begin.startsWith('%!PS')) return 'application/postscript';
  // Old offices wrote pages under their own endings; in a text file the same is somebody's example.
  const isOpen =
    named === undefined || named === 'application/msword' || named === 'application/vnd.ms-excel';
  return isOpen && /^\s*<(!doctype\s+html|html)\b/i.test(begin.replace(/^\xef\xbb\xbf/, ''))
    ? HTML
    : undefined;
}

interface Magic {
  readonly begin: string;
  readonly type: string;
  /** Many kinds of file begin so, which only their endings tell apart. */
  readonly isContainer?: boolean;
}

const MAGIC: readonly Magic[] = [
  { begin: '%PDF-', type: 'application/pdf' },
  { begin: '\x89PNG\r\n', type: 'image/png' },
  { begin: '\xff\xd8\xff', type: 'image/jpeg' },
  { begin: 'GIF8', type: 'image/gif' },
  { begin: '{\\rtf', type: 'application/rtf' },
  { begin: '%!PS', type: 'application/postscript' },
  { begin: 'PK\x03\x04', type: 'application/zip', isContainer: true },
  { begin: '\x1f\x8b', type: 'application/gzip', isContainer: true },
  { begin: '\xd0\xcf\x11\xe0', type: 'application/msword', isContainer: true },
];

function binaryType(named: string | undefined, head: Uint8Array): string {
  const begin = Buffer.from(head.buffer, head.byteOffset, Math.min(16, head.byteLength)).toString('latin1');
  const magic = MAGIC.find((each) => begin.startsWith(each.begin));
  if (magic !== undefined && !magic.isContainer) return magic.type;
  // What is no text is not what an ending of text says.
  if (named !== undefined && !named.startsWith('text/')) return named;
  return magic?.type ?? UNKNOWN;
}

/** Brings the pieces of a file into the form in which they travel. */
export interface Treating {
  /** The next piece; what belongs together with the beginning of the following one is kept. */
  piece(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

const NOTHING = new Uint8Array();

/** Undefined where nothing has to be done. */
export function treating(treatment: Treatment, encoding: Encoding): Treating | undefined {
  if (treatment === 'none') return undefined;
  const converting = encoding === 'utf-8' ? undefined : converter(encoding);
  if (treatment === 'utf-8') return converting;
  const plain = new WithoutMarkup();
  if (converting === undefined) return plain;
  return {
    piece: (bytes) => plain.piece(converting.piece(bytes)),
    end: () => Buffer.concat([plain.piece(converting.end()), plain.end()]),
  };
}

/** A whole file in the form in which it travels. */
export function treated(bytes: Uint8Array, treatment: Treatment, encoding: Encoding): Uint8Array {
  const way = treating(treatment, encoding);
  if (way === undefined) return bytes;
  const first = way.piece(bytes);
  const rest = way.end();
  return rest.length === 0 ? first : Buffer.concat([first, rest]);
}

function converter(encoding: Encoding): Treating {
  const decoder = decoderOf(encoding);
  return {
    piece: (bytes) => Buffer.from(decoder.decode(bytes, { stream: true })),
    end: () => Buffer.from(decoder.decode()),
  };
}

/** `<`, and what an HTML parser makes one of, also when it decodes more than once. */
const OPENING = /<|&(?:amp;)*(?:lt|#0*60|#x0*3c);/gi;
/** U+2039 in UTF-8: looks nearly the same, and separates words as `<` does. */
const QUOTE = '\xe2\x80\xb9';
/** What may be the beginning of an entity at the end of a piece; longer ones are none. */
const CUT = /&[a-z0-9#;]{0,40}$/i;

/**
 * Puts U+2039 (‹) in the place of every `<` of a text in UTF-8, however it is written, so that a parser for HTML swallows
 * none of its words.
 */
class WithoutMarkup implements Treating {
  #rest = '';

  piece(bytes: Uint8Array): Uint8Array {
    if (this.#rest === '' && !bytes.includes(0x3c) && !bytes.includes(0x26)) return bytes;
    // Byte by byte: what is looked for is ASCII, and no part of another character in UTF-8.
    const text =
      this.#rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    const cut = CUT.exec(text)?.index ?? text.length;
    this.#rest = text.slice(cut);
    return replaced(text.slice(0, cut));
  }

  end(): Uint8Array {
    const rest = this.#rest;
    this.#rest = '';
    return rest === '' ? NOTHING : replaced(rest);
  }
}

function replaced(text: string): Uint8Array {
  return Buffer.from(text.replace(OPENING, QUOTE), 'latin1');
}
