import { type Clock, systemClock } from '../lib/clock.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import { Access } from './access.js';
import type { RequestCounts } from './asking.js';
import type { Citation, CitationOptions, CitationQuery } from './citation.js';
import { beganAt } from './dates.js';
import type { DialectName } from './dialect.js';
import type { Credentials } from './digest.js';
import { Http, type Timeouts } from './http.js';
import type { Peerdoc, PeerdocOptions, PeerdocQuery } from './peerdoc.js';
import type { PushAnswer, PushItem, PushOptions } from './push.js';
import {
  conditionsOf,
  isChanged,
  type ShareOptions,
  type ShareQuery,
  type ShareStream,
  shareOf,
} from './share.js';
import { listShares } from './share-list.js';
import { SpokenDialect } from './spoken-dialect.js';
import { standard } from './standard.js';
import { statusError } from './status.js';
import { PeerTables } from './tables.js';

export interface PeerClientOptions {
  /** `{base_url}` of the API: http or https, no credentials, query or fragment. */
  readonly baseUrl: string;
  readonly credentials?: Credentials;
  /** `ca`: certificates (PEM text) trusted besides the usual ones. */
  readonly tls?: { readonly ca?: string };
  /** In ms. @default connect 10 s, headers 30 s, body 60 s, total 5 min */
  readonly timeouts?: Partial<Timeouts>;
  /** Bytes; longer answers are refused, unless a method says otherwise. @default 16 MiB */
  readonly maxAnswer?: number;
  /** @default systemClock */
  readonly clock?: Clock;
  /** @default silentLogger */
  readonly log?: Logger;
  /** How the peer speaks the API: one that is known already, or `auto` to find out. @default 'auto' */
  readonly dialect?: DialectName | 'auto';
}

/** Any form can be read; JSON carries every text as it is. */
const ACCEPT_RECORDS = 'application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.8, */*;q=0.1';

/** Those of the daemon's configuration. */
const TIMEOUTS: Timeouts = { connect: 10_000, headers: 30_000, body: 60_000, total: 300_000 };
const MAX_ANSWER = 16 * 1024 * 1024;

/**
 * A client for the API of one peer.
 *
 * Unless it is told, it finds out how the peer speaks the API before the first request, and remembers that. It keeps
 * connections for a few seconds, and the server's challenge for as long as it works. Where credentials are
 * configured, the first push introduces itself with a request that has no body, so that documents are sent once, and
 * never with a wrong password. After `close` nothing can be asked any more.
 *
 * Every method throws PeerError; `delivered` says whether the request may have had an effect. What the peer does not have
 * is undefined. Answers of any size are read while they come, by `share` and `tables.stream`.
 *
 * @example
 * const client = new PeerClient({ baseUrl: 'http://127.0.0.1:8090', credentials: { username: 'admin', password } });
 * try {
 *   const url = 'https://docs.example.org/a.txt';
 *   await client.push([{ url, collection: 'notes', data: Buffer.from('Gulls sleep on one leg.') }], { commit: true });
 *   const title = (await client.peerdoc({ url }))?.title; // undefined as long as the peer does not show the document
 *   const others = (await client.citation({ url }, { filter: true }))?.citing ?? [];
 *   await client.tables.set('birds', [{ pk: 'gull', cells: new Map([['legs', '1']]) }]); // was read back
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
 */
export class PeerClient {
  /** The tables of the peer; all of it needs the administrator's access. */
  readonly tables: PeerTables;
  /** Of the API; holds no credentials. */
  readonly baseUrl: string;
  readonly #http: Http;
  readonly #access: Access;
  readonly #dialect: SpokenDialect;

  constructor(options: PeerClientOptions) {
    const { credentials, tls, maxAnswer = MAX_ANSWER, dialect = 'auto' } = options;
    const base = new URL(options.baseUrl);
    this.baseUrl = base.origin + base.pathname;
    const timeouts = { ...TIMEOUTS, ...options.timeouts };
    const clock = options.clock ?? systemClock;
    const log = options.log ?? silentLogger;
    this.#http = new Http({ origin: base.origin, ca: tls?.ca, timeouts, maxAnswer, clock });
    this.#access = new Access({ base, http: this.#http, credentials, maxAnswer, log, clock });
    this.#dialect = new SpokenDialect(this.#access, dialect);
    const tablesOf = async (signal: AbortSignal | undefined) => (await this.#dialect.get(signal)).tables;
    this.tables = new PeerTables(this.#access, tablesOf, clock);
  }

  get requests(): RequestCounts {
    return this.#access.requests;
  }

  /** Bytes of the bodies of pushes that began to be sent, those sent again included. */
  get pushedBytes(): number {
    return this.#access.pushedBytes;
  }

  /**
   * Requests that begin from now on carry these credentials; those under way go on with the ones before.
   *
   * @returns whether they are others
   */
  authenticate(credentials: Credentials | undefined): boolean {
    return this.#access.authenticate(credentials);
  }

  /**
   * Requests that begin from now on trust these certificates (PEM text) besides the usual ones.
   *
   * @returns whether they are others
   */
  trust(ca: string | undefined): boolean {
    return this.#http.trust(ca);
  }

  /** How the peer speaks the API; undefined as long as that is not known. */
  get dialect(): DialectName | undefined {
    return this.#dialect.known?.name;
  }

  /**
   * Finds out how the peer speaks the API, also where that seemed known, and speaks so from then on. Changes nothing in
   * the peer. The other methods do it by themselves where it is not known.
   *
   * @throws PeerError PEER_ANSWER when the peer looks like none of the dialects, or like several
   */
  async detect({ signal }: { readonly signal?: AbortSignal } = {}): Promise<DialectName> {
    return (await this.#dialect.detect(signal)).name;
  }

  /**
   * Pushes documents into the index. The peer's acceptance does not mean that they are searchable. Without items it
   * changes nothing, and shows whether the peer takes pushes.
   *
   * @throws PeerError also PEER_SOURCE (`item` says which) when a text cannot be read or changes on the way: nothing of
   *   the request is acted on then
   */
  async push(items: readonly PushItem[], options: PushOptions = {}): Promise<PushAnswer> {
    const { signal } = options;
    const dialect = await this.#dialect.get(signal);
    const path = dialect.pushPath;
    const body = await dialect.pushBody(items, options, this.#access.url(path));
    const answer = await this.#access.ask({
      counted: 'push',
      method: 'POST',
      path,
      isProtected: true,
      body,
      signal,
    });
    const error = statusError(answer);
    if (error !== undefined) throw error;
    const results = dialect.pushResults(answer, items);
    return answer.peerAt === undefined
      ? { results }
      : { results, peerTime: beganAt(answer.peerAt, answer.tookMs) };
  }

  /** What the peer shows of a document; undefined when it has none. */
  async peerdoc(query: PeerdocQuery, options: PeerdocOptions = {}): Promise<Peerdoc | undefined> {
    const { signal } = options;
    const dialect = await this.#dialect.get(signal);
    const path = dialect.peerdocPath;
    const body = await dialect.peerdocBody(query, options, this.#access.url(path));
    const answer = await this.#access.ask({
      counted: 'peerdoc',
      method: 'POST',
      path,
      isProtected: false,
      body,
      signal,
    });
    const error = answer.status === 404 ? undefined : statusError(answer);
    if (error !== undefined) throw error;
    return dialect.peerdocOf(answer, query);
  }

  /**
   * What the peer knows of the references around a document: its sentences, and which other documents have them;
   * undefined when it has no such document. An empty record is one that the peer gave.
   */
  async citation(query: CitationQuery, options: CitationOptions = {}): Promise<Citation | undefined> {
    const { signal } = options;
    const dialect = await this.#dialect.get(signal);
    const path = dialect.citationPath;
    const body = await dialect.citationBody(query, options, this.#access.url(path));
    const answer = await this.#access.ask({
      counted: 'other',
      method: 'POST',
      path,
      isProtected: false,
      accept: ACCEPT_RECORDS,
      body,
      signal,
    });
    if (dialect.hasNoCitation(answer)) return undefined;
    const error = statusError(answer);
    if (error !== undefined) throw error;
    return dialect.citationOf(answer, query);
  }

  /** Has the peer show at once what it has indexed so far, where its dialect knows a way; nothing otherwise. */
  async commitIndex(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { commitHash } = await this.#dialect.get(options.signal);
    if (commitHash !== undefined) await this.citation({ hash: commitHash }, options);
  }

  /**
   * Hands a shared object to `use` as it comes in, in bounded memory, and gives what `use` gives; undefined when the peer
   * has no such object. When `use` ends before the object does, the rest is not asked for.
   *
   * Asked for what is missing, it comes whole again where it changed meanwhile: `from` says where it begins.
   *
   * @throws PeerError PEER_NAME, before anything is sent, for a name that no shared object of such a peer can have;
   *   PEER_ANSWER_TOO_LARGE beyond `maxBytes`, and where it breaks off, in the middle of `use`
   */
  async share<T>(
    query: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    options: ShareOptions = {},
  ): Promise<T | undefined> {
    const { maxBytes, signal, resume } = options;
    const dialect = await this.#dialect.get(signal);
    const request = await dialect.shareRequest(query, (path) => this.#access.url(path));
    const headers = conditionsOf(options);
    try {
      return await this.#access.stream(
        { counted: 'other', isProtected: false, ...request, headers, maxBytes, signal },
        (answer) => use(shareOf(answer, options)),
      );
    } catch (error) {
      if (resume === undefined || !isChanged(error)) throw error;
      const { resume: _, ...whole } = options;
      return await this.share(query, use, whole);
    }
  }

  /**
   * The names of all shared objects, as `share` takes them, in the peer's order; undefined where this kind of peer does
   * not tell them.
   */
  async shares({ signal }: { readonly signal?: AbortSignal } = {}): Promise<readonly string[] | undefined> {
    const { sharesPath } = await this.#dialect.get(signal);
    return sharesPath === undefined ? undefined : await listShares(this.#access, sharesPath, signal);
  }

  /**
   * Whether the peer answers at all, and how fast: asks for a page without saying what for, which changes nothing, and
   * needs no access.
   */
  async ping({ signal }: { readonly signal?: AbortSignal } = {}): Promise<{ ms: number; server?: string }> {
    const request = {
      counted: 'other',
      method: 'GET',
      path: (this.#dialect.known ?? standard).peerdocPath,
      isProtected: false,
      signal,
    } as const;
    const answer = await this.#access.askAsStranger(request);
    const error = answer.status >= 500 || answer.status === 429 ? statusError(answer) : undefined;
    if (error !== undefined) throw error;
    const { server } = answer.headers;
    return { ms: answer.tookMs, ...(typeof server === 'string' ? { server } : {}) };
  }

  /**
   * Resolves when the peer lets us push: asks for the push page without parameters, which changes nothing. A peer that
   * does not take the empty request (400, 405 and the like) let us in all the same.
   *
   * @throws PeerError PEER_AUTH when it does not; PEER_REFUSED when there is no such page
   */
  async checkAdmin({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const path = (await this.#dialect.get(signal)).pushPath;
    const answer = await this.#access.ask({
      counted: 'other',
      method: 'GET',
      path,
      isProtected: true,
      signal,
    });
    const error = statusError(answer);
    const isLetIn = error?.code === 'PEER_REFUSED' && answer.status !== 404;
    if (error !== undefined && !isLetIn) throw error;
  }

  /** Ends all connections; requests under way, and any made later, fail with PEER_ABORTED. */
  async close(): Promise<void> {
    await this.#http.close();
  }
}
