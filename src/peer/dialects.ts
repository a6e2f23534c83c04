import { parseUrl } from '../lib/text.js';
import { yacyAddresses } from './addresses.js';
import { decoded, isSameUrl, succeeded, unusable } from './answer.js';
import { readCitation } from './citation.js';
import type { Dialect, DialectName, TableDialect } from './dialect.js';
import { PeerError } from './errors.js';
import { type FormField, fieldsOf, formBody, multipartBody } from './form.js';
import { readPeerdoc } from './peerdoc.js';
import { readPushResults } from './push.js';
import { isEmptied } from './removal.js';
import { standardSearch, yacySearch } from './search.js';
import { listDirectories, listRecords } from './share.js';

/**
 * The table API of the specification. It leaves keys, cells and the choice of rows open: there the
 * parameters are those of YaCy. An action sends the label of its button, as the page for editing
 * tables shows it.
 */
const standardTables: TableDialect = {
  readPath: '/api/table_p.html',
  pagePath: '/Tables_p.html',
  changePath: '/Tables_p.html',
  readsOneRow: true,
  actions: { commitrow: 'Commit', deleterows: 'Delete Selected Rows', deletetable: 'Delete Table' },
  changeBody: formBody,
};

const SHARE_PATH = '/api/share.html';

/**
 * Follows the specification to the letter: forms, exact names, and no parameter that is not needed.
 */
export const standard: Dialect = {
  name: 'standard',
  content: { encoding: 'form', takesBinary: false, convertHere: [], showsWords: false },
  holdMs: 0,
  losesUpdates: false,
  maxRemovalsPerRequest: 100,
  restoresRemoved: false,
  pushPath: '/api/push_p.html',
  peerdocPath: '/api/peerdoc.html',
  citationPath: '/api/citation.html',
  tables: standardTables,
  search: standardSearch,
  sentUrl: (url) => url,

  pushBody(items, { synchronous, commit }, url) {
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
    return formBody(fields, url);
  },

  pushResults: readPushResults,
  peerdocOf: (answer, query) =>
    answer.status === 404 ? undefined : readPeerdoc(succeeded(answer), query),
  citationOf: (answer, query) =>
    answer.status === 404 ? undefined : readCitation(succeeded(answer), query),
  isRemoved: (doc) => doc === undefined || isEmptied(doc),

  async shareRequest({ data, c }, urlOf) {
    const body = await formBody(fieldsOf({ data, c }), urlOf(SHARE_PATH));
    return { method: 'POST', path: SHARE_PATH, body };
  },

  listShares: (http, signal) => listRecords(http, SHARE_PATH, signal),
};

/**
 * The type of a document that is pushed without one. YaCy would guess from the extension of the
 * URL, and indexes no text if it cannot.
 */
const DEFAULT_TYPE = 'text/plain; charset=UTF-8';
const SHARES_PATH = '/share/';

/**
 * The limits for a form, in bytes and fields. YaCy refuses a form of more than 200,000 bytes or
 * about 1,000 fields. A multipart body has neither limit.
 */
const FORM_BYTES = 100_000;
const FORM_FIELDS = 500;

/**
 * The tables of YaCy. Rows are read as XML. A change to a missing table creates it. The names of
 * the tables are the options of a list on a page. YaCy cuts long keys without an error, so they
 * name other rows. `search` matches cells and never keys.
 */
const yacyTables: TableDialect = {
  readPath: '/Tables_p.xml',
  pagePath: '/Tables_p.html',
  changePath: '/api/table_p.html',
  keyBytes: 12,
  readsOneRow: false,
  allRowsCount: 'all',
  actions: { commitrow: '1', deleterows: '1', deletetable: '1' },

  async changeBody(fields, url) {
    const form = await formBody(fields, url);
    return form.length <= FORM_BYTES && fields.length <= FORM_FIELDS
      ? form
      : multipartBody(fields, url);
  },
};

/**
 * Speaks as YaCy does: measured with 1.92, and read in the source of later versions. Requests
 * follow the specification wherever YaCy does.
 *
 * For a second or two after a push, YaCy shows the document from a buffer. Then it shows nothing,
 * or the version before, until its index commits. That takes at most about 18.5 s after the push.
 */
export const yacy: Dialect = {
  name: 'yacy',
  content: {
    encoding: 'base64',
    takesBinary: true,
    // YaCy indexes only the words of the URL for e-mail and books. It indexes the text of sheets
    // and slides without blanks.
    convertHere: ['mail', 'epub', 'sheets', 'slides'],
    showsWords: true,
    maxBytes: 20_000_000,
  },
  holdMs: 20_000,
  losesUpdates: true,
  commitHash: 'AAAAAAAAAAAA',
  addresses: yacyAddresses,
  maxRemovalsPerRequest: 1,
  restoresRemoved: true,
  pushPath: '/api/push_p.json',
  peerdocPath: '/api/yacydoc.xml',
  citationPath: standard.citationPath,
  tables: yacyTables,
  search: yacySearch,

  /**
   * Normalises the URL. YaCy keeps the case of a host, and so takes it for another host. It echoes
   * unescaped characters in a way that breaks its answers.
   */
  sentUrl(url) {
    const parsed = parseUrl(url);
    if (parsed === undefined) return url;
    parsed.hash = '';
    return parsed.href;
  },

  /**
   * Builds the only push that YaCy stores byte for byte: text fields of a multipart body, with the
   * content as `data-N$file` in base64. A plain `data-N` stores an empty document, and a file part
   * stores a corrupted one; both are answered with success. Without `responseHeader-N` the whole
   * request fails.
   */
  pushBody(items, { synchronous, commit }, url) {
    const flags = { synchronous: synchronous || undefined, commit: commit || undefined };
    const fields: FormField[] = fieldsOf({ count: items.length, ...flags });
    for (const [n, item] of items.entries()) {
      const { lastModified, contentType = DEFAULT_TYPE } = item;
      const about = {
        [`url-${n}`]: yacy.sentUrl(item.url),
        [`collection-${n}`]: item.collection,
        [`responseHeader-${n}`]: '',
        [`contentType-${n}`]: contentType,
        [`lastModified-${n}`]:
          lastModified === undefined ? undefined : new Date(lastModified).toUTCString(),
      };
      fields.push(...fieldsOf(about), { name: `data-${n}$file`, value: item.data, item: n });
    }
    return multipartBody(fields, url);
  },

  /**
   * Matches results to items by number, because YaCy may echo a URL in another spelling. The answer
   * is `{}` if YaCy could not read the request.
   */
  pushResults(answer, items) {
    if (!decoded(answer.body).trimStart().startsWith('{'))
      throw unusable(answer, 'does not say in JSON whether it accepted what was pushed');
    return readPushResults(answer, items, () => true);
  },

  /**
   * YaCy answers with a record of empty fields if it has no such document. A 404 means that the
   * peer is not a YaCy.
   */
  peerdocOf(answer, query) {
    const doc = readPeerdoc(succeeded(answer), query, isNormalisedFrom);
    if (doc?.urlhash === undefined) return undefined;
    return 'url' in query ? { ...doc, url: query.url } : doc;
  },

  /**
   * YaCy fails with a null pointer (500) if the document is not in its index. The error page of
   * that failure names only the path of the request. Error pages of other failures differ.
   */
  citationOf(answer, query) {
    const page = answer.status === 500 ? decoded(answer.body) : '';
    if (/HTTP ERROR:? 500/.test(page) && page.includes(standard.citationPath)) return undefined;
    const asked = 'url' in query ? { url: yacy.sentUrl(query.url) } : query;
    return readCitation(succeeded(answer), asked);
  },

  isRemoved: (doc) => doc === undefined,

  /** YaCy serves its shared objects as files below `/share/`. A group is a directory. */
  async shareRequest({ data, c }, urlOf) {
    const names = (c === undefined ? data : `${c}/${data}`).split('/');
    if (names.some((name) => name === '' || name === '.' || name === '..')) {
      const what = `can have no shared object of the name ${JSON.stringify(names.join('/'))}`;
      throw new PeerError('PEER_NAME', { url: urlOf(SHARES_PATH), what, delivered: 'no' });
    }
    return { method: 'GET', path: SHARES_PATH + names.map(encodeURIComponent).join('/') };
  },

  listShares: (http, signal) => listDirectories(http, SHARES_PATH, signal),
};

/**
 * Whether `shown` is the spelling in which YaCy shows `sent`. YaCy collapses slashes, and shows
 * `file` URLs unescaped.
 */
function isNormalisedFrom(shown: string, sent: string): boolean {
  return isSameUrl(collapseSlashes(shown), collapseSlashes(sent));
}

function collapseSlashes(url: string): string {
  const [, origin = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*)(.*)$/is.exec(url) ?? [];
  const [path = '', ...query] = rest.split('?');
  return [`${origin}${path.replace(/\/{2,}/g, '/')}`, ...query].join('?');
}

/** All dialects, by name. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { standard, yacy };
