import { type Answer, emptyPage, failed, page } from './answer.js';
import type { Document, DocumentIndex } from './document-index.js';
import { type Form, first, type ReadForm } from './form.js';
import { parse } from './parser.js';
import { BadUrl, hashOf, type Network, normalUrl, takes, urlTokens } from './urls.js';

export interface PushPeer {
  readonly index: DocumentIndex;
  readonly network: Network;
  /** `host:port`, as the peer believes to be reached. */
  readonly address: string;
}

interface Result {
  readonly url: string;
  readonly ok: boolean;
  readonly message: string;
}

/** `push_p`: its success only means that the URL could be read. */
export function push(peer: PushPeer, path: string, form: ReadForm): Answer {
  const kind = path.slice(path.lastIndexOf('.') + 1);
  if (form === 'too large') return failed(path, 'java.lang.IllegalStateException: Form too large');
  if (form === 'none' || form.has('c')) return answer(kind, undefined);
  const count = Number.parseInt(first(form, 'count') ?? '', 10) || 0;
  const commit = isTrue(first(form, 'commit'));
  const synchronous = commit || isTrue(first(form, 'synchronous'));
  const results: Result[] = [];
  for (let n = 0; n < count; n += 1) {
    const url = first(form, `url-${n}`) ?? '';
    try {
      const normal = normalUrl(url);
      if (!form.has(`responseHeader-${n}`)) return failed(path);
      if (takes(peer.network, normal)) {
        const document = documentOf(form, n, normal);
        if (synchronous) peer.index.put(document);
        else peer.index.enqueue(document);
      } else if (synchronous) return failed(path);
      const message = `http://${peer.address}/solr/select?q=sku:%22${url}%22`;
      results.push({ url, ok: true, message });
    } catch (error) {
      if (!(error instanceof BadUrl)) throw error;
      results.push({ url, ok: false, message: error.message });
    }
  }
  if (commit) peer.index.commit();
  return answer(kind, results);
}

/** Returns the number of documents in a push. */
export function documentsOf(form: ReadForm): number {
  return typeof form === 'string'
    ? 0
    : [...form.keys()].filter((name) => /^url-\d+$/.test(name)).length;
}

function isTrue(value: string | undefined): boolean {
  return value === 'true' || value === 'on' || value === '1';
}

function documentOf(form: Form, n: number, url: string): Document {
  const data = decoded(first(form, `data-${n}$file`) ?? '');
  const typeHeader = (form.get(`responseHeader-${n}`) ?? [])
    .map((header) => /^content-type:\s*(.*)$/i.exec(header)?.[1])
    .find((value) => value !== undefined);
  const contentType = first(form, `contentType-${n}`) ?? typeHeader ?? '';
  const parsed = parse(url, contentType, data);
  const words = parsed === undefined ? urlTokens(url).length : blanksIn(parsed.text);
  const now = Date.now();
  return {
    url,
    hash: hashOf(url),
    title: parsed?.title ?? '',
    text: parsed?.text ?? urlTokens(url).join(' '),
    words: data.length === 0 ? 0 : words,
    size: data.length,
    collections: collectionsOf(first(form, `collection-${n}`)),
    contentType,
    doctype: parsed?.doctype ?? 'u',
    lastModified: Math.floor(modified(first(form, `lastModified-${n}`), now) / 1_000) * 1_000,
    loadDate: Math.floor(now / 1_000) * 1_000,
  };
}

/**
 * Knows no wrong base64: letters of other alphabets give garbage, and only text that is not ASCII
 * is recognised as text, and taken as it is.
 */
function decoded(text: string): Buffer {
  return Buffer.from(text, /[\u0080-\uffff]/.test(text) ? 'utf8' : 'base64');
}

/** Its `wordcount_i` is how many blanks the text has, and one more [S]. */
function blanksIn(text: string): number {
  return text === '' ? 0 : text.split(' ').length;
}

export function wordsOf(text: string): string[] {
  return text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
}

function collectionsOf(given: string | undefined): string[] {
  return (given ?? '')
    .replace(/\s/g, '')
    .split(',')
    .filter((collection) => collection !== '');
}

/** Only dates as HTTP writes them are read; they cannot be before 1970 or in the future. */
function modified(given: string | undefined, now: number): number {
  if (given === undefined || !/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(given))
    return now;
  return Math.min(Math.max(Date.parse(given), 0), now);
}

function answer(kind: string, results: readonly Result[] | undefined): Answer {
  if (kind === 'json')
    return page('application/json', results === undefined ? '{}\n' : json(results));
  return emptyPage();
}

/** Written as the peer writes it, which escapes nothing. */
function json(results: readonly Result[]): string {
  const good = results.filter(({ ok }) => ok).length;
  const items = results.map(
    ({ url, ok, message }, n) => `  "item-${n}":{
    "item":"${n}",
    "url":"${url}",
    "success": "${ok}",
    "message": "${message}"
  },
`,
  );
  return `{
  "count":"${results.length}",
  "successall": "${good === results.length}",
${items.join('')}  "countsuccess":${good},
  "countfail":${results.length - good}
}
`;
}
