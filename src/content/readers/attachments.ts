import mime from 'mime';
import { decoderOf, EncodingDetector } from '../encoding.js';
import { ShortageError } from '../helpers/tools.js';
import { holdsPrivateKey } from '../signatures.js';
import {
  DocumentError,
  type Extract,
  MomentaryError,
  mayGoOn,
  nestedIn,
  type ReadContext,
} from './document-reader.js';
import { readHtml } from './html.js';
import { isKeptOut, KEPT_OUT } from './kept-out.js';
import { MemberError } from './members.js';

/** Maximum nesting of attachments in attachments. Deeper ones give only their names. */
const MAX_DEPTH = 3;

/** Reads an attachment that is a document itself. @returns undefined if no reader reads it */
export type ReadAttachment = (
  bytes: Uint8Array,
  name: string,
  context: Omit<ReadContext, 'name'>,
) => Promise<Extract | undefined>;

/** Returns the text of a file by the encoding that is declared for it, if there is one. */
export type TextAsDeclared = (
  /** Whether the encoding is known without the declaration, though not for certain. */
  isKnown: boolean,
) => string | undefined;

/** A file that is attached to a message or to a PDF. */
export interface Attachment {
  /** Perhaps with directories; empty if it has none. */
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The name by which a reader is chosen. @default `name` */
  readonly readAs?: string;
  /** Whether its text is taken if no reader reads it. */
  readonly isText: boolean;
  readonly isHtml: boolean;
  readonly asDeclared?: TextAsDeclared;
}

/**
 * Returns the text of an attachment that a reader reads, or that is a text; empty for any other.
 * Secrets are kept out.
 */
export async function attachmentText(
  { asDeclared, bytes, isHtml, isText, name, readAs = name }: Attachment,
  readAttachment: ReadAttachment,
  context: ReadContext,
): Promise<string> {
  if (context.depth >= MAX_DEPTH) {
    context.budget?.cuts.add(`Attachments within ${MAX_DEPTH} others give only their names.`);
    return '';
  }
  if (!mayGoOn(context)) return '';
  if (isKeptOut(name) || holdsPrivateKey(bytes)) return KEPT_OUT;
  const read = await readOr(() => readAttachment(bytes, readAs, nestedIn(context)), context);
  if (read !== undefined) return `${read.title ?? ''}\n${read.text}`;
  if (!isText) return '';
  try {
    return plainText(bytes, { isHtml, asDeclared });
  } catch (error) {
    if (!(error instanceof MemberError)) throw error;
    return `(${error.message})`;
  }
}

const NO_PROGRAMS =
  'Attached files of old formats were not read, because their programs are missing.';
/** The sentences about attachments that need a program which is missing. */
const MISSING: Readonly<Record<string, string>> = {
  NO_OCR: 'Attached scans and pictures were not read, because there is no OCR.',
  NO_HELPER: NO_PROGRAMS,
  NO_HELPER_BY_CONTENT: NO_PROGRAMS,
};

/** Reads an attachment. @returns undefined if it cannot be read */
async function readOr(
  read: () => Promise<Extract | undefined>,
  { budget, tools }: ReadContext,
): Promise<Extract | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ShortageError) throw error;
    const missing = error instanceof DocumentError ? MISSING[error.code] : undefined;
    if (missing !== undefined) budget?.cuts.add(missing);
    if (error instanceof MomentaryError) tools?.lacks.add('time');
    return undefined;
  }
}

/** Whether a file of this name is a page. */
export function isNameOfHtml(name: string): boolean {
  return /html/.test(mime.getType(`/${name}`) ?? '');
}

/** Size of the pieces in which the encoding of a text is detected, in bytes. */
const PIECE_BYTES = 2 ** 20;
/** Begins a change of the character set in the encodings of ISO 2022. */
const ESCAPE = 0x1b;

interface PlainTextOptions {
  readonly isHtml: boolean;
  /**
   * Number of bytes of UTF-8 for which there is room. Not much more is returned of plain text,
   * because that would only take memory.
   */
  readonly room?: number;
  readonly asDeclared?: TextAsDeclared | undefined;
}

/**
 * Returns the text of a file that no reader reads; empty if it is none.
 * @throws MemberError if its encoding is not recognised
 */
export function plainText(
  content: Uint8Array,
  { asDeclared, isHtml, room = content.length }: PlainTextOptions,
): string {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const detector = new EncodingDetector();
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    detector.write(bytes.subarray(at, at + PIECE_BYTES));
  const encoding = detector.end();
  if (encoding === 'binary') return '';
  const isUnicode = encoding.startsWith('utf-') && !bytes.includes(ESCAPE);
  const declared = isUnicode ? undefined : asDeclared?.(encoding !== 'unknown-8bit');
  if (declared !== undefined) return isHtml ? titled(readHtml(declared)) : declared;
  if (encoding === 'unknown-8bit') throw new MemberError('in an encoding that is not recognised');
  const decoder = decoderOf(encoding);
  if (isHtml) return titled(readHtml(decoder.decode(bytes)));
  // A byte order mark has up to three bytes.
  return decoder.decode(bytes.subarray(0, (encoding.startsWith('utf-16') ? 2 * room : room) + 4));
}

/** Returns the text of a document that is a part of another one. */
export function titled({ text, title }: Extract): string {
  return title === undefined ? text : `${title}\n${text}`;
}
