import PostalMime, { type Address } from 'postal-mime';
import { type DocumentReader, dateOf, type Extract, TextCollector } from './document-reader.js';
import { readHtml } from './html.js';

/** Maximum nesting of messages in messages. Attachments below it are left out. */
const MAX_DEPTH = 3;

/** Reads an attachment that is a document itself. @returns undefined if no reader reads it */
export type ReadAttachment = (
  bytes: Uint8Array,
  name: string,
  depth: number,
) => Promise<Extract | undefined>;

/**
 * Returns the reader of e-mail. Its text is sender and recipients, the text of the message, and the
 * attachments that are text or that a reader reads.
 */
export function mailReader(readAttachment: ReadAttachment): DocumentReader {
  return {
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
        const read = await readAttachment(within, name, depth + 1).catch(() => undefined);
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
}

function person({ name, address = '', group = [] }: Address): string {
  if (group.length > 0) return `${name}: ${group.map(person).join(', ')}`;
  return name === '' ? address : `${name} <${address}>`;
}
