import mime from 'mime';
import type { DocumentKind } from '../lib/file.js';

/**
 * How many bytes of the beginning of a file tell its type; a ZIP lists what is inside within them.
 */
export const HEAD_BYTES = 4096;
/** How many bytes of the beginning tell whether it is a type with a signature at all. */
export const SIGNATURE_BYTES = 264;

interface Signature {
  /** In Latin-1; `?` stands for any byte. */
  readonly begin: string;
  readonly type: string;
  /** Where it stands. @default 0 */
  readonly at?: number;
  /** White space and a byte order mark may stand before it. */
  readonly isText?: boolean;
  /** Many kinds of file begin so. What is inside, or else the name, tells them apart. */
  readonly isContainer?: boolean;
}

const SIGNATURES: readonly Signature[] = [
  { begin: '%PDF-', type: 'application/pdf', isText: true },
  { begin: '{\\rtf', type: 'application/rtf', isText: true },
  { begin: '%!PS', type: 'application/postscript', isText: true },
  { begin: '\x89PNG\r\n\x1a\n', type: 'image/png' },
  { begin: '\xff\xd8\xff', type: 'image/jpeg' },
  { begin: 'GIF87a', type: 'image/gif' },
  { begin: 'GIF89a', type: 'image/gif' },
  { begin: 'II*\0', type: 'image/tiff' },
  { begin: 'MM\0*', type: 'image/tiff' },
  { begin: 'RIFF????WEBP', type: 'image/webp' },
  { begin: 'BZh?1AY&SY', type: 'application/x-bzip2', isContainer: true },
  { begin: '7z\xbc\xaf\x27\x1c', type: 'application/x-7z-compressed' },
  { begin: '\xfd7zXZ\0', type: 'application/x-xz', isContainer: true },
  { begin: '\x1f\x8b', type: 'application/gzip', isContainer: true },
  { begin: 'PK\x03\x04', type: 'application/zip', isContainer: true },
  { begin: 'PK\x05\x06', type: 'application/zip', isContainer: true },
  { begin: 'ustar', at: 257, type: 'application/x-tar' },
  { begin: '!<arch>\n', type: 'application/x-archive' },
  { begin: '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', type: 'application/msword', isContainer: true },
];

/** Where the name of an entry begins behind its signature. */
const ENTRY_NAME = 26;

const OFFICE = 'application/vnd.openxmlformats-officedocument';
/** The directory that a package of Office Open XML has, by what it is. */
const PACKAGES: Readonly<Record<string, string>> = {
  word: `${OFFICE}.wordprocessingml.document`,
  xl: `${OFFICE}.spreadsheetml.sheet`,
  ppt: `${OFFICE}.presentationml.presentation`,
};
/** What each such package has. */
const PACKAGE = /\[Content_Types\]\.xml|_rels\/|docProps\//;

/** What a file is by its first bytes, whatever else it contains. */
export interface Signed {
  readonly type: string;
  /** The bytes do not tell more than what it is packed in, and the name may. */
  readonly isContainer: boolean;
}

/** Whether a file that begins so is of a type with a signature, and therefore no text. */
export function isSigned(head: Uint8Array): boolean {
  return signatureOf(latin1(head.subarray(0, SIGNATURE_BYTES))) !== undefined;
}

/** @param head the first `HEAD_BYTES` of the file, or all of a shorter one */
export function signedType(head: Uint8Array): Signed | undefined {
  const begin = latin1(head);
  const signature = signatureOf(begin);
  if (signature === undefined) return undefined;
  const inside = signature.type === 'application/zip' ? typeInside(begin) : undefined;
  if (inside !== undefined) return { type: inside, isContainer: false };
  return { type: signature.type, isContainer: signature.isContainer === true };
}

function signatureOf(head: string): Signature | undefined {
  // Readers of what is written as text skip a byte order mark and white space before it.
  const text = head.replace(/^(\xef\xbb\xbf)?\s*/, '');
  return SIGNATURES.find(({ begin, at = 0, isText = false }) => {
    if (begin.includes('?')) return [...begin].every((byte, i) => byte === '?' || byte === head[i]);
    return isText ? text.startsWith(begin) : head.startsWith(begin, at);
  });
}

/**
 * OpenDocument and EPUB name their type in the first entry, which is stored; Office Open XML shows
 * it by a directory, which other archives may have as well.
 */
function typeInside(zip: string): string | undefined {
  for (const entry of zip.split('PK\x03\x04').slice(1)) {
    const named = entry.slice(ENTRY_NAME);
    // Its size may stand behind it, after another signature.
    const type = /^mimetype([\w.+-]+\/[\w.+-]+?)(?:PK\W|$)/.exec(named)?.[1];
    if (type !== undefined) return type;
    const directory = /^(word|xl|ppt)\//.exec(named)?.[1];
    if (directory !== undefined && PACKAGE.test(zip)) return PACKAGES[directory];
  }
  return undefined;
}

const OPEN_DOCUMENT = 'application/vnd.oasis.opendocument';

/** By media type. */
const KINDS: Readonly<Record<string, DocumentKind>> = {
  'application/pdf': 'pdf',
  [`${OFFICE}.wordprocessingml.document`]: 'word',
  'application/vnd.ms-word.document.macroenabled.12': 'word',
  [`${OFFICE}.presentationml.presentation`]: 'slides',
  [`${OFFICE}.presentationml.slideshow`]: 'slides',
  'application/vnd.ms-powerpoint.presentation.macroenabled.12': 'slides',
  [`${OFFICE}.spreadsheetml.sheet`]: 'sheets',
  'application/vnd.ms-excel.sheet.macroenabled.12': 'sheets',
  [`${OPEN_DOCUMENT}.text`]: 'openDocument',
  [`${OPEN_DOCUMENT}.text-template`]: 'openDocument',
  [`${OPEN_DOCUMENT}.spreadsheet`]: 'openDocument',
  [`${OPEN_DOCUMENT}.presentation`]: 'openDocument',
  [`${OPEN_DOCUMENT}.graphics`]: 'openDocument',
  'application/epub+zip': 'epub',
  'application/rtf': 'rtf',
  'message/rfc822': 'mail',
};

/**
 * How a message begins: two header fields, of which the first may go on in lines that begin with a
 * blank.
 */
const HEADERS = /^(?:From [^\n]*\n)?[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*[!-9;-~]+:/;

/**
 * What kind of document a file is, by its first bytes first and its name second.
 *
 * @param head the first `HEAD_BYTES` of the file, or all of a shorter one
 * @returns undefined for what no reader reads
 */
export function documentKind(name: string, head: Uint8Array): DocumentKind | undefined {
  const begin = head.subarray(0, HEAD_BYTES);
  const signed = signedType(begin);
  if (signed !== undefined && !signed.isContainer) return KINDS[signed.type];
  const kind = KINDS[mime.getType(`/${name}`) ?? ''];
  // A message has no signature; anything else that has none is only called so.
  if (kind === 'mail') return HEADERS.test(latin1(begin)) ? kind : undefined;
  return signed === undefined ? undefined : kind;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
