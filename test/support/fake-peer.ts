import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { MirrorPeer } from '../../src/mirror/mirror.js';
import type { Citation, CitationOptions, CitationQuery } from '../../src/peer/citation.js';
import { PeerError, type PeerErrorCode } from '../../src/peer/errors.js';
import type { EncodedText } from '../../src/peer/form.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { PushAnswer, PushItem, PushResult } from '../../src/peer/push.js';
import type { ShareQuery, ShareStream } from '../../src/peer/share.js';
import type { TableQuery, TableRow, TableStream } from '../../src/peer/table.js';
import type { UplinkPeer } from '../../src/uplink/deps.js';
import { deferred } from './wait.js';

/** A document in the index of the fake peer. */
export interface IndexedDocument {
  readonly text: string;
  readonly collection: string;
  readonly loadDate: number;
}

/** A shared object of the fake peer: a list comes in as many pieces. */
export type Shared = { readonly type?: string; readonly content: string | readonly string[] };
export type Cells = Readonly<Record<string, string>>;
export type Rows = Readonly<Record<string, Cells>>;

/**
 * Handles a push of these URLs: it throws, answers in its own way, or returns undefined, and then
 * the documents are taken.
 */
export type PushBehaviour = (
  urls: readonly string[],
) => PushAnswer | undefined | Promise<PushAnswer | undefined>;

/** Takes the documents of each push. */
export const takes: PushBehaviour = () => undefined;

/** Answers that each document was taken, and drops them all. */
export const drops: PushBehaviour = (urls) => ({ results: urls.map(() => ({ ok: true })) });

/** Refuses each document with this message. */
export function refuses(message: string): PushBehaviour {
  return (urls) => ({ results: urls.map(() => ({ ok: false, message })) });
}

/** Fails with this error for pushes with a URL that contains `part`, and takes others. */
export function fails(error: () => Error, part = ''): PushBehaviour {
  return (urls) => {
    if (urls.some((url) => url.includes(part))) throw error();
    return undefined;
  };
}

export interface FakePeerOptions {
  readonly clock?: Clock | undefined;
  /** Time from the push of a document until it is shown, in ms. @default 0 */
  readonly visibleAfterMs?: number;
  /** Whether it shows the digest of a document, or only its last modification. @default true */
  readonly showsDigest?: boolean;
  /**
   * Indexes all documents within `withinMs`, or up to a commit, as one update, and loses an update
   * with one of the URLs `because`, as YaCy does.
   */
  readonly losesUpdates?: { readonly because: readonly string[]; readonly withinMs: number };
  readonly objects?: Readonly<Record<string, Shared>>;
  readonly tables?: Readonly<Record<string, Rows>>;
}

/**
 * The peer of tests that need no network: it has documents, shared objects, tables and citations in
 * memory. A test changes its content, and scripts what it does in error: by its options, by a
 * behaviour for pushes (`peer.onPush = drops`), by `hold`, and by the functions that are called
 * with each request and may wait or throw.
 */
export class FakePeer implements UplinkPeer, MirrorPeer {
  readonly baseUrl = 'http://127.0.0.1:1';
  clock: Clock;

  /** The index: documents by URL. */
  readonly documents = new Map<string, IndexedDocument>();
  /** The last pushed items, by URL. */
  readonly items = new Map<string, PushItem & { readonly bytes: Buffer }>();
  visibleAfterMs: number;
  showsDigest: boolean;
  /** The URLs of each push that came, in order. */
  readonly pushes: string[][] = [];
  /** The URLs of each removal that came, in order. */
  readonly removals: string[][] = [];
  /** The number of look-ups that came. */
  lookUps = 0;
  /** Called before a push is taken. */
  onPush: PushBehaviour = takes;
  onLookUp: (url: string) => void = () => {};
  onCommit: () => void = () => {};
  /** Called before a removal is done; may throw. @returns whether it is done */
  onRemove: (urls: readonly string[]) => boolean | Promise<boolean> = () => true;

  readonly objects = new Map<string, Shared>();
  readonly tableRows = new Map<string, Map<string, Cells>>();
  readonly citations = new Map<string, Citation>();
  /**
   * The requests of mirrors in order: `share x`, `shares`, `table t`, `list`, `citation url`, `set
   * t k {"a":"1"}`, `delete t k`.
   */
  readonly requests: string[] = [];
  /**
   * Called before the answer to each of these requests, and with `did …` after a row was changed.
   */
  onRequest: (what: string) => unknown = () => {};
  /** The columns that it names before the rows. */
  columns: readonly string[] | undefined;
  /** The list of shared objects. Undefined for a peer without a list. */
  listed: readonly string[] | undefined;
  maxKeyBytes: number | undefined;
  /** Whether the bytes of its tables are UTF-8. */
  isUtf8 = true;
  /** Keys that each table shows twice. */
  twice: readonly string[] = [];

  readonly #losesUpdates: FakePeerOptions['losesUpdates'];
  #update: { readonly urls: string[]; readonly end: number; isLost: boolean } | undefined;

  constructor(options: FakePeerOptions = {}) {
    const { clock = systemClock, visibleAfterMs = 0, showsDigest = true } = options;
    this.clock = clock;
    this.visibleAfterMs = visibleAfterMs;
    this.showsDigest = showsDigest;
    this.#losesUpdates = options.losesUpdates;
    for (const [name, shared] of Object.entries(options.objects ?? {}))
      this.objects.set(name, shared);
    for (const [name, rows] of Object.entries(options.tables ?? {})) this.table(name, rows);
  }

  /**
   * Holds requests back: each `push`, or the one request of a mirror that is named as in
   * `requests`.
   * @returns a function that lets them go on, and holds back no more
   */
  hold(what: string): () => void {
    const { promise, resolve } = deferred<undefined>();
    if (what === 'push') this.onPush = () => promise;
    else this.onRequest = (request) => (request === what ? promise : undefined);
    return () => {
      if (what === 'push') this.onPush = takes;
      resolve(undefined);
    };
  }

  /** Shows this text at a URL from now on. */
  show(url: string, text: string): void {
    this.documents.set(url, { text, collection: 'c', loadDate: this.clock.now() });
  }

  async push(
    items: readonly PushItem[],
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<PushAnswer> {
    const urls = items.map((item) => item.url);
    this.pushes.push(urls);
    const peerTime = Math.floor(this.clock.now() / 1000) * 1000;
    const own = await Promise.race([this.onPush(urls), aborted(signal)]);
    if (own !== undefined) return own;
    for (const item of items) {
      const chunks: Uint8Array[] = [];
      if (item.data instanceof Uint8Array) chunks.push(item.data);
      else if ('encoded' in item.data) chunks.push(decoded(item.data));
      else for await (const chunk of item.data.chunks()) chunks.push(Buffer.from(chunk));
      const bytes = Buffer.concat(chunks);
      this.items.set(item.url, { ...item, bytes });
      const { collection } = item;
      this.#index(item.url, { text: bytes.toString(), collection, loadDate: this.clock.now() });
    }
    return { peerTime, results: items.map(() => ({ ok: true })) };
  }

  async commitIndex(): Promise<void> {
    this.#update = undefined;
    this.onCommit();
  }

  async remove(urls: readonly string[]): Promise<PushResult[]> {
    this.removals.push([...urls]);
    if (await this.onRemove(urls)) for (const url of urls) this.documents.delete(url);
    return urls.map(() => ({ ok: true }));
  }

  async peerdoc({ url }: { readonly url: string }): Promise<Peerdoc | undefined> {
    this.lookUps += 1;
    this.onLookUp(url);
    const doc = this.documents.get(url);
    if (doc === undefined || this.clock.now() - doc.loadDate < this.visibleAfterMs)
      return undefined;
    const { bytes, lastModified } = this.items.get(url) ?? {};
    const content = bytes?.toString() === doc.text ? bytes : doc.text;
    return {
      url,
      size: Buffer.byteLength(content),
      ...(this.showsDigest
        ? { digest: createHash('sha256').update(content).digest('hex') }
        : { lastModified: Math.floor((lastModified ?? 0) / 1000) * 1000 }),
      loadDate: doc.loadDate,
      at: this.clock.now(),
      collections: [doc.collection],
      fields: {},
    };
  }

  async citation(query: CitationQuery, _options?: CitationOptions): Promise<Citation | undefined> {
    const of = 'url' in query ? query.url : query.hash;
    await this.#request(`citation ${of}`);
    return this.citations.get(of);
  }

  async share<T>(
    { data, c }: ShareQuery,
    use: (share: ShareStream) => Promise<T>,
    {
      maxBytes = 10 ** 9,
      signal,
    }: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    const name = c === undefined ? data : `${c}/${data}`;
    await this.#request(`share ${name}`);
    const shared = this.objects.get(name);
    if (shared === undefined) return undefined;
    async function* chunks(content: Shared['content']): AsyncGenerator<Uint8Array> {
      let size = 0;
      for (const chunk of typeof content === 'string' ? [content] : content) {
        signal?.throwIfAborted();
        await nextTurn();
        size += chunk.length;
        if (size > maxBytes) throw failing('PEER_ANSWER_TOO_LARGE');
        yield Buffer.from(chunk);
      }
    }
    const { type, content } = shared;
    return use({ type, size: undefined, lastModified: undefined, chunks: chunks(content) });
  }

  async shares(): Promise<readonly string[] | undefined> {
    await this.#request('shares');
    return this.listed;
  }

  readonly tables = {
    maxKeyBytes: async () => this.maxKeyBytes,
    list: async (): Promise<readonly string[]> => {
      await this.#request('list');
      return [...this.tableRows.keys()];
    },
    stream: async <T>(
      { table }: TableQuery,
      use: (table: TableStream) => Promise<T>,
    ): Promise<T | undefined> => {
      await this.#request(`table ${table}`);
      const rows = this.tableRows.get(table);
      if (rows === undefined) return undefined;
      async function* groups(all: readonly TableRow[]): AsyncGenerator<readonly TableRow[]> {
        for (let at = 0; at < all.length; at += 500) yield all.slice(at, at + 500);
      }
      const all = [...rows].map(([pk, cells]) => row(pk, cells));
      all.push(...this.twice.map((pk) => row(pk, { name: 'Twin' })));
      return use({
        name: table,
        columns: this.columns,
        rows: groups(all),
        isUtf8: () => this.isUtf8,
      });
    },
    set: async (table: string, rows: readonly TableRow[]): Promise<readonly TableRow[]> => {
      for (const { pk, cells } of rows) {
        const set = Object.fromEntries(cells);
        await this.#change(table, `set ${table} ${pk} ${JSON.stringify(set)}`, (all) =>
          all.set(pk, { ...all.get(pk), ...set }),
        );
      }
      return rows;
    },
    deleteRows: async (table: string, keys: readonly string[]): Promise<readonly string[]> => {
      for (const pk of keys)
        await this.#change(table, `delete ${table} ${pk}`, (all) => all.delete(pk));
      return keys;
    },
  };

  /** Makes a table with these rows, in place of one with the same name. */
  table(name: string, rows: Rows): void {
    this.tableRows.set(name, new Map(Object.entries(rows)));
  }

  /** Returns the requests that changed rows. */
  get writes(): string[] {
    return this.requests.filter((what) => /^(set|delete) /.test(what));
  }

  /** Adds a document to the index as part of the update that is under way. */
  #index(url: string, document: IndexedDocument): void {
    this.documents.set(url, document);
    if (this.#losesUpdates === undefined) return;
    const { because, withinMs } = this.#losesUpdates;
    const now = this.clock.now();
    if (this.#update === undefined || this.#update.end <= now)
      this.#update = { urls: [], end: now + withinMs, isLost: false };
    const update = this.#update;
    update.urls.push(url);
    update.isLost ||= because.includes(url);
    if (update.isLost) for (const each of update.urls) this.documents.delete(each);
  }

  async #request(what: string): Promise<void> {
    this.requests.push(what);
    await this.onRequest(what);
  }

  async #change(
    table: string,
    what: string,
    change: (rows: Map<string, Cells>) => unknown,
  ): Promise<void> {
    await this.#request(what);
    const rows = this.tableRows.get(table) ?? new Map<string, Cells>();
    change(rows);
    this.tableRows.set(table, rows);
    await this.onRequest(`did ${what}`);
  }
}

export function row(pk: string, cells: Cells = {}): TableRow {
  return { pk, cells: new Map(Object.entries(cells)) };
}

function decoded({ encoded, encoding }: EncodedText): Uint8Array {
  if (encoding === 'base64') return Buffer.from(Buffer.from(encoded).toString('latin1'), 'base64');
  return Buffer.from(
    new URLSearchParams(`x=${Buffer.from(encoded).toString('latin1')}`).get('x') ?? '',
  );
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(
        new PeerError('PEER_ABORTED', {
          url: 'http://127.0.0.1:1/',
          what: 'was called off',
          delivered: 'maybe',
        }),
      );
    });
  });
}

/** Makes the error of a request to a peer that is away. */
export function unreachable(delivered: 'no' | 'maybe', code = 'ECONNREFUSED'): PeerError {
  return new PeerError('PEER_UNREACHABLE', {
    url: 'http://127.0.0.1:1/api/push_p.html',
    what: 'refused the connection',
    delivered,
    cause: Object.assign(new Error(code), { code }),
  });
}

/** Makes the error of a request that the peer answered with an error. */
export function failing(code: PeerErrorCode = 'PEER_FAILED', status = 500): PeerError {
  return new PeerError(code, {
    url: 'http://127.0.0.1:1/api/push_p.html',
    what: 'answered with an error',
    delivered: 'yes',
    status,
  });
}
