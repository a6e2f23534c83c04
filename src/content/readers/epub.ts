import { posix } from 'node:path';
import { readHtml } from './html.js';
import { DocumentError, dateOf, type Reader, TextCollector } from './reader.js';
import { entry, fieldsOf, readXml, unpacked } from './zip.js';

const FIELDS = new Set(['dc:title', 'dc:creator', 'dc:date', 'dc:language']);
const CONTAINER = 'META-INF/container.xml';
const ENCRYPTION = 'META-INF/encryption.xml';

/** Books in EPUB: pages of HTML, in the order in which they are read. */
export const epub: Reader = {
  name: 'EPUB',
  read: (bytes) => {
    const isPage = (name: string) => /\.(x?html?|opf)$/i.test(name);
    const entries = unpacked(bytes, (name) => name === CONTAINER || name === ENCRYPTION || isPage(name));
    let root = '';
    readXml(entry(entries, CONTAINER), {
      onopentag: (name, attributes) => {
        if (name === 'rootfile' && root === '') root = attributes['full-path'] ?? '';
      },
    });
    const pages = new Map<string, string>();
    const order: string[] = [];
    readXml(entry(entries, root), {
      onopentag: (name, { href = '', id = '', idref = '' }) => {
        if (/^(opf:)?item$/.test(name)) pages.set(id, posix.join(posix.dirname(root), decoded(href)));
        else if (/^(opf:)?itemref$/.test(name)) order.push(idref);
      },
    });
    // Fonts may be encrypted in a book that everybody can read.
    const hidden = Buffer.from(entries[ENCRYPTION] ?? []).toString();
    const text = new TextCollector();
    for (const id of order) {
      const name = pages.get(id) ?? '';
      if (hidden.includes(`"${name}"`)) throw new DocumentError('DOCUMENT_ENCRYPTED', 'it is encrypted');
      if (entries[name] !== undefined)
        text.add(`${readHtml(Buffer.from(entries[name]).toString()).text}\n\n`);
    }
    const fields = fieldsOf(entries[root], FIELDS);
    return {
      text: text.end(),
      title: fields.get('dc:title')?.trim(),
      author: fields.get('dc:creator')?.trim(),
      date: dateOf(fields.get('dc:date')),
      language: fields.get('dc:language')?.trim(),
    };
  },
};

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}
