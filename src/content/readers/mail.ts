import mime from 'mime';
import PostalMime, { type Address } from 'postal-mime';
import { holdsPrivateKey } from '../signatures.js';
import { attachmentText, type ReadAttachment } from './attachments.js';
import { DeclaredCharsets } from './charset.js';
import { type DocumentReader, dateOf, TextCollector } from './document-reader.js';
import { readHtml } from './html.js';
import { KEPT_OUT } from './kept-out.js';

/**
 * Returns the reader of e-mail. Its text is sender and recipients, the text of the message, and the
 * attachments that are text or that a reader reads.
 */
export function mailReader(readAttachment: ReadAttachment): DocumentReader {
  return {
    name: 'e-mail',
    read: async (bytes, context) => {
      const message = await PostalMime.parse(bytes, { attachmentEncoding: 'arraybuffer' });
      const { attachments, cc = [], from, html = '', subject, to = [] } = message;
      const text = new TextCollector();
      const people = (what: string, all: readonly Address[]) => {
        if (all.length > 0) text.add(`${what}: ${all.map(person).join(', ')}\n`);
      };
      people('From', from === undefined ? [] : [from]);
      people('To', to);
      people('Cc', cc);
      const body = longer(message.text?.trim() ?? '', readHtml(html).text);
      text.add(`\n${holdsPrivateKey(Buffer.from(body)) ? KEPT_OUT : body}\n`);
      const charsets = new DeclaredCharsets(bytes);
      for (const { content, filename, mimeType: type } of attachments) {
        if (typeof content === 'string') continue;
        const name = filename ?? '';
        const within = new Uint8Array(content);
        const types = [type, mime.getType(name) ?? ''];
        const attachment = {
          name,
          bytes: within,
          // Mail programs forward a message without the name of a file.
          readAs: type === 'message/rfc822' ? `message ${name}.eml` : name,
          isText: types.some((each) => each.startsWith('text/')),
          isHtml: types.includes('text/html'),
          asDeclared: (isKnown: boolean) => charsets.textOf(within, { name, type }, isKnown),
        };
        text.add(`\n${name}\n${await attachmentText(attachment, readAttachment, context)}\n`);
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

/**
 * Returns the alternative with more words. Newsletters have little or no plain text beside their
 * HTML, and long addresses in it.
 */
function longer(plain: string, page: string): string {
  const length = (text: string) => text.replace(/https?:\/\/\S+|\s+/g, '').length;
  return length(page) > length(plain) ? page : plain;
}

function person({ name, address = '', group = [] }: Address): string {
  if (group.length > 0) return `${name}: ${group.map(person).join(', ')}`;
  return name === '' ? address : `${name} <${address}>`;
}
