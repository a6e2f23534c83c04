import PostalMime, { type Address } from 'postal-mime';
import { messageOf } from '../../lib/errors.js';
import type { DocumentKind } from '../../lib/file.js';
import { documentKind } from '../signatures.js';
import { epub, openDocument, sheets, slides, word } from './archives.js';
import { readHtml } from './html.js';
import { pdf } from './pdf.js';
import { DocumentError, dateOf, type Extract, type Reader, TextCollector } from './reader.js';
import { rtf } from './rtf.js';

/**
 * E-mail: sender and recipients, the text, and the attachments that are text or that a reader
 * reads.
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
    // Newsletters have an empty plain text beside their HTML.
    text.add(`\n${message.text?.trim() || readHtml(html).text}\n`);
    for (const { content, filename, mimeType } of attachments) {
      const name = filename ?? '';
      text.add(`\n${name}\n`);
      if (typeof content === 'string' || depth >= MAX_DEPTH) continue;
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

/** Maximum nesting of messages in messages. Attachments below it are left out. */
const MAX_DEPTH = 3;

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

/** A document that was read, with the name of its reader. */
export type ReadDocument = Extract & { readonly reader: string };

/**
 * Reads a document. A damaged one may take any time and memory: call it in a process that can be
 * killed.
 *
 * @param depth how many other documents this one is nested in
 * @param enoughCharacters number of characters after which the rest may be left out
 * @returns undefined if no reader reads this kind of file
 * @throws DocumentError
 */
export async function readDocument(
  bytes: Uint8Array,
  name: string,
  depth = 0,
  enoughCharacters = Number.POSITIVE_INFINITY,
): Promise<ReadDocument | undefined> {
  const kind = documentKind(name, bytes);
  if (kind === undefined) return undefined;
  const reader = READERS[kind];
  try {
    return { reader: reader.name, ...(await reader.read(bytes, depth, enoughCharacters)) };
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
