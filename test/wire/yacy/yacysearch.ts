import { type Answer, escapedXml, page } from './answer.js';
import type { Document, DocumentIndex } from './document-index.js';
import { first, type ReadForm } from './form.js';
import { wordsOf } from './push.js';

/**
 * `yacysearch.json`, as the templates of YaCy make it: words and `collection:` in the query, marks
 * in the snippets.
 */
export function yacysearch(index: DocumentIndex, form: ReadForm): Answer {
  if (typeof form === 'string') return page('application/json', '{}');
  const query = first(form, 'query') ?? '';
  const most = Number(first(form, 'maximumRecords') ?? 10);
  const collection = /collection:(\S+)/.exec(query)?.[1];
  const words = wordsOf(query.replace(/collection:\S+|\/date/g, ''));
  const isFound = ({ collections, text, title }: Document) =>
    (collection === undefined || collections.includes(collection)) &&
    words.every((word) => wordsOf(`${title} ${text}`).includes(word));
  const found = index.searched().filter(isFound);
  if (query.includes('/date')) found.sort((a, b) => b.lastModified - a.lastModified);
  const items = found.slice(0, most).map(({ hash, lastModified, size, text, title, url }) => ({
    title: escapedXml(title),
    link: escapedXml(url),
    description: escapedXml(text.slice(0, 200)).replaceAll(
      words[0] ?? '',
      `<b>${words[0] ?? ''}</b>`,
    ),
    pubDate: new Date(lastModified).toUTCString(),
    size: String(size),
    sizename: `${size} bytes`,
    guid: hash,
    host: new URL(url).host,
  }));
  const counts = {
    totalResults: found.length.toLocaleString('de'),
    startIndex: '0',
    itemsPerPage: String(most),
  };
  const channel = {
    title: 'YaCy P2P-Search',
    ...counts,
    searchTerms: query,
    items: [...items, {}],
    navigation: [],
  };
  return page('application/json', JSON.stringify({ channels: [channel] }));
}
