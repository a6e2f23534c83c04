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
  /** `{base_url}` of the API: http or https, no credentials, query or fragment. */
  readonly baseUrl: string;
  /**
   * A Unix socket on which the peer is reached instead of the host and the port of `baseUrl`.
   * @default none
   */
  readonly socketPath?: string | undefined;
  readonly credentials?: Credentials;
  /** `ca`: certificates (PEM text) trusted besides the usual ones. */
  readonly tls?: { readonly ca?: string };
  /** In ms. @default connect 10 s, headers 30 s, body 60 s, total 5 min */
  readonly timeouts?: Partial<Timeouts>;
  /** Bytes; longer answers are refused, unless a method says otherwise. @default 16 MiB */
  readonly maxAnswer?: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /**
   * Whether Basic may carry the password over http to another machine: everyone between reads it.
   *
   * @default false
   */
  readonly allowBasic?: boolean;
  /**
   * A small file that remembers the strongest way in which each peer asked for the password, so
   * that none is ever shown it in a weaker way (PEER_AUTH_WEAK). Several processes may use one.
   *
   * @default none: each client remembers by itself
   */
  readonly accessFile?: string;
  /** Is told of an `accessFile` that cannot be read or written. @default silentLogger */
  readonly log?: Logger;
  /**
   * How the peer speaks the API: one that is known already, or `auto` to find out. @default 'auto'
   */
  readonly dialect?: DialectName | 'auto';
}

/** Those of the daemon's configuration. */
const TIMEOUTS: Timeouts = { connect: 10_000, headers: 30_000, body: 60_000, total: 300_000 };
const MAX_ANSWER = 16 * 1024 * 1024;

/**
 * A client for the API of one peer.
 *
 * Unless it is told, it finds out how the peer speaks the API before the first request, and
 * remembers that. It keeps connections for a few seconds, and the server's challenge for as long as
 * it works. Where credentials are configured, the first push introduces itself with a request that
 * has no body, so that documents are sent once, and never with a wrong password. After `close`
 * nothing can be asked any more.
 *
 * Every method throws PeerError; `delivered` says whether the request may have had an effect. What
 * the peer does not have is undefined. Answers of any size are read while they come, by `share` and
 * `tables.stream`.
 *
 * @example const client = new PeerClient({ baseUrl: 'http://127.0.0.1:8090', credentials: {
 *   username: 'admin', password } }); try { const url = 'https://docs.example.org/a.txt'; await
 *   client.push([{ url, collection: 'notes', data: Buffer.from('Gulls sleep on one leg.') }], {
 *   commit: true }); const title = (await client.peerdoc({ url }))?.title; // undefined as long as
 *   the peer does not show the document const others = (await client.citation({ url }, { filter:
 *   true }))?.citing ?? []; await client.tables.set('birds', [{ pk: 'gull', cells: new
 *   Map([['legs', '1']]) }]); // was read back const rows = await client.tables.stream({ table:
 *   'birds' }, async (table) => { let count = 0; for await (const group of table.rows) count +=
 *   group.length; return count; }); await client.share( { data: 'birds.xml.gz' }, ({ chunks }) =>
 *   pipeline(chunks, createWriteStream('birds.xml.gz')), { maxBytes: 2 ** 30 }, ); } finally {
 *   await client.close(); }
 */
export class PeerClient {
  /** The tables of the peer; all of it needs the administrator's access. */
  readonly tables: PeerTables;
  /** Of the API; holds no credentials. */
  readonly baseUrl: string;
  readonly #http: Http;
  readonly #access: PeerAccess;
  readonly #deletion: YacyDeletion;
  /** Whether the peer, as far as is known, has our page for removals. */
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
      async (signal) => (await this.#spoken(signal)).tables,
      clock,
    );
  }

  get requests(): RequestCounts {
    return this.#http.requests;
  }

  /** Bytes of the bodies of pushes that began to be sent, those sent again included. */
  get pushedBytes(): number {
    return this.#http.pushedBytes;
  }

  /**
   * Requests that begin from now on carry these credentials; those under way go on with the ones
   * before.
   *
   * @returns whether they are others
   */
  authenticate(credentials: Credentials | undefined): boolean {
    return this.#http.authenticate(credentials);
  }

  /** Changes the option of that name for requests that begin from now on. */
  allowBasic(isAllowed: boolean): void {
    this.#access.allowBasic = isAllowed;
  }

  /**
   * Requests that begin from now on trust these certificates (PEM text) besides the usual ones.
   *
   * @returns whether they are others
   */
  trust(ca: string | undefined): boolean {
    return this.#http.trust(ca);
  }

  /**
   * Whether it is an embedded peer, as its answers say, which may run in another process or on
   * another machine; undefined as long as none has come. `ping` asks for one.
   */
  get isEmbedded(): boolean | undefined {
    return this.#dialect?.name === 'yacy' ? false : this.#http.isEmbedded;
  }

  /** How the peer speaks the API; undefined as long as that is not known. */
  get dialect(): DialectName | undefined {
    return this.#dialect?.name;
  }

  /**
   * Finds out how the peer speaks the API, also where that seemed known, and speaks so from then
   * on. Changes nothing in the peer. The other methods do it by themselves where it is not known.
   * The signal ends only the waiting.
   *
   * @throws PeerError PEER_ANSWER when the peer looks like none of the dialects, or like several
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

  async #spoken(signal: AbortSignal | undefined): Promise<Dialect> {
    return this.#dialect ?? DIALECTS[await this.detect({ signal })];
  }

  /**
   * Pushes documents into the index. The peer's acceptance does not mean that they are searchable.
   * Without items it changes nothing, and shows whether the peer takes pushes.
   *
   * @throws PeerError also PEER_SOURCE (`item` says which) when a text cannot be read or changes on
   *   the way: nothing of the request is acted on then
   */
  async push(items: readonly PushItem[], options: PushOptions = {}): Promise<PushAnswer> {
    const { signal } = options;
    const dialect = await this.#spoken(signal);
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
    // Peers date their answers in whole seconds, cut off.
    return peerAt === undefined
      ? { results }
      : { results, peerTime: Math.floor((peerAt - tookMs) / 1000) * 1000 };
  }

  /**
   * Removes documents; those that the peer does not have count as removed. An embedded peer has
   * them no more when it answers, a YaCy shows them until its index commits. Another peer has no
   * way to remove one: it is pushed an empty document for each, in the collection `removed`.
   * Whether one is gone is seen by `peerdoc`.
   *
   * @returns what the peer answered for each, in their order
   */
  async remove(
    urls: readonly string[],
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<readonly PushResult[]> {
    const dialect = await this.#spoken(signal);
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

  /** What the peer shows of a document; undefined when it has none. */
  async peerdoc(query: PeerdocQuery, options: PeerdocOptions = {}): Promise<Peerdoc | undefined> {
    const { signal, html } = options;
    const dialect = await this.#spoken(signal);
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
   * The same of several documents, in their order, of an embedded peer: others do not take such a
   * question.
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
   * What the peer knows of the references around a document: its sentences, and which other
   * documents have them; undefined when it has no such document. An empty record is one that the
   * peer gave.
   */
  async citation(
    query: CitationQuery,
    options: CitationOptions = {},
  ): Promise<Citation | undefined> {
    const { signal, filter, ch } = options;
    const dialect = await this.#spoken(signal);
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

  /** The documents that a search finds; undefined where the peer has no search that we know. */
  async search(
    query: SearchQuery,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SearchAnswer | undefined> {
    const { search } = await this.#spoken(signal);
    const fields = search
      .fields(query)
      .map(({ name, value }): [string, string] => [name, String(value)]);
    const path = `${search.path}?${new URLSearchParams(fields)}`;
    const request = { counted: 'other', method: 'GET', path, isProtected: false, signal } as const;
    const answer = await this.#http.ask(request);
    return answer.status === 404 ? undefined : readSearch(succeeded(answer));
  }

  /**
   * Has the peer show at once what it has indexed so far, where its dialect knows a way; nothing
   * otherwise.
   */
  async commitIndex(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { commitHash } = await this.#spoken(options.signal);
    if (commitHash !== undefined) await this.citation({ hash: commitHash }, options);
  }

  /**
   * Hands a shared object to `use` as it comes in, in bounded memory, and gives what `use` gives;
   * undefined when the peer has no such object. When `use` ends before the object does, the rest is
   * not asked for.
   *
   * @throws PeerError PEER_NAME, before anything is sent, for a name that no shared object of such
   *   a peer can have; PEER_ANSWER_TOO_LARGE beyond `maxBytes`, and where it breaks off, in the
   *   middle of `use`
   */
  async share<T>(
    query: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    options: ShareOptions = {},
  ): Promise<T | undefined> {
    const { maxBytes, signal } = options;
    const dialect = await this.#spoken(signal);
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
   * The names of all shared objects, as `share` takes them, in the peer's order; undefined where
   * the peer does not tell them.
   */
  async shares({
    signal,
  }: {
    readonly signal?: AbortSignal;
  } = {}): Promise<readonly string[] | undefined> {
    return (await this.#spoken(signal)).listShares(this.#http, signal);
  }

  /**
   * Whether the peer answers at all, and how fast: asks for a page without saying what for, which
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

  /** Ends all connections; requests under way, and any made later, fail with PEER_ABORTED. */
  async close(): Promise<void> {
    await this.#http.close();
  }
}

const NAME_IT = 'set peer.dialect to the kind of peer that it is';

/**
 * Which dialect a peer speaks, by which of the two pages for document information it has. Both are
 * asked for without saying which document, which changes nothing.
 *
 * YaCy answers with an empty record whatever it is asked for; other peers may refuse such a
 * question, but not with 404. Where something in between answers for pages that are not there, what
 * the answers say decides.
 *
 * @throws PeerError PEER_ANSWER where it has both pages or neither; as any request
 */
async function detectDialect(http: Http): Promise<Dialect> {
  const ofYacy = await documentPage(http, yacy);
  const ofStandard = await documentPage(http, standard);
  const isYacy = isDocumentRecord(ofYacy);
  if (isYacy !== isDocumentRecord(ofStandard)) return isYacy ? yacy : standard;
  const both = `${yacy.peerdocPath} and ${standard.peerdocPath}`;
  let what = `has both ${both}; ${NAME_IT}`;
  if (!isYacy && isThere(ofStandard)) {
    if (!isThere(ofYacy)) return standard;
    what = `answers for ${both} alike, and shows a document in neither; ${NAME_IT}`;
  } else if (!isYacy) {
    const error = statusError(ofStandard);
    if (error !== undefined && error.code !== 'PEER_REFUSED') throw error;
    what = `has neither ${yacy.peerdocPath} nor ${standard.peerdocPath}; check that peer.url is the base URL of a peer`;
  }
  // What is wrong is wrong with the peer, not with one of its pages.
  throw unusable({ ...(isYacy ? ofYacy : ofStandard), url: http.url('/') }, what);
}

/** A peer that is away, busy or closed to us says nothing about its dialect. */
async function documentPage(http: Http, { peerdocPath: path }: Dialect): Promise<HttpAnswer> {
  const answer = await http.ask({ counted: 'other', method: 'GET', path, isProtected: false });
  const error = statusError(answer);
  if (error === undefined || ['PEER_REFUSED', 'PEER_FAILED', 'PEER_ANSWER'].includes(error.code))
    return answer;
  throw error;
}

/** Anything but 404: a question without a document may be refused. */
function isThere({ status }: AnswerHead): boolean {
  return isSuccess(status) || (status >= 400 && status < 500 && status !== 404);
}

/** A record with the names of a document, whether or not with values. */
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
