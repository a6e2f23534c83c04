import { type DocumentKind, documentKind } from '../document-types.js';
import { epub } from './epub.js';
import { mail } from './mail.js';
import { openDocument, sheets, slides, word } from './office.js';
import { pdf } from './pdf.js';
import { DocumentError, type Extract, type Reader } from './reader.js';
import { rtf } from './rtf.js';

const READERS: Readonly<Record<DocumentKind, Reader>> = {
  ...{ pdf, word, slides, sheets, openDocument, epub, rtf, mail },
};

/** A message holds documents, which may be messages; deeper ones are left out. */
const MOST_DEPTH = 3;

/** A document that was read, and by what. */
export type ReadDocument = Extract & { readonly reader: string };

/**
 * Reads a document whole. What is damaged may take any time and memory: meant for a thread that can be ended.
 *
 * @returns undefined for what no reader reads
 * @throws DocumentError
 */
export async function readDocument(
  bytes: Uint8Array,
  name: string,
  depth = 0,
): Promise<ReadDocument | undefined> {
  const kind = documentKind(name, bytes);
  if (kind === undefined) return undefined;
  const reader = READERS[kind];
  const inner = async (within: Uint8Array, its: string) =>
    depth >= MOST_DEPTH ? undefined : await readDocument(within, its, depth + 1).catch(() => undefined);
  try {
    return { reader: reader.name, ...(await reader.read(bytes, inner)) };
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new DocumentError('DOCUMENT_BROKEN', `it is damaged (${why})`);
  }
}
