import { systemClock } from '../lib/clock.js';
import { silentLogger } from '../lib/logger.js';
import { PeerAccess } from './access.js';
import { type HttpAnswer, succeeded } from './answer.js';
import type { Credentials } from './auth.js';
import type { Citation, CitationOptions, CitationQuery } from './citation.js';
import { MAX_ANSWER, type PeerClientOptions, TIMEOUTS } from './client-options.js';
import { detectDialect } from './detect.js';
import type { Dialect, DialectName, Remover } from './dialects/dialect.js';
import { DIALECTS, dialectNamed } from './dialects/dialects.js';
import { PEERDOC_PATH, standard } from './dialects/standard.js';
import { unlessAborted } from './exchange-errors.js';
import { type EndpointRequest, formRequest, Http, type RequestCounts } from './http.js';
import { type Peerdoc, type PeerdocOptions, type PeerdocQuery, readPeerdocs } from './peerdoc.js';
import type { PushAnswer, PushItem, PushOptions, PushResult } from './push.js';
import { readSearch, type SearchAnswer, type SearchQuery } from './search.js';
import {
  conditionsOf,
  type ShareOptions,
  type ShareQuery,
  type ShareStream,
  shareOf,
} from './share.js';
import { PeerTables } from './tables.js';

/**
 * A client for the API of one peer.
 *
 * The first request detects the dialect of the peer, unless the options name it. Connections are
 * kept open for a few seconds. Later requests reuse the challenge of the server for as long as it
 * accepts that. If there are credentials, a request without a body authenticates before the first
 * push. A document is therefore sent only once, and never with a wrong password. After `close`
 * every request fails.
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
  /** The tables of the peer. Every request about tables needs the administrator's credentials. */
  readonly tables: PeerTables;
  /** The base URL of the API, without credentials. */
  readonly baseUrl: string;
  readonly #http: Http;
  readonly #access: PeerAccess;
  /** The dialects that detection tries, in order. */
  readonly #dialects: readonly Dialect[];
  /** The remover of each dialect that removed a document. */
  readonly #removers = new Map<Dialect, Remover>();
  #dialect: Dialect | undefined;
  #detection: Promise<Dialect> | undefined;

  constructor(options: PeerClientOptions) {
    const { credentials, socketPath, tls, maxAnswer = MAX_ANSWER } = options;
    const { dialect = 'auto', dialects = DIALECTS } = options;
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
    this.#dialects = Object.values(dialects);
    if (dialect !== 'auto') this.#dialect = dialectNamed(dialect, dialects);
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
    return this.#dialect?.canBeEmbedded === false ? false : this.#http.isEmbedded;
  }

  /** The dialect of the peer; undefined until it is known. */
  get dialect(): DialectName | undefined {
    return this.#dialect?.name;
  }

  /**
   * Detects the dialect of the peer, and uses it from then on. Also replaces a dialect that was
   * known. Changes nothing in the peer. The other methods detect the dialect if it is not known.
   * `signal` ends the wait; the detection goes on for other callers.
   *
   * @throws PeerError PEER_ANSWER if the peer looks like none of the dialects, or like more than
   *   one
   */
  async detect({
    signal,
  }: {
    readonly signal?: AbortSignal | undefined;
  } = {}): Promise<DialectName> {
    return (await this.#detect(signal)).name;
  }

  async #detect(signal: AbortSignal | undefined): Promise<Dialect> {
    this.#detection ??= detectDialect(this.#http, this.#dialects).finally(() => {
      this.#detection = undefined;
    });
    const dialect = await unlessAborted(this.#detection, signal, this.#http.url('/'));
    this.#dialect = dialect;
    return dialect;
  }

  async #resolveDialect(signal: AbortSignal | undefined): Promise<Dialect> {
    return this.#dialect ?? (await this.#detect(signal));
  }

  readonly #urlOf = (path: string) => this.#http.url(path);

  /**
   * Pushes documents into the index. A document that the peer accepted need not be searchable yet.
   * Without items the request changes nothing, and shows whether the peer takes pushes.
   *
   * @throws PeerError any code; PEER_SOURCE (with `item`) if a text cannot be read, or changes
   *   while it is sent: the peer then acts on nothing in the request
   */
  async push(items: readonly PushItem[], options: PushOptions = {}): Promise<PushAnswer> {
    const { admit, signal } = options;
    const dialect = await this.#resolveDialect(signal);
    const request = await dialect.pushRequest(items, options, this.#urlOf);
    const answer = succeeded(
      await this.#http.ask({ ...request, counted: 'push', isProtected: true, admit, signal }),
    );
    const results = dialect.pushResults(answer, items);
    const { peerAt, tookMs } = answer;
    // The `Date` header has whole seconds, so the start is rounded down to them, too.
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
    const remove = this.#removers.get(dialect) ?? this.#removerOf(dialect);
    this.#removers.set(dialect, remove);
    return await remove(urls, signal);
  }

  #removerOf(dialect: Dialect): Remover {
    return dialect.remover({
      http: this.#http,
      push: async (items, signal) =>
        (await this.push(items, signal === undefined ? {} : { signal })).results,
    });
  }

  /** Returns the document that the peer shows; undefined if the peer has none. */
  async peerdoc(query: PeerdocQuery, options: PeerdocOptions = {}): Promise<Peerdoc | undefined> {
    const { signal } = options;
    const dialect = await this.#resolveDialect(signal);
    const request = await dialect.peerdocRequest(query, options, this.#urlOf);
    return dialect.peerdocOf(await this.#askOpen('peerdoc', request, signal), query);
  }

  /**
   * Returns several documents of an embedded peer, in the order of the URLs. Only embedded peers
   * have this request.
   */
  async peerdocs(
    urls: readonly string[],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<readonly (Peerdoc | undefined)[]> {
    const fields = urls.map((url, n) => ({ name: `url-${n}`, value: url }));
    const request = await formRequest(PEERDOC_PATH, fields, this.#urlOf);
    return readPeerdocs(succeeded(await this.#askOpen('peerdoc', request, signal)), urls);
  }

  /**
   * Returns the sentences of a document, and the other documents that contain them; undefined if
   * the peer has no such document. The result is empty if the peer sent an empty record.
   */
  async citation(
    query: CitationQuery,
    options: CitationOptions = {},
  ): Promise<Citation | undefined> {
    const { signal } = options;
    const dialect = await this.#resolveDialect(signal);
    const request = await dialect.citationRequest(query, options, this.#urlOf);
    return dialect.citationOf(await this.#askOpen('other', request, signal), query);
  }

  /** Sends a request that changes nothing, and needs no credentials. */
  #askOpen(
    counted: keyof RequestCounts,
    request: EndpointRequest,
    signal: AbortSignal | undefined,
  ): Promise<HttpAnswer> {
    return this.#http.ask({ ...request, counted, isProtected: false, signal });
  }

  /**
   * Returns the documents that match a search; undefined if the peer does not have the search page
   * of its dialect, or if that page does not know the filters of the query.
   */
  async search(
    query: SearchQuery,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SearchAnswer | undefined> {
    const { search } = await this.#resolveDialect(signal);
    const hasFilter = [query.type, query.after, query.before].some((each) => each !== undefined);
    if (hasFilter && !search.takesFilters) return undefined;
    const fields = search
      .fields(query)
      .map(({ name, value }): [string, string] => [name, String(value)]);
    const path = `${search.path}?${new URLSearchParams(fields)}`;
    const answer = await this.#askOpen('other', { method: 'GET', path }, signal);
    return answer.status === 404 ? undefined : readSearch(succeeded(answer));
  }

  /**
   * Makes the peer show at once everything that it has indexed. Does nothing if the dialect has no
   * request for that.
   */
  async commitIndex(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { signal } = options;
    await (await this.#resolveDialect(signal)).commitIndex?.(this.#http, signal);
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
    const request = await dialect.shareRequest(query, this.#urlOf);
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
   * Checks that the peer answers, and measures the time in ms. The request changes nothing, and
   * needs no credentials.
   */
  async ping({
    signal,
  }: {
    readonly signal?: AbortSignal;
  } = {}): Promise<{ ms: number; server?: string }> {
    const path = (this.#dialect ?? standard).detectionPath;
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
