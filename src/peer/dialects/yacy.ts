import { parseUrl } from '../../lib/text.js';
import { decoded, type HttpAnswer, succeeded, unusable } from '../answer.js';
import { readCitation } from '../citation.js';
import { PeerError } from '../errors.js';
import { type FormField, fieldsOf, formBody, multipartBody } from '../form.js';
import { type EndpointRequest, formRequest, type Http } from '../http.js';
import { isDocumentRecord, readPeerdoc } from '../peerdoc.js';
import { readPushResults } from '../push.js';
import { listDirectories } from '../share.js';
import { isSameUrl } from '../url.js';
import type { AddressPolicy, Dialect, SearchDialect, TableDialect } from './dialect.js';
import { slowIndexingMs } from './standard.js';

const LOCAL_SCHEME = /^(file|smb):/i;
const HOST = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@?#]*@)?(\[[^\]]*\]|[^/:?#]*)/i;
const LOCAL_IP =
  /^(127\.|10\.|192\.168\.|169\.254\.|0\.|172\.(1[6-9]|2\d|3[01])\.|\[(::1?\]|f[cd]|fe[89ab]))/i;
/** The endings of host names that public DNS does not know. */
const LOCAL_NAME =
  /(^|\.)(localhost|local|internal|intranet|lan|corp|home|invalid|test|localdomain)$/i;

const WORDS = { local: 'local', global: 'public' } as const;
const OTHER = { local: 'global', global: 'local' } as const;
const MODES = {
  local: 'a YaCy in its usual mode shows public addresses only',
  global: 'a YaCy in intranet mode shows local addresses only',
} as const;

/**
 * The policy of YaCy. A YaCy network is either `global` (the default: public addresses) or `local`
 * (an intranet).
 */
export const yacyAddresses: AddressPolicy = {
  reachOf(url) {
    if (LOCAL_SCHEME.test(url)) return 'local';
    const host = HOST.exec(url)?.[1] ?? '';
    if (LOCAL_IP.test(host) || LOCAL_NAME.test(host)) return 'local';
    const isSingleLabel = !host.includes('.') && !host.startsWith('[');
    return isSingleLabel ? 'local' : 'global';
  },

  probeUrl: (reach) =>
    reach === 'local'
      ? 'http://localhost/peersync-canary/network.txt'
      : 'http://peersync-canary.example.org/network.txt',

  dropped(url) {
    const reach = yacyAddresses.reachOf(url);
    return {
      code: 'DOMAIN_GATE',
      message:
        `The peer never shows it, while it shows documents with ${WORDS[OTHER[reach]]} addresses: it takes no ` +
        `documents with ${WORDS[reach]} addresses, such as this one (${url}).`,
      hint: `${yacyAddresses.hint(reach)} Then \`peersync retry PATH\`.`,
    };
  },

  unseen(url) {
    const reach = yacyAddresses.reachOf(url);
    return {
      code: 'ADDRESSES_UNSEEN',
      message:
        `The peer accepted documents with ${WORDS[reach]} addresses, such as ${url}, and has not shown any yet. It may drop ` +
        `them without a word: ${MODES[reach]}.`,
      hint: `\`peersync check --canary\` shows within seconds whether it does. ${yacyAddresses.hint(reach)} Then \`peersync retry --all\`.`,
    };
  },

  hint(reach) {
    const mend =
      reach === 'local'
        ? 'give the folder a public `url`, or let YaCy take local addresses (network.unit.domain = local or any, its intranet mode)'
        : 'give the folder a local `url`, or let YaCy take public addresses (network.unit.domain = global or any, not its intranet mode)';
    return `A YaCy network takes either public or local addresses: ${mend}.`;
  },
};

const CONTROL_PATH = '/IndexControlURLs_p.html';
const TOKEN_HEADER = 'x-yacy-transaction-token';

/**
 * Deletes documents of a YaCy, with the page for its administrator. The page needs a token, which
 * is valid as long as the peer runs. The answer proves nothing: it is the same for a document that
 * YaCy never had.
 */
class YacyDeletion {
  #token: string | undefined;

  constructor(private readonly http: Http) {}

  async delete(url: string, signal: AbortSignal | undefined): Promise<void> {
    const known = this.#token;
    let answer = await this.#post(url, known ?? (await this.#newToken(signal)), signal);
    // The peer was restarted, so the token is no longer valid.
    if (answer.status === 400 && known !== undefined)
      answer = await this.#post(url, await this.#newToken(signal), signal);
    if (!succeeded(answer).body.includes('Removed URL'))
      throw unusable(answer, 'does not say that it removed the document');
  }

  async #newToken(signal: AbortSignal | undefined): Promise<string> {
    const answer = succeeded(await this.#ask({ method: 'GET', path: CONTROL_PATH }, signal));
    const token = answer.headers[TOKEN_HEADER];
    if (typeof token !== 'string')
      throw unusable(answer, 'gives no token for the deletion of documents');
    this.#token = token;
    return token;
  }

  async #post(url: string, token: string, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const fields = fieldsOf({ transactionToken: token, urlstring: url, urldelete: 'Delete URL' });
    return await this.#ask(
      await formRequest(CONTROL_PATH, fields, (path) => this.http.url(path)),
      signal,
    );
  }

  async #ask(request: EndpointRequest, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    return await this.http.ask({ ...request, counted: 'other', isProtected: true, signal });
  }
}

/**
 * The type of a document that is pushed without one. YaCy would guess from the extension of the
 * URL, and indexes no text if it cannot.
 */
const DEFAULT_TYPE = 'text/plain; charset=UTF-8';
const PEERDOC_PATH = '/api/yacydoc.xml';
const CITATION_PATH = '/api/citation.html';
const SHARES_PATH = '/share/';
/** A hash that no document has. A citation request for it makes YaCy commit its index at once. */
const NO_DOCUMENT = 'AAAAAAAAAAAA';

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
const tables: TableDialect = {
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
 * Searches YaCy's own index with `/yacysearch.json`. Collection and order are words of the query.
 */
const search: SearchDialect = {
  path: '/yacysearch.json',
  takesFilters: false,
  fields: ({ words, collection, limit, sort }) => {
    const within = collection === undefined ? '' : ` collection:${collection}`;
    const query = `${words}${within}${sort === 'date' ? ' /date' : ''}`;
    return fieldsOf({
      query,
      resource: 'local',
      maximumRecords: limit,
      startRecord: 0,
      verify: 'false',
    });
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

  detectionPath: PEERDOC_PATH,
  /** YaCy answers a request that names no document with an empty record. */
  recognises: (answer) => (isDocumentRecord(answer) ? 'certain' : 'no'),
  canBeEmbedded: false,

  content: {
    encoding: 'base64',
    takesBinary: true,
    readsTextAsHtml: true,
    // YaCy indexes only the words of the URL for e-mail and books. It indexes the text of sheets
    // and slides without blanks. Archives and mail folders may consist of such files.
    convertHere: ['mail', 'mbox', 'archive', 'epub', 'sheets', 'slides'],
    showsWords: true,
    maxBytes: 20_000_000,
  },

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
  async pushRequest(items, { synchronous, commit }, urlOf) {
    const path = '/api/push_p.json';
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
    return { method: 'POST', path, body: await multipartBody(fields, urlOf(path)) };
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

  peerdocRequest(query, { html }, urlOf) {
    const asked = 'url' in query ? { url: yacy.sentUrl(query.url) } : { urlhash: query.urlhash };
    return formRequest(PEERDOC_PATH, fieldsOf({ ...asked, html }), urlOf);
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

  citationRequest(query, { filter, ch }, urlOf) {
    const url = 'url' in query ? yacy.sentUrl(query.url) : undefined;
    const hash = 'hash' in query ? query.hash : undefined;
    return formRequest(CITATION_PATH, fieldsOf({ url, filter, ch, hash }), urlOf);
  },

  /**
   * YaCy fails with a null pointer (500) if the document is not in its index. The error page of
   * that failure names only the path of the request. Error pages of other failures differ.
   */
  citationOf(answer, query) {
    const page = answer.status === 500 ? decoded(answer.body) : '';
    if (/HTTP ERROR:? 500/.test(page) && page.includes(CITATION_PATH)) return undefined;
    const asked = 'url' in query ? { url: yacy.sentUrl(query.url) } : query;
    return readCitation(succeeded(answer), asked);
  },

  /** Deletes one document after the other. YaCy shows each until its index commits. */
  remover({ http }) {
    const deletion = new YacyDeletion(http);
    return async (urls, signal) => {
      for (const url of urls) await deletion.delete(yacy.sentUrl(url), signal);
      return urls.map(() => ({ ok: true }));
    };
  },

  removesDocuments: true,
  isRemoved: (doc) => doc === undefined,
  maxRemovalsPerRequest: 1,
  restoresRemoved: true,

  holdMs: 20_000,
  indexingMs: slowIndexingMs,

  /**
   * YaCy sends documents to its index in groups, the *updates*. A document that the index refuses
   * ends the update: none of its documents are indexed, though YaCy accepted them all (measured
   * with 1.92). A quarter of the hold is longer than an update stays open. 250 items take about
   * five minutes.
   */
  isolation: { quietShare: 1 / 4, roundShare: 1 / 2, maxLost: 250 },

  async commitIndex(http, signal) {
    const query = { hash: NO_DOCUMENT };
    const request = await yacy.citationRequest(query, {}, (path) => http.url(path));
    const answer = await http.ask({ ...request, counted: 'other', isProtected: false, signal });
    yacy.citationOf(answer, query);
  },

  addresses: yacyAddresses,

  search,
  tables,

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
