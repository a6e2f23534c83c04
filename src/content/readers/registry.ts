import { messageOf } from '../../lib/errors.js';
import type { DocumentKind } from '../../lib/file.js';
import { ocrOf } from '../helpers/ocr.js';
import { configuredCommand, NO_PROGRAMS } from '../helpers/programs.js';
import { ShortageError } from '../helpers/tools.js';
import { documentKind } from '../signatures.js';
import { archiveReader } from './archive.js';
import { MemberBudget } from './budget.js';
import {
  DocumentError,
  type DocumentReader,
  type Extract,
  type ReadContext,
  wholeText,
} from './document-reader.js';
import { helperReader } from './helper.js';
import { mailReader } from './mail.js';
import { mboxReader } from './mbox.js';
import { epub, openDocument, sheets, slides, word } from './office.js';
import { isOwnName } from './own-names.js';
import { pdfReader } from './pdf.js';
import { picture } from './picture.js';
import { rtf } from './rtf.js';

const mail = mailReader(readDocument);

/** The reader of each kind of document. */
const READERS: Readonly<Record<DocumentKind, DocumentReader>> = {
  pdf: pdfReader(readDocument),
  word,
  slides,
  sheets,
  openDocument,
  epub,
  rtf,
  mail,
  mbox: mboxReader(mail),
  archive: archiveReader(readDocument),
  picture,
  helper: helperReader(mail),
};

/** A document that was read, with the name of its reader. */
export type ReadDocument = Extract & { readonly reader: string };

/** The context of a document that is nested in no other one, and is read whole. */
export const WHOLE = { depth: 0, enoughCharacters: Number.POSITIVE_INFINITY, onPage: () => {} };

/**
 * Reads a document. A damaged one may take any time and memory: call it in a process that can be
 * killed.
 *
 * @param context by default, the document is nested in no other one, and read whole
 * @returns undefined if no reader reads this kind of file
 * @throws DocumentError
 */
export async function readDocument(
  bytes: Uint8Array,
  name: string,
  context: Partial<Omit<ReadContext, 'name'>> = {},
): Promise<ReadDocument | undefined> {
  const configured = configuredCommand(name, context.tools?.programs ?? NO_PROGRAMS);
  const kind = configured === undefined ? documentKind(name, bytes) : 'helper';
  if (kind === undefined) return undefined;
  const reader = READERS[kind];
  const ocr = context.ocr ?? ocrOf(context.tools);
  const { budget = new MemberBudget(), depth = 0 } = context;
  try {
    const read = await reader.read(bytes, { ...WHOLE, ...context, budget, name, ocr });
    const title = isOwnName(read.title ?? '') ? read.title : undefined;
    const isOutermost = depth === 0;
    const all = isOutermost ? read : { ...read, text: wholeText(read), attached: undefined };
    // The record of OCR is that of a document with all those nested in it.
    const found = context.ocr === undefined && ocr ? ocr.found(read.found) : read.found;
    const leftOut = isOutermost ? [...budget.cuts] : [];
    return { reader: reader.name, ...all, title, found: withLeftOut(found, leftOut) };
  } catch (error) {
    if (error instanceof DocumentError || error instanceof ShortageError) throw error;
    // The message becomes part of a sentence.
    const reason = messageOf(error).replace(/[.!?\s]+$/, '');
    throw new DocumentError(
      'DOCUMENT_BROKEN',
      { why: `it is damaged (${reason})` },
      { cause: error },
    );
  }
}

/** Returns how a document was found, with sentences about what was left out added. */
function withLeftOut(found: Extract['found'], sentences: readonly string[]): Extract['found'] {
  if (sentences.length === 0) return found;
  return { ...found, leftOut: [found?.leftOut ?? [], sentences].flat().join(' ') };
}
