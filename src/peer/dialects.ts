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
 * The specification, and for what it leaves unsaid (keys, cells, which rows) the parameters of
 * YaCy. What an action is sent with is the label of its button, as `edittable` shows.
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

/** The specification to the letter: form-encoded, exact names, no parameter that is not needed. */
export const standard: Dialect = {
  name: 'standard',
  content: { encoding: 'form', takesBinary: false, badlyRead: [], showsWords: false },
  holdMs: 0,
  losesUpdates: false,
  removedAtOnce: 100,
  bringsBack: false,
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
 * YaCy tells the type by the extension of the URL where none is given, and takes no text from what
 * it cannot tell.
 */
const TEXT = 'text/plain; charset=UTF-8';
const SHARES = '/share/';

/**
 * YaCy refuses forms of more than 200,000 bytes or about 1,000 fields; a multipart body has neither
 * limit.
 */
const FORM_BYTES = 100_000;
const FORM_FIELDS = 500;

/**
 * Tables as YaCy has them: read as XML, changed where an absent table is created and not an error,
 * listed among the choices of a page. Longer keys are cut without a word, and are then other rows.
 * `search` looks into cells, and nothing into keys.
 */
const yacyTables: TableDialect = {
  readPath: '/Tables_p.xml',
  pagePath: '/Tables_p.html',
  changePath: '/api/table_p.html',
  keyBytes: 12,
  readsOneRow: false,
  countOfAll: 'all',
  actions: { commitrow: '1', deleterows: '1', deletetable: '1' },

  async changeBody(fields, url) {
    const form = await formBody(fields, url);
    return form.length <= FORM_BYTES && fields.length <= FORM_FIELDS
      ? form
      : multipartBody(fields, url);
  },
};

/**
 * YaCy, as a running 1.92 showed it and the sources of later ones read. Where it speaks as the
 * specification does, it is asked so.
 *
 * What it shows of a pushed document comes from a buffer that is read for a second or two; then
 * nothing (or the version before) is shown until its index commits, at the latest about 18.5 s
 * after the push.
 */
export const yacy: Dialect = {
  name: 'yacy',
  content: {
    encoding: 'base64',
    takesBinary: true,
    // Of e-mail and books it indexes the words of the URL only, and of sheets and slides the text
    // without blanks.
    badlyRead: ['mail', 'epub', 'sheets', 'slides'],
    showsWords: true,
    maxBytes: 20_000_000,
  },
  holdMs: 20_000,
  losesUpdates: true,
  commitHash: 'AAAAAAAAAAAA',
  addresses: yacyAddresses,
  removedAtOnce: 1,
  bringsBack: true,
  pushPath: '/api/push_p.json',
  peerdocPath: '/api/yacydoc.xml',
  citationPath: standard.citationPath,
  tables: yacyTables,
  search: yacySearch,

  /**
   * YaCy leaves the case of a host as it is and then takes it for another, and echoes what is not
   * escaped in a way that breaks its answers.
   */
  sentUrl(url) {
    const parsed = parseUrl(url);
    if (parsed === undefined) return url;
    parsed.hash = '';
    return parsed.href;
  },

  /**
   * A push that YaCy stores byte for byte: text fields of a multipart body, the content as
   * `data-N$file` in base64. A plain `data-N` would store an empty document, and a file part a
   * corrupted one, both with an answer of success; without `responseHeader-N` the whole request
   * fails.
   */
  pushBody(items, { synchronous, commit }, url) {
    const flags = { synchronous: synchronous || undefined, commit: commit || undefined };
    const fields: FormField[] = fieldsOf({ count: items.length, ...flags });
    for (const [n, item] of items.entries()) {
      const { lastModified, contentType = TEXT } = item;
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
   * The numbers decide: URLs are echoed as they come. `{}` is the answer to a request that could
   * not be read.
   */
  pushResults(answer, items) {
    if (!decoded(answer.body).trimStart().startsWith('{'))
      throw unusable(answer, 'does not say in JSON whether it accepted what was pushed');
    return readPushResults(answer, items, () => true);
  },

  /**
   * A document that is not there is a record of empty fields. A 404 says that this is not a YaCy.
   */
  peerdocOf(answer, query) {
    const doc = readPeerdoc(succeeded(answer), query, isNormalisedFrom);
    if (doc?.urlhash === undefined) return undefined;
    return 'url' in query ? { ...doc, url: query.url } : doc;
  },

  /**
   * The page servlet fails for a document that is not in the index (a null pointer), and its page
   * says no more than where; what fails elsewhere looks otherwise.
   */
  citationOf(answer, query) {
    const page = answer.status === 500 ? decoded(answer.body) : '';
    if (/HTTP ERROR:? 500/.test(page) && page.includes(standard.citationPath)) return undefined;
    const asked = 'url' in query ? { url: yacy.sentUrl(query.url) } : query;
    return readCitation(succeeded(answer), asked);
  },

  isRemoved: (doc) => doc === undefined,

  /** Its shared objects are the files below `/share/`; a group of them is a directory. */
  async shareRequest({ data, c }, urlOf) {
    const names = (c === undefined ? data : `${c}/${data}`).split('/');
    if (names.some((name) => name === '' || name === '.' || name === '..')) {
      const what = `can have no shared object of the name ${JSON.stringify(names.join('/'))}`;
      throw new PeerError('PEER_NAME', { url: urlOf(SHARES), what, delivered: 'no' });
    }
    return { method: 'GET', path: SHARES + names.map(encodeURIComponent).join('/') };
  },

  listShares: (http, signal) => listDirectories(http, SHARES, signal),
};

/** Whether YaCy made `shown` of `sent`: it collapses slashes and gives files unescaped. */
function isNormalisedFrom(shown: string, sent: string): boolean {
  return isSameUrl(collapsed(shown), collapsed(sent));
}

function collapsed(url: string): string {
  const [, origin = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*)(.*)$/is.exec(url) ?? [];
  const [path = '', ...query] = rest.split('?');
  return [`${origin}${path.replace(/\/{2,}/g, '/')}`, ...query].join('?');
}

/** All dialects that are spoken, by name. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { standard, yacy };
