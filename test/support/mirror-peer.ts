import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MirrorPeer } from '../../src/mirror/mirror.js';
import type { Citation, CitationOptions, CitationQuery } from '../../src/peer/citation.js';
import { PeerError, type PeerErrorCode } from '../../src/peer/errors.js';
import type { ShareQuery, ShareStream } from '../../src/peer/share.js';
import type { TableQuery, TableRow, TableStream } from '../../src/peer/table.js';

/** A shared object of the fake peer: a list comes in as many pieces. */
export type Shared = { readonly type?: string; readonly content: string | readonly string[] };
export type Cells = Readonly<Record<string, string>>;
export type Rows = Readonly<Record<string, Cells>>;

/** A peer in memory, with every behaviour open to a test. */
export class FakePeer implements MirrorPeer {
  readonly baseUrl = 'http://127.0.0.1:1';
  readonly objects = new Map<string, Shared>();
  readonly tableRows = new Map<string, Map<string, Cells>>();
  readonly citations = new Map<string, Citation>();
  /**
   * The requests in order: `share x`, `shares`, `table t`, `list`, `citation url`, `set t k
   * {"a":"1"}`, `delete t k`.
   */
  readonly asked: string[] = [];
  /**
   * Called before each answer, and with `did …` after a row was changed. It may throw or wait.
   */
  onAsk: (what: string) => unknown = () => {};
  /** The columns that it names before the rows. */
  columns: readonly string[] | undefined;
  /** The list of shared objects. Undefined for a peer without a list. */
  listed: readonly string[] | undefined;
  maxKeyBytes: number | undefined;
  /** Whether the bytes of its tables are UTF-8. */
  isUtf8 = true;
  /** Keys that each table shows twice. */
  twice: readonly string[] = [];

  async citation(query: CitationQuery, _options?: CitationOptions): Promise<Citation | undefined> {
    const of = 'url' in query ? query.url : query.hash;
    await this.#ask(`citation ${of}`);
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
    await this.#ask(`share ${name}`);
    const shared = this.objects.get(name);
    if (shared === undefined) return undefined;
    async function* chunks(content: Shared['content']): AsyncGenerator<Uint8Array> {
      let size = 0;
      for (const chunk of typeof content === 'string' ? [content] : content) {
        signal?.throwIfAborted();
        await nextTurn();
        size += chunk.length;
        if (size > maxBytes) throw peerError('PEER_ANSWER_TOO_LARGE');
        yield Buffer.from(chunk);
      }
    }
    const { type, content } = shared;
    return use({ type, size: undefined, lastModified: undefined, chunks: chunks(content) });
  }

  async shares(): Promise<readonly string[] | undefined> {
    await this.#ask('shares');
    return this.listed;
  }

  readonly tables = {
    maxKeyBytes: async () => this.maxKeyBytes,
    list: async (): Promise<readonly string[]> => {
      await this.#ask('list');
      return [...this.tableRows.keys()];
    },
    stream: async <T>(
      { table }: TableQuery,
      use: (table: TableStream) => Promise<T>,
    ): Promise<T | undefined> => {
      await this.#ask(`table ${table}`);
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

  table(name: string, rows: Rows): void {
    this.tableRows.set(name, new Map(Object.entries(rows)));
  }

  /** Returns the requests that changed something. */
  get writes(): string[] {
    return this.asked.filter((what) => /^(set|delete) /.test(what));
  }

  async #ask(what: string): Promise<void> {
    this.asked.push(what);
    await this.onAsk(what);
  }

  async #change(
    table: string,
    what: string,
    change: (rows: Map<string, Cells>) => unknown,
  ): Promise<void> {
    await this.#ask(what);
    const rows = this.tableRows.get(table) ?? new Map<string, Cells>();
    change(rows);
    this.tableRows.set(table, rows);
    await this.onAsk(`did ${what}`);
  }
}

export function row(pk: string, cells: Cells = {}): TableRow {
  return { pk, cells: new Map(Object.entries(cells)) };
}

export function peerError(code: PeerErrorCode, status?: number): PeerError {
  return new PeerError(code, {
    url: 'http://127.0.0.1:1/api/x.html',
    what: 'gave no usable answer',
    delivered: 'yes',
    status,
  });
}

/** Holds the answer to one request back. Returns the function that releases it. */
export function hold(peer: FakePeer, what: string): () => void {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  peer.onAsk = (asked) => (asked === what ? released : undefined);
  return release;
}
