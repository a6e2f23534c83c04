import type { Asking, PeerRequest } from './asking.js';
import { PeerError } from './errors.js';
import { formBody } from './form.js';
import { statusError } from './status.js';
import type { Table, TableQuery, TableRow, TableStream } from './table.js';
import { readTable } from './table-answer.js';
import { readTableForm, readTableList } from './table-pages.js';
import type { TableDialect, TableField } from './table-requests.js';
import { quoted } from './table-words.js';

/** Any form can be read; JSON carries every text as it is. */
const ACCEPT = 'application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.8, */*;q=0.1';
/** Up to so many rows are looked up one by one; more in one pass over the whole table. */
const FEW_ROWS = 16;
/** Rows that one request deletes. */
const DELETED_AT_ONCE = 100;
/** The answer to a change proves nothing; so many bytes of it are read, to keep the connection. */
const UNREAD_BYTES = 64 * 1024;

export interface HowToRead {
  readonly method?: 'GET' | 'POST' | undefined;
  readonly maxBytes?: number | undefined;
}

/**
 * What a peer is asked about its tables, in its dialect, for one caller.
 *
 * Nothing is checked that is asked for, and nothing is proved: whoever changes a table looks afterwards what became of it.
 *
 * @throws PeerError
 */
export class TableAsking {
  readonly #asking: Asking;
  readonly #dialect: TableDialect;
  readonly #signal: AbortSignal | undefined;

  constructor(asking: Asking, dialect: TableDialect, signal: AbortSignal | undefined) {
    this.#asking = asking;
    this.#dialect = dialect;
    this.#signal = signal;
  }

  /** The names of all tables, in the peer's order. */
  async list(): Promise<readonly string[]> {
    const answer = await this.#asking.ask(await this.#page(this.#dialect.listFields()));
    const error = statusError(answer);
    if (error !== undefined) throw error;
    return readTableList(answer);
  }

  /** The columns that the editor asks for when a row is added; undefined where there is no such table. */
  async columns(table: string): Promise<readonly string[] | undefined> {
    const fields = this.#dialect.formFields(table);
    if (fields === undefined) return (await this.read({ table, count: 1 }, whole))?.columns;
    const answer = await this.#asking.ask(await this.#page(fields));
    if (answer.status === 404) return undefined;
    const error = statusError(answer);
    if (error !== undefined) throw error;
    return readTableForm(answer);
  }

  /** Hands a table to `use` while it comes in; undefined where there is none of this name. */
  read<T>(
    query: TableQuery,
    use: (table: TableStream) => Promise<T>,
    how: HowToRead = {},
  ): Promise<T | undefined> {
    return this.#read(query, undefined, use, how);
  }

  /** The rows of these keys, as far as they are there; undefined where the table is not. */
  async lookUp(table: string, keys: readonly string[]): Promise<ReadonlyMap<string, TableRow> | undefined> {
    const wanted = new Set(keys);
    const seen = new Map<string, TableRow>();
    const asked = this.#dialect.readsOneRow && keys.length <= FEW_ROWS ? keys : [undefined];
    for (const pk of asked) {
      // A peer that gives all rows whichever is asked for has shown it already.
      if (pk !== undefined && seen.has(pk)) continue;
      const collected = ({ rows }: TableStream) => collect(rows, wanted, seen);
      const isThere = await this.#read({ table }, pk, collected, { maxBytes: Number.MAX_SAFE_INTEGER });
      if (!isThere) return undefined;
    }
    return seen;
  }

  async commit(table: string, row: TableRow): Promise<void> {
    await this.#change(this.#dialect.commitFields(table, row));
  }

  async deleteRows(table: string, keys: readonly string[]): Promise<void> {
    for (let at = 0; at < keys.length; at += DELETED_AT_ONCE) {
      const some = keys.slice(at, at + DELETED_AT_ONCE);
      await this.#change(this.#dialect.deleteRowsFields(table, some));
    }
  }

  async drop(table: string): Promise<void> {
    await this.#change(this.#dialect.dropFields(table));
  }

  /** Cut by the peer, it would be another row. @throws PeerError PEER_KEY */
  refuseLongKey(pk: string): void {
    const { maxKeyBytes = Number.POSITIVE_INFINITY, changePath } = this.#dialect;
    const bytes = Buffer.byteLength(pk);
    if (bytes <= maxKeyBytes) return;
    throw new PeerError('PEER_KEY', {
      url: this.#asking.url(changePath),
      what: `was not asked: the key ${quoted(pk)} has ${bytes} bytes, and keys of this peer have at most ${maxKeyBytes}`,
      delivered: 'no',
    });
  }

  /** The error of a change that is not seen afterwards. */
  notDone(what: string): PeerError {
    const url = this.#asking.url(this.#dialect.changePath);
    return new PeerError('PEER_NOT_DONE', { url, what, delivered: 'yes' });
  }

  async #read<T>(
    query: TableQuery,
    pk: string | undefined,
    use: (table: TableStream) => Promise<T>,
    { method = 'POST', maxBytes }: HowToRead,
  ): Promise<T | undefined> {
    const { readPath: path, hasRawKeys } = this.#dialect;
    const fields = this.#dialect.readFields(query, pk);
    const sent =
      method === 'GET'
        ? {
            path: `${path}?${new URLSearchParams(fields.map(({ name, value }): [string, string] => [name, value]))}`,
          }
        : { path, body: await formBody(fields, this.#asking.url(path)) };
    const signal = this.#signal;
    return this.#asking.stream(
      { counted: 'other', method, isProtected: true, accept: ACCEPT, signal, maxBytes, ...sent },
      async (answer) => {
        const table = await readTable(answer, query.table, hasRawKeys);
        return table === undefined ? undefined : use(table);
      },
    );
  }

  async #page(fields: readonly TableField[]): Promise<PeerRequest> {
    const path = this.#dialect.pagePath;
    const body = await formBody(fields, this.#asking.url(path));
    const signal = this.#signal;
    return { counted: 'other', method: 'POST', path, isProtected: true, accept: ACCEPT, body, signal };
  }

  /** Asks for a change. What is answered to it proves nothing, as long as it is no error. */
  async #change(fields: readonly TableField[]): Promise<void> {
    const path = this.#dialect.changePath;
    const body = await this.#dialect.changeBody(fields, this.#asking.url(path));
    const maxBytes = Number.MAX_SAFE_INTEGER;
    const signal = this.#signal;
    const isTaken = await this.#asking.stream(
      { counted: 'other', method: 'POST', path, isProtected: true, accept: ACCEPT, body, maxBytes, signal },
      async ({ chunks }) => {
        let bytes = 0;
        for await (const chunk of chunks) {
          bytes += chunk.length;
          if (bytes > UNREAD_BYTES) break;
        }
        return true;
      },
    );
    if (isTaken) return;
    throw new PeerError('PEER_REFUSED', {
      url: this.#asking.url(path),
      what: 'has no such table or no such page (404)',
      status: 404,
      delivered: 'yes',
    });
  }
}

/** A table that comes in, held in memory. */
export async function whole({ name, columns, rows }: TableStream): Promise<Table> {
  const all: TableRow[] = [];
  const shown = new Set(columns);
  for await (const group of rows) {
    for (const row of group) {
      all.push(row);
      for (const column of row.cells.keys()) shown.add(column);
    }
  }
  return { name, columns: [...shown], rows: all };
}

async function collect(
  rows: TableStream['rows'],
  wanted: ReadonlySet<string>,
  seen: Map<string, TableRow>,
): Promise<true> {
  for await (const group of rows) {
    for (const row of group) if (wanted.has(row.pk)) seen.set(row.pk, row);
    if (seen.size === wanted.size) break;
  }
  return true;
}
