import mime from 'mime';
import PostalMime, { type Address } from 'postal-mime';
import { decoderOf, EncodingDetector } from '../encoding.js';
import { holdsPrivateKey } from '../signatures.js';
import { type DocumentReader, dateOf, type Extract, TextCollector } from './document-reader.js';
import { readHtml } from './html.js';
import { isKeptOut, KEPT_OUT } from './kept-out.js';

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
      const body = longer(message.text?.trim() ?? '', readHtml(html).text);
      text.add(`\n${holdsPrivateKey(Buffer.from(body)) ? KEPT_OUT : body}\n`);
      for (const { content, filename, mimeType } of attachments) {
        const name = filename ?? '';
        text.add(`\n${name}\n`);
        if (typeof content === 'string' || depth >= MAX_DEPTH) continue;
        const within = new Uint8Array(content);
        if (isKeptOut(name) || holdsPrivateKey(within)) {
          text.add(`${KEPT_OUT}\n`);
          continue;
        }
        // Mail programs forward a message without the name of a file.
        const file = mimeType === 'message/rfc822' ? `message ${name}.eml` : name;
        const read = await readAttachment(within, file, depth + 1).catch(() => undefined);
        if (read !== undefined) text.add(`${read.title ?? ''}\n${read.text}\n`);
        else text.add(attachedText(within, [mimeType, mime.getType(name) ?? '']));
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

/**
 * Returns the text of an attachment that is a text file; empty for any other.
 *
 * @param types its media types, as it is declared and by its name
 */
function attachedText(bytes: Uint8Array, types: readonly string[]): string {
  const isPage = types.includes('text/html');
  if (!isPage && !types.some((type) => type.startsWith('text/'))) return '';
  const detector = new EncodingDetector();
  detector.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  const encoding = detector.end();
  if (encoding === 'binary' || encoding === 'unknown-8bit') return '';
  const decoder = decoderOf(encoding);
  const text = decoder.decode(bytes, { stream: true }) + decoder.decode();
  return isPage ? readHtml(text).text : text;
}

function person({ name, address = '', group = [] }: Address): string {
  if (group.length > 0) return `${name}: ${group.map(person).join(', ')}`;
  return name === '' ? address : `${name} <${address}>`;
}
