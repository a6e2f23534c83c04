import { isSuccess, succeeded } from '../answer.js';
import { readCitation } from '../citation.js';
import { type FormField, fieldsOf, formBody } from '../form.js';
import { formRequest, type Http } from '../http.js';
import { isDocumentRecord, type Peerdoc, readPeerdoc } from '../peerdoc.js';
import { type PushResult, readPushResults } from '../push.js';
import { listRecords } from '../share.js';
import type { Dialect, SearchDialect, TableDialect } from './dialect.js';

/** The path of one document. In an embedded peer, also that of several. */
export const PEERDOC_PATH = '/api/peerdoc.html';
const CITATION_PATH = '/api/citation.html';
const REMOVE_PATH = '/api/remove_p.html';
const SHARE_PATH = '/api/share.html';

/** The statuses of a peer that has no removal page, because it is not an embedded peer. */
const NO_SUCH_PAGE = new Set([404, 405, 410, 501]);
/** The collection of the empty documents that replace removed ones in peers that cannot remove. */
export const REMOVED_COLLECTION = 'removed';
/** sha256 of an empty text. */
const EMPTY_DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** The slowest indexing that was measured: 9 s for 5 MB and 57 s for 50 MB, rounded up. */
const INDEXING_MS_PER_BYTE = 2_000 / 1e6;
const LONGEST_INDEXING_MS = 60_000;

/** Returns how long the slowest measured peer (a YaCy) takes to index so many bytes, in ms. */
export function slowIndexingMs(bytes: number): number {
  return Math.min(LONGEST_INDEXING_MS, bytes * INDEXING_MS_PER_BYTE);
}

/**
 * The table API of the specification. It leaves keys, cells and the choice of rows open: there the
 * parameters are those of YaCy. An action sends the label of its button, as the page for editing
 * tables shows it.
 */
const tables: TableDialect = {
  readPath: '/api/table_p.html',
  pagePath: '/Tables_p.html',
  changePath: '/Tables_p.html',
  readsOneRow: true,
  actions: { commitrow: 'Commit', deleterows: 'Delete Selected Rows', deletetable: 'Delete Table' },
  changeBody: formBody,
};

/** Searches the embedded peer with `/search.json`. The specification has no search. */
const search: SearchDialect = {
  path: '/search.json',
  takesFilters: true,
  fields: ({ words, type, after, before, collection, limit, sort }) => {
    const hasDate = after !== undefined || before !== undefined;
    // A quotation mark in the words may have no end.
    const query = [
      ...(type === undefined ? [] : [`type:${type}`]),
      ...(hasDate ? [`date:${after ?? ''}..${before ?? ''}`] : []),
      words,
    ].join(' ');
    return fieldsOf({ query, collection, limit, sort });
  },
};

/**
 * Follows the specification to the letter: forms, exact names, and no parameter that is not needed.
 * The embedded peer speaks it.
 */
export const standard: Dialect = {
  name: 'standard',

  detectionPath: PEERDOC_PATH,

  /**
   * The request names no document, so a peer may refuse it with any status of a client's error but
   * 404.
   */
  recognises(answer) {
    const { status } = answer;
    if (isDocumentRecord(answer)) return 'certain';
    const isRefusal = status >= 400 && status < 500 && status !== 404;
    return isSuccess(status) || isRefusal ? 'possible' : 'no';
  },

  canBeEmbedded: true,

  content: {
    encoding: 'form',
    takesBinary: false,
    readsTextAsHtml: false,
    convertHere: [],
    showsWords: false,
  },

  sentUrl: (url) => url,

  pushRequest(items, { synchronous, commit }, urlOf) {
    const flags = { synchronous: synchronous || undefined, commit: commit || undefined };
    const fields: FormField[] = fieldsOf({ ...flags, count: items.length });
    items.forEach(({ data, url: address, collection, lastModified }, n) => {
      fields.push({ name: `data-${n}`, value: data, item: n });
      fields.push({ name: `url-${n}`, value: address });
      fields.push({ name: `collection-${n}`, value: collection });
      const modified = new Date(lastModified ?? Number.NaN);
      if (!Number.isNaN(modified.getTime()))
        fields.push({ name: `lastModified-${n}`, value: modified.toISOString() });
    });
    return formRequest('/api/push_p.html', fields, urlOf);
  },

  pushResults: readPushResults,

  peerdocRequest: (query, { html }, urlOf) =>
    formRequest(PEERDOC_PATH, fieldsOf({ ...query, html }), urlOf),

  peerdocOf: (answer, query) =>
    answer.status === 404 ? undefined : readPeerdoc(succeeded(answer), query),

  citationRequest(query, { filter, ch }, urlOf) {
    const url = 'url' in query ? query.url : undefined;
    const hash = 'hash' in query ? query.hash : undefined;
    return formRequest(CITATION_PATH, fieldsOf({ url, filter, ch, hash }), urlOf);
  },

  citationOf: (answer, query) =>
    answer.status === 404 ? undefined : readCitation(succeeded(answer), query),

  /**
   * Removes documents with the removal page of an embedded peer. In a peer without that page, each
   * is replaced by an empty one in the collection `removed`.
   */
  remover({ http, push }) {
    let hasPage = true;
    return async (urls, signal) => {
      const results = hasPage ? await removeByPage(http, urls, signal) : undefined;
      if (results !== undefined) return results;
      hasPage = false;
      const empty = { collection: REMOVED_COLLECTION, data: Buffer.alloc(0) };
      return await push(
        urls.map((url) => ({ url, ...empty })),
        signal,
      );
    };
  },

  removesDocuments: false,
  isRemoved: (doc) => doc === undefined || isEmptied(doc),
  maxRemovalsPerRequest: 100,
  restoresRemoved: false,

  holdMs: 0,
  // The speed of an unknown peer is unknown. This matters only if `confirm.hold` is configured.
  indexingMs: slowIndexingMs,

  search,
  tables,
  shareRequest: ({ data, c }, urlOf) => formRequest(SHARE_PATH, fieldsOf({ data, c }), urlOf),
  listShares: (http, signal) => listRecords(http, SHARE_PATH, signal),
};

/**
 * Removes documents from an embedded peer, which may run on another machine.
 *
 * @returns the answer for each URL, in order; undefined if the peer has no removal page
 */
async function removeByPage(
  http: Http,
  urls: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly PushResult[] | undefined> {
  const fields = urls.map((url, n) => ({ name: `url-${n}`, value: url }));
  const request = await formRequest(REMOVE_PATH, fields, (path) => http.url(path));
  const answer = await http.ask({ ...request, counted: 'other', isProtected: true, signal });
  if (NO_SUCH_PAGE.has(answer.status)) return undefined;
  return readPushResults(
    succeeded(answer),
    urls.map((url) => ({ url })),
  );
}

/** Whether a document is the empty one that replaced a removed one. */
function isEmptied({ collections, digest, size, words }: Peerdoc): boolean {
  if (collections !== undefined && !collections.includes(REMOVED_COLLECTION)) return false;
  if (digest !== undefined) return digest === EMPTY_DIGEST;
  if (size !== undefined) return size === 0;
  return words === undefined ? collections !== undefined : words === 0;
}
