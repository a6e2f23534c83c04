import { type Clock, systemClock } from '../lib/clock.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import { PeerAccess } from './access.js';
import {
  type AnswerHead,
  allRecords,
  fieldValues,
  type HttpAnswer,
  isSuccess,
  readAnswer,
  statusError,
  succeeded,
  unusable,
} from './answer.js';
import type { Credentials } from './auth.js';
import type { Citation, CitationOptions, CitationQuery } from './citation.js';
import type { Dialect, DialectName } from './dialect.js';
import { DIALECTS, standard, yacy } from './dialects.js';
import { unlessAborted } from './exchange-errors.js';
import type { Timeouts } from './exchange-options.js';
import { fieldsOf, formBody } from './form.js';
import { Http, type RequestCounts } from './http.js';
import { type Peerdoc, type PeerdocOptions, type PeerdocQuery, readPeerdocs } from './peerdoc.js';
import type { PushAnswer, PushItem, PushOptions, PushResult } from './push.js';
import { REMOVED_COLLECTION, removeByPage, YacyDeletion } from './removal.js';
import { readSearch, type SearchAnswer, type SearchQuery } from './search.js';
import {
  conditionsOf,
  type ShareOptions,
  type ShareQuery,
  type ShareStream,
  shareOf,
} from './share.js';
import { PeerTables } from './tables.js';

export interface PeerClientOptions {
  /** The `{base_url}` of the API: http or https, without credentials, query or fragment. */
  readonly baseUrl: string;
  /**
   * The path of a Unix socket. Requests go there, and not to the host and port of `baseUrl`.
   * @default none
   */
  readonly socketPath?: string | undefined;
  readonly credentials?: Credentials;
  /** `ca` holds certificates (PEM text) to trust besides the usual ones. */
  readonly tls?: { readonly ca?: string };
  /** In ms. @default connect 10 s, headers 30 s, body 60 s, total 5 min */
  readonly timeouts?: Partial<Timeouts>;
  /**
   * The longest answer that is read, in bytes. Some methods have a limit of their own. @default 16
   * MiB
   */
  readonly maxAnswer?: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /**
   * Whether Basic may send the password over http to another machine. Everyone on the way can read
   * it.
   *
   * @default false
   */
  readonly allowBasic?: boolean;
  /**
   * The path of a small file that records the strongest authentication scheme that each peer asked
   * for. The client never answers a weaker scheme of such a peer (PEER_AUTH_WEAK). Several
   * processes may share the file.
   *
   * @default none: the record ends with the client
   */
  readonly accessFile?: string;
  /** Logs a warning if `accessFile` cannot be read or written. @default silentLogger */
  readonly log?: Logger;
  /** The dialect of the peer if it is known, or `auto` to detect it. @default 'auto' */
  readonly dialect?: DialectName | 'auto';
}

/** The same timeouts as the defaults of the daemon's configuration. */
const TIMEOUTS: Timeouts = { connect: 10_000, headers: 30_000, body: 60_000, total: 300_000 };
const MAX_ANSWER = 16 * 1024 * 1024;

/**
 * A client for the API of one peer.
 *
 * The first request detects the dialect of the peer, unless the options name it. Connections are
 * kept open for a few seconds. A challenge of the server is answered again for as long as that
 * works. If there are credentials, a request without a body authenticates before the first push. A
 * document is therefore sent only once, and never with a wrong password. After `close` every
 * request fails.
 *
 * Every method throws PeerError. Its `delivered` says whether the request may have had an effect. A
 * method returns undefined if the peer does not have the thing asked for. `share` and
 * `tables.stream` read answers of any size while they arrive.
 *
 * @example
 * ```ts
 * const client = new PeerClient({
 *   baseUrl: 'http://127.0.0.1:8090',
 *   credentials: { username: 'admin', password },
 * });
 * try {
 *   const url = 'https://docs.example.org/a.txt';
 *   const data = Buffer.from('Gulls sleep on one leg.');
 *   await client.push([{ url, collection: 'notes', data }], { commit: true });
 *   // Undefined until the peer shows the document.
 *   const title = (await client.peerdoc({ url }))?.title;
 *   const others = (await client.citation({ url }, { filter: true }))?.citing ?? [];
 *   // Verified by reading it back.
 *   await client.tables.set('birds', [{ pk: 'gull', cells: new Map([['legs', '1']]) }]);
 *   const rows = await client.tables.stream({ table: 'birds' }, async (table) => {
 *     let count = 0;
 *     for await (const group of table.rows) count += group.length;
 *     return count;
 *   });
 *   await client.share(
 *     { data: 'birds.xml.gz' },
 *     ({ chunks }) => pipeline(chunks, createWriteStream('birds.xml.gz')),
 *     { maxBytes: 2 ** 30 },
 *   );
 * } finally {
 *   await client.close();
 * }
 * ```
 */
export class PeerClient {
  /** The tables of the peer. Every request about tables needs the administrator's access. */
  readonly tables: PeerTables;
  /** The base URL of the API, without credentials. */
  readonly baseUrl: string;
  readonly #http: Http;
  readonly #access: PeerAccess;
  readonly #deletion: YacyDeletion;
  /** False once the peer has answered that it lacks the removal page of the embedded peer. */
  #hasRemovalPage = true;
  #dialect: Dialect | undefined;
  #detection: Promise<Dialect> | undefined;

  constructor(options: PeerClientOptions) {
    const { credentials, socketPath, tls, maxAnswer = MAX_ANSWER, dialect = 'auto' } = options;
    const { clock = systemClock, log = silentLogger, allowBasic = false, accessFile } = options;
    const base = new URL(options.baseUrl);
    const timeouts = { ...TIMEOUTS, ...options.timeouts };
    this.baseUrl = base.origin + base.pathname;
    this.#access = new PeerAccess(base, { path: accessFile, log, allowBasic });
    const access = this.#access;
    this.#http = new Http({
      base,
      socketPath,
      ca: tls?.ca,
      credentials,
      timeouts,
      maxAnswer,
      clock,
      access,
    });
    this.#deletion = new YacyDeletion(this.#http);
    if (dialect !== 'auto') this.#dialect = DIALECTS[dialect];
    this.tables = new PeerTables(
      this.#http,
      async (signal) => (await this.#resolveDialect(signal)).tables,
      clock,
    );
  }

  get requests(): RequestCounts {
    return this.#http.requests;
  }

  /** The bytes of all push bodies whose sending began. A body that is sent again counts again. */
  get pushedBytes(): number {
    return this.#http.pushedBytes;
  }

  /**
   * Sets the credentials of requests that begin from now on. Requests under way keep the earlier
   * ones.
   *
   * @returns whether the credentials changed
   */
  authenticate(credentials: Credentials | undefined): boolean {
    return this.#http.authenticate(credentials);
  }

  /** Changes the option `allowBasic` for requests that begin from now on. */
  allowBasic(isAllowed: boolean): void {
    this.#access.allowBasic = isAllowed;
  }

  /**
   * Sets the certificates (PEM text) that requests from now on trust besides the usual ones.
   *
   * @returns whether the certificates changed
   */
  trust(ca: string | undefined): boolean {
    return this.#http.trust(ca);
  }

  /**
   * Whether the peer is an embedded peer, in any process and on any machine. Its answers say so:
   * undefined until one has arrived. `ping` requests one.
   */
  get isEmbedded(): boolean | undefined {
    return this.#dialect?.name === 'yacy' ? false : this.#http.isEmbedded;
  }

  /** The dialect of the peer; undefined until it is known. */
  get dialect(): DialectName | undefined {
    return this.#dialect?.name;
  }

  /**
   * Detects the dialect of the peer, even if it seems known, and uses it from then on. Changes
   * nothing in the peer. The other methods call this if the dialect is not known. `signal` ends the
   * wait, and not the detection.
   *
   * @throws PeerError PEER_ANSWER if the peer looks like none of the dialects, or like more than
   *   one
   */
  async detect({
    signal,
  }: {
    readonly signal?: AbortSignal | undefined;
  } = {}): Promise<DialectName> {
    this.#detection ??= detectDialect(this.#http).finally(() => {
      this.#detection = undefined;
    });
    this.#dialect = await unlessAborted(this.#detection, signal, this.#http.url('/'));
    return this.#dialect.name;
  }

  async #resolveDialect(signal: AbortSignal | undefined): Promise<Dialect> {
    return this.#dialect ?? DIALECTS[await this.detect({ signal })];
  }

  /**
   * Pushes documents into the index. A document that the peer accepted need not be searchable yet.
   * Without items the request changes nothing, and shows whether the peer takes pushes.
   *
   * @throws PeerError any code; PEER_SOURCE (with `item`) if a text cannot be read, or changes
   *   while it is sent: the peer then acts on nothing in the request
   */
  async push(items: readonly PushItem[], options: PushOptions = {}): Promise<PushAnswer> {
    const { signal } = options;
    const dialect = await this.#resolveDialect(signal);
    const path = dialect.pushPath;
    const body = await dialect.pushBody(items, options, this.#http.url(path));
    const request = {
      counted: 'push',
      method: 'POST',
      path,
      isProtected: true,
      body,
      signal,
    } as const;
    const answer = succeeded(await this.#http.ask(request));
    const results = dialect.pushResults(answer, items);
    const { peerAt, tookMs } = answer;
    // The `Date` header of an answer is cut off to whole seconds.
    return peerAt === undefined
      ? { results }
      : { results, peerTime: Math.floor((peerAt - tookMs) / 1000) * 1000 };
  }

  /**
   * Removes documents. A document that the peer does not have counts as removed. An embedded peer
   * has removed them when it answers. A YaCy shows them until its index commits. Other peers cannot
   * remove documents: each is replaced by an empty one in the collection `removed`. Call `peerdoc`
   * to see whether a document is gone.
   *
   * @returns the answer of the peer for each URL, in the same order
   */
  async remove(
    urls: readonly string[],
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<readonly PushResult[]> {
    const dialect = await this.#resolveDialect(signal);
    if (dialect.name === 'yacy') {
      for (const url of urls) await this.#deletion.delete(dialect.sentUrl(url), signal);
      return urls.map(() => ({ ok: true }));
    }
    if (this.#hasRemovalPage) {
      const results = await removeByPage(this.#http, urls, signal);
      if (results !== undefined) return results;
      this.#hasRemovalPage = false;
    }
    const empty = { collection: REMOVED_COLLECTION, data: Buffer.alloc(0) };
    const items = urls.map((url) => ({ url, ...empty }));
    return (await this.push(items, signal === undefined ? {} : { signal })).results;
  }

  /** Returns the document that the peer shows; undefined if the peer has none. */
  async peerdoc(query: PeerdocQuery, options: PeerdocOptions = {}): Promise<Peerdoc | undefined> {
    const { signal, html } = options;
    const dialect = await this.#resolveDialect(signal);
    const path = dialect.peerdocPath;
    const asked = 'url' in query ? { url: dialect.sentUrl(query.url) } : { urlhash: query.urlhash };
    const fields = fieldsOf({ ...asked, html });
    const body = await formBody(fields, this.#http.url(path));
    const request = {
      counted: 'peerdoc',
      method: 'POST',
      path,
      isProtected: false,
      body,
      signal,
    } as const;
    return dialect.peerdocOf(await this.#http.ask(request), query);
  }

  /**
   * Returns several documents of an embedded peer, in the order of the URLs. Only embedded peers
   * have this request.
   */
  async peerdocs(
    urls: readonly string[],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<readonly (Peerdoc | undefined)[]> {
    const path = standard.peerdocPath;
    const fields = urls.map((url, n) => ({ name: `url-${n}`, value: url }));
    const body = await formBody(fields, this.#http.url(path));
    const request = {
      counted: 'peerdoc',
      method: 'POST',
      path,
      isProtected: false,
      body,
      signal,
    } as const;
    return readPeerdocs(succeeded(await this.#http.ask(request)), urls);
  }

  /**
   * Returns the sentences of a document, and the other documents that contain them; undefined if
   * the peer has no such document. An empty record means that the peer sent an empty record.
   */
  async citation(
    query: CitationQuery,
    options: CitationOptions = {},
  ): Promise<Citation | undefined> {
    const { signal, filter, ch } = options;
    const dialect = await this.#resolveDialect(signal);
    const path = dialect.citationPath;
    const url = 'url' in query ? dialect.sentUrl(query.url) : undefined;
    const fields = fieldsOf({ url, filter, ch, hash: 'hash' in query ? query.hash : undefined });
    const body = await formBody(fields, this.#http.url(path));
    const request = {
      counted: 'other',
      method: 'POST',
      path,
      isProtected: false,
      body,
      signal,
    } as const;
    return dialect.citationOf(await this.#http.ask(request), query);
  }

  /**
   * Returns the documents that match a search; undefined if the peer has no search page that we
   * know.
   */
  async search(
    query: SearchQuery,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SearchAnswer | undefined> {
    const { search } = await this.#resolveDialect(signal);
    const fields = search
      .fields(query)
      .map(({ name, value }): [string, string] => [name, String(value)]);
    const path = `${search.path}?${new URLSearchParams(fields)}`;
    const request = { counted: 'other', method: 'GET', path, isProtected: false, signal } as const;
    const answer = await this.#http.ask(request);
    return answer.status === 404 ? undefined : readSearch(succeeded(answer));
  }

  /**
   * Makes the peer show at once everything that it has indexed. Does nothing if the dialect has no
   * request for that.
   */
  async commitIndex(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { commitHash } = await this.#resolveDialect(options.signal);
    if (commitHash !== undefined) await this.citation({ hash: commitHash }, options);
  }

  /**
   * Passes a shared object to `use` while it arrives, and returns the result of `use`; undefined if
   * the peer has no such object. Memory is bounded. If `use` ends early, the rest is not read.
   *
   * @throws PeerError PEER_NAME if the peer can have no object of this name (nothing is sent);
   *   PEER_ANSWER_TOO_LARGE beyond `maxBytes`, and PEER_ANSWER if the object breaks off, both
   *   possibly in the middle of `use`
   */
  async share<T>(
    query: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    options: ShareOptions = {},
  ): Promise<T | undefined> {
    const { maxBytes, signal } = options;
    const dialect = await this.#resolveDialect(signal);
    const request = await dialect.shareRequest(query, (path) => this.#http.url(path));
    const headers = conditionsOf(options);
    return await this.#http.stream(
      {
        counted: 'other',
        isProtected: false,
        accept: '*/*',
        ...request,
        headers,
        maxBytes,
        signal,
      },
      (answer) => use(shareOf(answer, options)),
    );
  }

  /**
   * Returns the names of all shared objects, as `share` takes them, in the order of the peer;
   * undefined if the peer does not list them.
   */
  async shares({
    signal,
  }: {
    readonly signal?: AbortSignal;
  } = {}): Promise<readonly string[] | undefined> {
    return (await this.#resolveDialect(signal)).listShares(this.#http, signal);
  }

  /**
   * Checks that the peer answers, and measures the time in ms. The request names no document: it
   * changes nothing, and needs no access.
   */
  async ping({
    signal,
  }: {
    readonly signal?: AbortSignal;
  } = {}): Promise<{ ms: number; server?: string }> {
    const path = (this.#dialect ?? standard).peerdocPath;
    const request = { counted: 'other', method: 'GET', path, isProtected: false, signal } as const;
    const answer = await this.#http.ask({ ...request, isAnonymous: true });
    if (answer.status >= 500 || answer.status === 429) succeeded(answer);
    const { server } = answer.headers;
    return { ms: answer.tookMs, ...(typeof server === 'string' ? { server } : {}) };
  }

  /** Closes all connections. Requests under way, and later ones, fail with PEER_ABORTED. */
  async close(): Promise<void> {
    await this.#http.close();
  }
}

const SET_DIALECT_HINT = 'set peer.dialect to the kind of peer that it is';

/**
 * Detects the dialect of a peer by requesting the document page of each dialect. The requests name
 * no document, so they change nothing.
 *
 * YaCy always answers with an empty record. Other peers may refuse such a request, but not with
 * 404. A proxy may answer for pages that do not exist: then the content of the answers decides.
 *
 * @throws PeerError PEER_ANSWER if the peer has both pages or neither; otherwise as for any request
 */
async function detectDialect(http: Http): Promise<Dialect> {
  const yacyPage = await documentPage(http, yacy);
  const standardPage = await documentPage(http, standard);
  const isYacy = isDocumentRecord(yacyPage);
  if (isYacy !== isDocumentRecord(standardPage)) return isYacy ? yacy : standard;
  const both = `${yacy.peerdocPath} and ${standard.peerdocPath}`;
  let what = `has both ${both}; ${SET_DIALECT_HINT}`;
  if (!isYacy && pageExists(standardPage)) {
    if (!pageExists(yacyPage)) return standard;
    what = `answers for ${both} alike, and shows a document in neither; ${SET_DIALECT_HINT}`;
  } else if (!isYacy) {
    const error = statusError(standardPage);
    if (error !== undefined && error.code !== 'PEER_REFUSED') throw error;
    what = `has neither ${yacy.peerdocPath} nor ${standard.peerdocPath}; check that peer.url is the base URL of a peer`;
  }
  // The error is about the peer, not about one of its pages.
  throw unusable({ ...(isYacy ? yacyPage : standardPage), url: http.url('/') }, what);
}

/**
 * Requests the document page of a dialect.
 *
 * @throws PeerError if the peer is unreachable, busy or denies access: the answer then says nothing
 *   about the dialect
 */
async function documentPage(http: Http, { peerdocPath: path }: Dialect): Promise<HttpAnswer> {
  const answer = await http.ask({ counted: 'other', method: 'GET', path, isProtected: false });
  const error = statusError(answer);
  if (error === undefined || ['PEER_REFUSED', 'PEER_FAILED', 'PEER_ANSWER'].includes(error.code))
    return answer;
  throw error;
}

/**
 * Whether the page exists. A peer may refuse a request that names no document, so any 4xx but 404
 * counts.
 */
function pageExists({ status }: AnswerHead): boolean {
  return isSuccess(status) || (status >= 400 && status < 500 && status !== 404);
}

/** Whether the answer is a record with the field names of a document. The values may be empty. */
function isDocumentRecord(answer: HttpAnswer): boolean {
  if (!isSuccess(answer.status)) return false;
  try {
    const { record } = readAnswer(answer);
    const names = ['identifier', 'urlhash'];
    return allRecords(record).some((each) => fieldValues(each, ...names).length > 0);
  } catch {
    return false;
  }
}
