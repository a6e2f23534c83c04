import mime from 'mime';
import { HEAD_BYTES, signedType } from './signatures.js';

/** The kinds of document that a reader of `readers/` makes text of. */
export type DocumentKind = 'pdf' | 'word' | 'slides' | 'sheets' | 'openDocument' | 'epub' | 'rtf' | 'mail';

const OOXML = 'application/vnd.openxmlformats-officedocument';
const OPEN_DOCUMENT = 'application/vnd.oasis.opendocument';

/** By media type. */
const KINDS: Readonly<Record<string, DocumentKind>> = {
  'application/pdf': 'pdf',
  [`${OOXML}.wordprocessingml.document`]: 'word',
  'application/vnd.ms-word.document.macroenabled.12': 'word',
  [`${OOXML}.presentationml.presentation`]: 'slides',
  [`${OOXML}.presentationml.slideshow`]: 'slides',
  'application/vnd.ms-powerpoint.presentation.macroenabled.12': 'slides',
  [`${OOXML}.spreadsheetml.sheet`]: 'sheets',
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

/** How a message begins: two header fields, of which the first may go on in lines that begin with a blank. */
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
