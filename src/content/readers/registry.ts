import { messageOf } from '../../lib/errors.js';
import type { DocumentKind } from '../../lib/file.js';
import { documentKind } from '../signatures.js';
import { archiveReader } from './archive.js';
import { DocumentError, type DocumentReader, type Extract, isOwnName } from './document-reader.js';
import { mailReader } from './mail.js';
import { mboxReader } from './mbox.js';
import { epub, openDocument, sheets, slides, word } from './office.js';
import { pdf } from './pdf.js';
import { rtf } from './rtf.js';

const mail = mailReader(readDocument);

/** The reader of each kind of document. */
const READERS: Readonly<Record<DocumentKind, DocumentReader>> = {
  pdf,
  word,
  slides,
  sheets,
  openDocument,
  epub,
  rtf,
  mail,
  mbox: mboxReader(mail),
  archive: archiveReader(readDocument),
};

/** A document that was read, with the name of its reader. */
export type ReadDocument = Extract & { readonly reader: string };

/**
 * Reads a document. A damaged one may take any time and memory: call it in a process that can be
 * killed.
 *
 * @param depth how many other documents this one is nested in
 * @param enoughCharacters number of characters after which the rest may be left out
 * @param onPage called after each page of a document that has pages
 * @returns undefined if no reader reads this kind of file
 * @throws DocumentError
 */
export async function readDocument(
  bytes: Uint8Array,
  name: string,
  depth = 0,
  enoughCharacters = Number.POSITIVE_INFINITY,
  onPage = () => {},
): Promise<ReadDocument | undefined> {
  const kind = documentKind(name, bytes);
  if (kind === undefined) return undefined;
  const reader = READERS[kind];
  try {
    const read = await reader.read(bytes, depth, enoughCharacters, { name, onPage });
    const title = isOwnName(read.title ?? '') ? read.title : undefined;
    return { reader: reader.name, ...read, title };
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    // The message becomes part of a sentence.
    const reason = messageOf(error).replace(/[.!?\s]+$/, '');
    throw new DocumentError(
      'DOCUMENT_BROKEN',
      { why: `it is damaged (${reason})` },
      { cause: error },
    );
  }
}
