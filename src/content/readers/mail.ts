import PostalMime, { type Address } from 'postal-mime';
import { readHtml } from './html.js';
import { dateOf, type Reader, TextCollector } from './reader.js';

/** E-mail: who wrote to whom, the text, and what is attached where a reader can read it. */
export const mail: Reader = {
  name: 'e-mail',
  read: async (bytes, inner) => {
    const message = await PostalMime.parse(bytes, { attachmentEncoding: 'arraybuffer' });
    const { attachments, cc = [], from, html, subject, to = [] } = message;
    const text = new TextCollector();
    const people = (what: string, all: readonly Address[]) => {
      if (all.length > 0) text.add(`${what}: ${all.map(person).join(', ')}\n`);
    };
    people('From', from === undefined ? [] : [from]);
    people('To', to);
    people('Cc', cc);
    text.add(`\n${message.text ?? (html === undefined ? '' : readHtml(html).text)}\n`);
    for (const { content, filename } of attachments) {
      const name = filename ?? '';
      text.add(`\n${name}\n`);
      const read = typeof content === 'string' ? undefined : await inner(new Uint8Array(content), name);
      if (read !== undefined) text.add(`${read.title ?? ''}\n${read.text}\n`);
    }
    const author = from === undefined ? undefined : person(from);
    return { text: text.end(), title: subject?.trim() || undefined, author, date: dateOf(message.date) };
  },
};

function person({ name, address = '', group = [] }: Address): string {
  if (group.length > 0) return `${name}: ${group.map(person).join(', ')}`;
  return name === '' ? address : `${name} <${address}>`;
}
