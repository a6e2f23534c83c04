import mime from 'mime';
import type { DocumentKind } from '../lib/file.js';

/**
 * Number of bytes at the beginning of a file that show its type. A ZIP lists its first entries
 * there.
 */
export const HEAD_BYTES = 4096;
/** Number of bytes at the beginning that show whether the file has a signature at all. */
export const SIGNATURE_BYTES = 264;

interface Signature {
  /** In Latin-1; `?` stands for any byte. */
  readonly begin: string;
  readonly type: string;
  /**
   * Offset of the signature.
   *
   * @default 0
   */
  readonly at?: number;
  /** White space and a byte order mark may precede it. */
  readonly isText?: boolean;
  /** Many file types begin like this. The entries inside, or else the name, distinguish them. */
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
  { begin: 'AT&TFORM????DJV', type: 'image/vnd.djvu' },
  { begin: 'BZh?1AY&SY', type: 'application/x-bzip2', isContainer: true },
  { begin: '7z\xbc\xaf\x27\x1c', type: 'application/x-7z-compressed' },
  { begin: '\xfd7zXZ\0', type: 'application/x-xz', isContainer: true },
  { begin: '\x1f\x8b', type: 'application/gzip', isContainer: true },
  { begin: 'PK\x03\x04', type: 'application/zip', isContainer: true },
  { begin: 'PK\x05\x06', type: 'application/zip', isContainer: true },
  { begin: 'Rar!\x1a\x07', type: 'application/vnd.rar' },
  { begin: 'ustar', at: 257, type: 'application/x-tar', isContainer: true },
  { begin: '!<arch>\n', type: 'application/x-archive' },
  { begin: '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', type: 'application/msword', isContainer: true },
];

/** Offset of the name in the header of an entry. */
const ENTRY_NAME = 30;

const OFFICE = 'application/vnd.openxmlformats-officedocument';
/** Type of a package of Office Open XML, by its main directory. */
const PACKAGES: Readonly<Record<string, string>> = {
  word: `${OFFICE}.wordprocessingml.document`,
  xl: `${OFFICE}.spreadsheetml.sheet`,
  ppt: `${OFFICE}.presentationml.presentation`,
};
/** Names that every such package contains. */
const PACKAGE = /^(?:\[Content_Types\]\.xml$|_rels\/|docProps\/)/;

/** The type of a file by its first bytes. */
interface Signed {
  readonly type: string;
  /** The bytes show only the container format. The name may show more. */
  readonly isContainer: boolean;
}

/** Whether the beginning of a file has a known signature. The file is then not text. */
export function isSigned(head: Uint8Array): boolean {
  return signatureOf(latin1(head.subarray(0, SIGNATURE_BYTES))) !== undefined;
}

/**
 * Returns the type of a file with a known signature.
 *
 * @param head the first `HEAD_BYTES` of the file, or all of a shorter one
 */
export function signedType(head: Uint8Array): Signed | undefined {
  const begin = latin1(head);
  const signature = signatureOf(begin);
  if (signature === undefined) return undefined;
  const inside = signature.type === 'application/zip' ? typeInside(begin) : undefined;
  if (inside !== undefined) return { type: inside, isContainer: false };
  return { type: signature.type, isContainer: signature.isContainer === true };
}

function signatureOf(head: string): Signature | undefined {
  // Readers of text formats skip a byte order mark and white space before the signature.
  const text = head.replace(/^(\xef\xbb\xbf)?\s*/, '');
  return SIGNATURES.find(({ begin, at = 0, isText = false }) => {
    if (begin.includes('?')) return [...begin].every((byte, i) => byte === '?' || byte === head[i]);
    return isText ? text.startsWith(begin) : head.startsWith(begin, at);
  });
}

/**
 * Returns the type of a ZIP by its entries. OpenDocument and EPUB store their type uncompressed in
 * the first entry. Office Open XML is recognised by a directory, which other archives may have as
 * well. The content of an entry is skipped: it may be a ZIP itself.
 */
function typeInside(zip: string): string | undefined {
  const names: string[] = [];
  for (let at = 0; zip.startsWith('PK\x03\x04', at); ) {
    const nameEnd = at + ENTRY_NAME + numberAt(zip, at + 26, 2);
    names.push(zip.slice(at + ENTRY_NAME, nameEnd));
    const content = nameEnd + numberAt(zip, at + 28, 2);
    // The size of an entry may follow its content, after another signature.
    const isSized = (numberAt(zip, at + 6, 2) & 0x08) === 0;
    const next = isSized ? content + numberAt(zip, at + 18, 4) : zip.indexOf('PK\x03\x04', content);
    const type = /^mimetype([\w.+-]+\/[\w.+-]+?)(?:PK\W|$)/.exec(zip.slice(at + ENTRY_NAME))?.[1];
    if (at === 0 && type !== undefined) return type;
    if (next <= at) break;
    at = next;
  }
  if (!names.some((name) => PACKAGE.test(name))) return undefined;
  for (const name of names) {
    const directory = /^(word|xl|ppt)\//.exec(name)?.[1];
    if (directory !== undefined) return PACKAGES[directory];
  }
  return undefined;
}

/** Returns the number of that many bytes at an offset, little endian. */
function numberAt(text: string, at: number, bytes: number): number {
  let number = 0;
  for (let i = bytes - 1; i >= 0; i -= 1) number = number * 256 + (text.charCodeAt(at + i) || 0);
  return number;
}

const OPEN_DOCUMENT = 'application/vnd.oasis.opendocument';

/** Kinds of document by media type. */
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
  'image/png': 'picture',
  'image/jpeg': 'picture',
  'image/tiff': 'picture',
  'image/webp': 'picture',
  'application/postscript': 'helper',
  'image/vnd.djvu': 'helper',
};

/** Names of TIFF. Files of cameras begin like a TIFF, but nothing here draws them. */
const TIFF_NAME = /(?:\.tiff?|(?:^|\/)[^.]*)$/i;
/** Many files begin with these letters. */
const BMP_NAME = /\.bmp$/i;
const BMP = 'BM';

/**
 * Names of old office documents and of messages of Outlook. Many other programs write files with
 * their signature.
 */
const OLD_OFFICE_NAME = /\.(?:doc|dot|xls|xlt|ppt|pps|pot|msg)$/i;
const OLD_OFFICE = 'application/msword';

/** A kind of document that is text and has no signature. Its name and its beginning show it. */
interface TextDocument {
  /** The names of files whose beginning is tested. */
  readonly name: RegExp;
  readonly begin: RegExp;
}

const MBOX: TextDocument = {
  // Apple Mail and other programs call the file in the directory of a mail folder `mbox`.
  name: /(?:^|\/)mbox$|\.mbox$/i,
  // The line that begins a message, and its first header field.
  begin: /^From [^\n]*\n(?:>From [^\n]*\n)?[!-9;-~]+:/,
};

/** The kinds of document that are text. The content of other text files is pushed as it is. */
const TEXT_DOCUMENTS: Partial<Readonly<Record<DocumentKind, TextDocument>>> = {
  mail: {
    name: /\.eml$/i,
    // Two header fields. The first may continue on lines that begin with a blank.
    begin: /^(?:From [^\n]*\n)?[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*[!-9;-~]+:/,
  },
  mbox: MBOX,
};

/**
 * Names of archives. A file of another name that is one inside (.jar, .apk, .whl, .gem, .ova) is
 * not read: nobody searches the names of 10,000 classes.
 */
export const ARCHIVE_NAME = /\.(?:zip|tar|tar\.gz|tgz)$/i;
const ARCHIVE_TYPES = new Set(['application/zip', 'application/x-tar', 'application/gzip']);

/** Whether a document of this name is one of those that have their name as their title. */
export function isTitledByName(name: string): boolean {
  return ARCHIVE_NAME.test(name) || MBOX.name.test(name);
}

/** Whether a text file may be a document by its name. `documentKind` tells whether it is one. */
export function isNameOfTextDocument(name: string): boolean {
  return Object.values(TEXT_DOCUMENTS).some((document) => document.name.test(name));
}

/**
 * Returns the kind of a document: by its first bytes, then by its name.
 *
 * @param head the first `HEAD_BYTES` of the file, or all of a shorter one
 * @returns undefined if no reader reads this kind of file
 */
export function documentKind(name: string, head: Uint8Array): DocumentKind | undefined {
  const begin = head.subarray(0, HEAD_BYTES);
  const signed = signedType(begin);
  if (signed?.type === 'image/tiff' && !TIFF_NAME.test(name)) return undefined;
  if (signed !== undefined && !signed.isContainer) return KINDS[signed.type];
  if (BMP_NAME.test(name)) return latin1(begin).startsWith(BMP) ? 'picture' : undefined;
  if (signed !== undefined && ARCHIVE_TYPES.has(signed.type) && ARCHIVE_NAME.test(name))
    return 'archive';
  if (signed?.type === OLD_OFFICE && OLD_OFFICE_NAME.test(name)) return 'helper';
  const kind = MBOX.name.test(name) ? 'mbox' : KINDS[mime.getType(`/${name}`) ?? ''];
  const textDocument = kind === undefined ? undefined : TEXT_DOCUMENTS[kind];
  if (textDocument !== undefined) return textDocument.begin.test(latin1(begin)) ? kind : undefined;
  // A file without a signature only has the name of a document, and pictures are no containers.
  return signed === undefined || kind === 'picture' ? undefined : kind;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** Number of bytes at the beginning of a file that are searched for a private key. */
export const KEY_BYTES = 65_536;

/** Every private key contains one of these words. The search takes 2 µs for a file of 4 KB. */
const WORDS = [
  'PRIVATE KEY',
  'AGE-SECRET-KEY-1',
  'PuTTY-User-Key-File-',
  'PrivateKey',
  '"kty"',
].map((word) => Buffer.from(word));

const KEYS: readonly RegExp[] = [
  // A PEM, OpenSSH, SSH2, OpenPGP or PuTTY file begins with its kind; a PEM may have a certificate
  // first.
  /^\s*(?:-{4,5} ?BEGIN (?:[\s\S]*-----BEGIN )?[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d)/,
  // Elsewhere it is a key only if its base64 text follows: a manual may quote the line alone.
  /-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}(?:\\[rn]|\s|[\w-]+:[^\n]*\n)*[A-Za-z0-9+/=]{40}/,
  /AGE-SECRET-KEY-1[0-9A-Z]{50}/,
  // WireGuard
  /^[ \t]*PrivateKey[ \t]*=[ \t]*[A-Za-z0-9+/]{42,43}=/m,
  // A JSON Web Key
  /"kty"[\s\S]{0,4096}"d"\s*:\s*"[\w-]{20}|"d"\s*:\s*"[\w-]{20}[\s\S]{0,4096}"kty"/,
];

/**
 * Whether a file contains a private key: PEM, OpenSSH, SSH2, OpenPGP, PuTTY, age, WireGuard or a
 * JSON Web Key, in UTF-8 or UTF-16.
 *
 * @param head the first `KEY_BYTES` of the file, or all of a shorter one
 */
export function holdsPrivateKey(head: Uint8Array): boolean {
  const bytes = withoutZeros(Buffer.from(head.buffer, head.byteOffset, head.byteLength));
  if (!WORDS.some((word) => bytes.includes(word))) return false;
  // A byte order mark and invisible characters may precede the first line.
  const text = bytes.toString('utf8').replace(/^[\ufffd\ufeff\u200b]+/, '');
  return KEYS.some((key) => key.test(text));
}

/** Converts ASCII in UTF-16 to ASCII. */
function withoutZeros(bytes: Buffer): Buffer {
  const head = bytes.subarray(0, KEY_BYTES);
  const isUtf16 = head.subarray(0, 4).includes(0);
  return isUtf16 ? Buffer.from(head.filter((byte) => byte !== 0)) : head;
}
