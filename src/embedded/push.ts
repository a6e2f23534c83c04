import { isUtf8 } from 'node:buffer';
import type { Clock } from '../lib/clock.js';
import { type Answer, type AnswerForm, answer, Refusal } from './answer.js';
import type { RequestForm } from './form.js';
import type { Indexer } from './indexer.js';
import type { Pushed, Queue } from './library.js';
import { definitionList, documentLink, escapeMarkup, page } from './markup.js';
import { normaliseUrl, urlHash } from './urls.js';

/** Items of one push. */
export const MOST_ITEMS = 10_000;
const MOST_COLLECTIONS = 32;
const LONGEST_COLLECTION = 128;
/** Where items go that name no collection, as in YaCy. */
const DEFAULT_COLLECTION = 'user';
const ITEM_FIELD = /^(?:data|url|collection)-(0|[1-9]\d{0,8})$/;

interface ItemResult {
  readonly item: number;
  /** As it was sent. */
  readonly url: string;
  readonly success: boolean;
  readonly message: string;
}

export interface PushParts {
  readonly queue: Queue;
  readonly indexer: Indexer;
  readonly clock: Clock;
}

/**
 * Takes documents into the peer: `count`, and `data-N`, `url-N`, `collection-N` for each item from 0 on.
 *
 * An item that is answered with success is on disk. It becomes visible within about `commitEveryMs`; with `synchronous=true` or
 * `commit=true` it is visible when the answer comes (for this peer the two are one). Without `count` the items that are
 * there are taken. An item with an error does not keep the others out.
 */
export async function push(
  form: RequestForm,
  as: AnswerForm,
  parts: PushParts,
  baseUrl: string,
): Promise<Answer> {
  const synchronous = form.isTrue('synchronous');
  const commit = form.isTrue('commit');
  const loadDate = parts.clock.now();
  const pushed: Pushed[] = [];
  const results = itemNumbers(form).map((number): ItemResult => {
    const read = readItem(form, number, loadDate);
    if (!read.ok) return { item: number, url: read.url, success: false, message: read.why };
    pushed.push(read.pushed);
    const message = `${baseUrl}/api/peerdoc.html?urlhash=${urlHash(read.pushed.url)}`;
    return { item: number, url: read.url, success: true, message };
  });
  if (pushed.length > 0) {
    const seqs = await parts.queue.accept(pushed);
    parts.indexer.notify();
    if (synchronous || commit) await parts.indexer.indexNow(seqs);
  }
  return answer(as, WRITERS[as](results));
}

function itemNumbers(form: RequestForm): number[] {
  const count = form.text('count');
  if (count !== undefined && !/^\d{1,9}$/.test(count))
    throw new Refusal(400, `The parameter count has to be a number, not "${count.slice(0, 40)}".`);
  const numbers =
    count === undefined ? presentNumbers(form) : Number(count) <= MOST_ITEMS ? upTo(Number(count)) : [];
  if (numbers.length > MOST_ITEMS || Number(count) > MOST_ITEMS)
    throw new Refusal(400, `A push takes at most ${MOST_ITEMS} items.`);
  return numbers;
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, number) => number);
}

function presentNumbers(form: RequestForm): number[] {
  const numbers = new Set<number>();
  for (const name of form.names()) {
    const number = ITEM_FIELD.exec(name)?.[1];
    if (number !== undefined) numbers.add(Number(number));
  }
  return [...numbers].sort((a, b) => a - b);
}

type ReadItem =
  | { readonly ok: true; readonly url: string; readonly pushed: Pushed }
  | { readonly ok: false; readonly url: string; readonly why: string };

function readItem(form: RequestForm, number: number, loadDate: number): ReadItem {
  const url = form.bytes(`url-${number}`)?.toString() ?? '';
  const bad = (why: string): ReadItem => ({ ok: false, url: url.slice(0, 2_000), why });
  if (url === '') return bad(`url-${number} is missing`);
  const normal = normaliseUrl(url);
  if (!normal.ok) return bad(normal.why);
  const data = form.bytes(`data-${number}`);
  if (!data) return bad(`data-${number} is missing`);
  if (!isUtf8(data)) return bad(`data-${number} is not UTF-8 text`);
  const collections = readCollections(form.bytes(`collection-${number}`)?.toString() ?? '');
  if (!collections) {
    return bad(
      `collection-${number} has to be up to ${MOST_COLLECTIONS} names of up to ${LONGEST_COLLECTION} characters`,
    );
  }
  return { ok: true, url, pushed: { url: normal.url, collections, loadDate, data } };
}

function readCollections(list: string): string[] | undefined {
  const names = [...new Set(list.split(',').map((name) => name.trim()))].filter((name) => name !== '');
  if (names.length > MOST_COLLECTIONS) return undefined;
  if (names.some((name) => name.length > LONGEST_COLLECTION || /[\p{Cc}\ufffd]/u.test(name)))
    return undefined;
  return names.length === 0 ? [DEFAULT_COLLECTION] : names;
}

function summary(results: readonly ItemResult[]): {
  count: string;
  successall: string;
  countsuccess: number;
  countfail: number;
} {
  const countsuccess = results.filter((result) => result.success).length;
  return {
    count: String(results.length),
    successall: String(countsuccess === results.length),
    countsuccess,
    countfail: results.length - countsuccess,
  };
}

const WRITERS: Readonly<Record<AnswerForm, (results: readonly ItemResult[]) => string>> = {
  json(results) {
    const { count, successall, countsuccess, countfail } = summary(results);
    const items = results.map((r) => [
      `item-${r.item}`,
      { item: String(r.item), url: r.url, success: String(r.success), message: r.message },
    ]);
    const whole = { count, successall, ...Object.fromEntries(items), countsuccess, countfail };
    return `${JSON.stringify(whole, null, 2)}\n`;
  },
  html(results) {
    const { count, successall, countsuccess, countfail } = summary(results);
    const rows = results.map(
      (r) =>
        `<tr><td>${r.item}</td><td>${documentLink(r.url, r.url)}</td><td>${r.success ? 'ok' : 'fail'}</td>` +
        `<td>${r.success ? documentLink(r.message, r.message) : escapeMarkup(r.message)}</td></tr>`,
    );
    const list = definitionList([
      ['count', count],
      ['successall', successall],
      ['countsuccess', String(countsuccess)],
      ['countfail', String(countfail)],
    ]);
    const table = `<table>\n<tr><th>Item</th><th>URL</th><th>Success</th><th>Message</th></tr>\n${rows.join('\n')}\n</table>`;
    return page(
      'Content push',
      `<h1>Content push</h1>\n${list}\n${results.length > 0 ? table : '<p>No items were sent.</p>'}`,
    );
  },
};
