import { isUtf8 } from 'node:buffer';
import { escapeMarkup } from '../web/markup.js';
import { normaliseUrl, shownTitle, urlHash } from './content.js';
import { type Document, type DocumentStore, metadataOf, type Pushed } from './documents.js';
import { type Form, Refusal, SMALL } from './form.js';
import type { Context } from './server.js';
import { PAGE_END } from './text-sections.js';

/** The most items of one request. */
const MAX_ITEMS = 10_000;
const MAX_REMOVAL_BYTES = 16 * 2 ** 20;
const MAX_COLLECTIONS = 32;
const MAX_COLLECTION_CHARS = 128;
/** The collection of items that name none, as in YaCy. */
const DEFAULT_COLLECTION = 'user';
const NOT_INDEXED = 'The document cannot be indexed; the log of the peer says why.';
const ITEM_FIELD = /^(?:data|url|collection|lastModified)-(0|[1-9]\d{0,8})$/;

interface ItemResult {
  readonly item: number;
  /** The URL as it was sent. */
  readonly url: string;
  readonly success: boolean;
  readonly message: string;
}

/**
 * Indexes documents: `count`, and `data-N`, `url-N`, `collection-N` for each item from 0 on.
 * `lastModified-N` (ISO 8601) is the last change of its file.
 *
 * An item that is answered with success is on disk and searchable, whatever `synchronous` and
 * `commit` say. Without `count`, all items in the request are taken. An item with an error does not
 * affect the others.
 */
export async function push(context: Context): Promise<string> {
  const { indexer, clock, maxBody } = context.deps;
  context.requireChange();
  const form = await context.form({ body: maxBody, fields: 4 * MAX_ITEMS + 10 });
  const loadDate = clock.now();
  const items = itemNumbers(form).map((item) => {
    const url = form.bytes(`url-${item}`)?.toString() ?? '';
    try {
      return { item, url, pushed: readItem(form, item, url, loadDate) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { item, url: url.slice(0, 2_000), message: error.message };
    }
  });
  const indexed = await indexer.index(items.flatMap(({ pushed }) => pushed ?? []));
  const results = items.map(({ item, url, pushed, message = '' }): ItemResult => {
    if (pushed === undefined) return { item, url, success: false, message };
    if (indexed.shift() !== true) return { item, url, success: false, message: NOT_INDEXED };
    const shownAt = `${context.baseUrl}/api/peerdoc.html?urlhash=${urlHash(pushed.url)}`;
    return { item, url, success: true, message: shownAt };
  });
  return context.record('Content push', answerOf(results));
}

/**
 * Removes documents: `url-N` for each from 0 on, only by POST. An item that is answered with
 * success is gone from disk and index, also if it did not exist.
 */
export async function remove(context: Context): Promise<string> {
  if (context.request.method !== 'POST')
    throw new Refusal(405, 'Documents are removed by POST.', { allow: 'POST' });
  context.requireChange();
  const form = await context.form({ body: MAX_REMOVAL_BYTES, fields: MAX_ITEMS });
  const items = itemNumbers(form).map((item) => ({
    item,
    url: normaliseUrl(form.text(`url-${item}`) ?? ''),
  }));
  const wasThere = context.deps.documents.remove(items.map(({ url }) => url));
  const results = items.map(({ item, url }, i) => {
    const message =
      wasThere[i] === true ? 'The document is removed.' : 'There is no such document.';
    return { item, url, success: true, message };
  });
  return context.record('Removal', answerOf(results));
}

function itemNumbers(form: Form, most = MAX_ITEMS): number[] {
  if (form.text('count') !== undefined)
    return Array.from({ length: form.number('count', 0, most) }, (_, number) => number);
  const numbers = new Set<number>();
  for (const name of form.names()) {
    const number = ITEM_FIELD.exec(name)?.[1];
    if (number !== undefined) numbers.add(Number(number));
  }
  if (numbers.size > most) throw new Refusal(400, `A request takes at most ${most} items.`);
  return [...numbers].sort((a, b) => a - b);
}

/** @throws Refusal with the fault of the item */
function readItem(form: Form, number: number, url: string, loadDate: number): Pushed {
  if (url === '') throw new Refusal(400, `url-${number} is missing`);
  const normal = normaliseUrl(url);
  const data = form.bytes(`data-${number}`);
  if (!data) throw new Refusal(400, `data-${number} is missing`);
  if (!isUtf8(data)) throw new Refusal(400, `data-${number} is not UTF-8 text`);
  const list = form.bytes(`collection-${number}`)?.toString() ?? '';
  const names = [...new Set(list.split(',').map((name) => name.trim()))].filter(
    (name) => name !== '',
  );
  const isUnfit = (name: string) =>
    name.length > MAX_COLLECTION_CHARS || /[\p{Cc}\ufffd]/u.test(name);
  if (names.length > MAX_COLLECTIONS || names.some(isUnfit))
    throw new Refusal(
      400,
      `collection-${number} has to be up to ${MAX_COLLECTIONS} names of up to ${MAX_COLLECTION_CHARS} characters`,
    );
  const modified = Math.min(Date.parse(form.text(`lastModified-${number}`) ?? ''), loadDate);
  const lastModified = Number.isNaN(modified) ? undefined : modified;
  const collections = names.length === 0 ? [DEFAULT_COLLECTION] : names;
  return { url: normal, collections, loadDate, lastModified, data };
}

function answerOf(results: readonly ItemResult[]): object {
  const countsuccess = results.filter((result) => result.success).length;
  const items = results.map(({ item, url, success, message }) => [
    `item-${item}`,
    { item: String(item), url, success: String(success), message },
  ]);
  return {
    count: String(results.length),
    successall: String(countsuccess === results.length),
    ...Object.fromEntries(items),
    countsuccess,
    countfail: results.length - countsuccess,
  };
}

/** The parts of the text on the page of a document. */
const SHOWN_PARTS = 4;

/**
 * Answers with one document, by `url` or by `urlhash`. `html=true` adds the start of its text to
 * the page. With `url-N` for each from 0 on, it answers with several, each with `found`.
 */
export async function peerdoc(context: Context): Promise<string> {
  const { documents } = context.deps;
  const form = await context.form();
  const numbers = itemNumbers(form, SMALL.fields);
  if (numbers.length > 0) {
    const items = numbers.map((item) => {
      const url = form.text(`url-${item}`) ?? '';
      const document = documentAt(url, documents);
      return [
        `item-${item}`,
        { item, found: document !== undefined, url, ...(document && recordOf(document)) },
      ];
    });
    return context.record('Documents', { count: items.length, ...Object.fromEntries(items) });
  }
  const document = findDocument(form, 'urlhash', documents);
  const text = form.isTrue('html')
    ? `<h2>Text</h2>\n<pre>${escapeMarkup(startOf(document.id, documents))}</pre>\n`
    : '';
  return context.record(shownTitle(document), recordOf(document), text);
}

/** Finds a document. An impossible URL has none. */
function documentAt(url: string, documents: DocumentStore): Document | undefined {
  try {
    return documents.find('url', normaliseUrl(url));
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

function recordOf({ id: _, author, date, language, ...document }: Document): object {
  const iso = (ms: number): string => new Date(ms).toISOString();
  const times = { lastModified: iso(document.lastModified), loadDate: iso(document.loadDate) };
  return { ...document, ...times, ...metadataOf({ author, date, language }) };
}

function startOf(id: number, documents: DocumentStore): string {
  const parts = Array.from(
    { length: SHOWN_PARTS },
    (_, part) => documents.textPart(id, part) ?? '',
  );
  const isWhole = documents.textPart(id, SHOWN_PARTS) === undefined;
  return parts.join('').replaceAll(PAGE_END, '') + (isWhole ? '' : '\n… (more)');
}

/**
 * Returns the document that a request names. The hash takes precedence.
 *
 * @throws Refusal 400, 404
 */
export function findDocument(form: Form, hashName: string, documents: DocumentStore): Document {
  const hash = form.text(hashName);
  const url = form.text('url');
  if (hash === undefined && url === undefined)
    throw new Refusal(400, `Name the document by the parameter url or ${hashName}.`);
  const found =
    hash === undefined
      ? documents.find('url', normaliseUrl(url ?? ''))
      : documents.find('urlhash', hash);
  if (!found) throw new Refusal(404, 'This document is not in the index.');
  return found;
}
