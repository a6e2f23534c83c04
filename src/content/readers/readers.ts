import PostalMime, { type Address } from 'postal-mime';
import type { DocumentKind } from '../../lib/file.js';
import { documentKind } from '../signatures.js';
import { epub, openDocument, sheets, slides, word } from './archives.js';
import { readHtml } from './html.js';
import { pdf } from './pdf.js';
import { DocumentError, dateOf, type Extract, type Reader, TextCollector } from './reader.js';
import { rtf } from './rtf.js';

/**
 * E-mail: who wrote to whom, the text, and what is attached where that is text or a reader reads
 * it.
 */
const mail: Reader = {
  name: 'e-mail',
  read: async (bytes, depth) => {
    const message = await PostalMime.parse(bytes, { attachmentEncoding: 'arraybuffer' });
    const { attachments, cc = [], from, html = '', subject, to = [] } = message;
    const text = new TextCollector();
    const people = (what: string, all: readonly Address[]) => {
      if (all.length > 0) text.add(`${what}: ${all.map(person).join(', ')}\n`);
    };
    people('From', from === undefined ? [] : [from]);
    people('To', to);
    people('Cc', cc);
    // Newsletters have an empty text beside their page.
    text.add(`\n${message.text?.trim() || readHtml(html).text}\n`);
    for (const { content, filename, mimeType } of attachments) {
      const name = filename ?? '';
      text.add(`\n${name}\n`);
      if (typeof content === 'string' || depth >= MOST_DEPTH) continue;
      const within = new Uint8Array(content);
      const read = await readDocument(within, name, depth + 1).catch(() => undefined);
      if (read !== undefined) text.add(`${read.title ?? ''}\n${read.text}\n`);
      else if (mimeType === 'text/html') text.add(readHtml(Buffer.from(within).toString()).text);
      else if (mimeType.startsWith('text/')) text.add(Buffer.from(within).toString());
    }
    const author = from === undefined ? undefined : person(from);
    return {
      text: text.end(),
      title: subject?.trim() || undefined,
      author,
      date: dateOf(message.date),
    };
  },
};

/** A message holds documents, which may be messages; deeper ones are left out. */
const MOST_DEPTH = 3;

function person({ name, address = '', group = [] }: Address): string {
  if (group.length > 0) return `${name}: ${group.map(person).join(', ')}`;
  return name === '' ? address : `${name} <${address}>`;
}

const READERS: Readonly<Record<DocumentKind, Reader>> = {
  pdf,
  word,
  slides,
  sheets,
  openDocument,
  epub,
  rtf,
  mail,
};

/** A document that was read, and by what. */
export type ReadDocument = Extract & { readonly reader: string };

/**
 * Reads a document. What is damaged may take any time and memory: meant for a process that can be
 * ended.
 *
 * @param depth in how many other documents it is
 * @param enough characters after which the rest may be left out
 * @returns undefined for what no reader reads
 * @throws DocumentError
 */
export async function readDocument(
  bytes: Uint8Array,
  name: string,
  depth = 0,
  enough = Number.POSITIVE_INFINITY,
): Promise<ReadDocument | undefined> {
  const kind = documentKind(name, bytes);
  if (kind === undefined) return undefined;
  const reader = READERS[kind];
  try {
    return { reader: reader.name, ...(await reader.read(bytes, depth, enough)) };
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    // It becomes a part of a sentence.
    throw new DocumentError('DOCUMENT_BROKEN', `it is damaged (${why.replace(/[.!?\s]+$/, '')})`);
  }
}
