import type { Clock } from '../lib/clock.js';
import { newRowKey } from '../lib/row-key.js';
import { decoded, type HttpAnswer, readable, succeeded, unusable } from './answer.js';
import type { TableDialect } from './dialects/dialect.js';
import { PeerError, quoted } from './errors.js';
import { type Body, type FormField, fieldsOf, formBody } from './form.js';
import type { Http, PeerRequest } from './http.js';
import { parseHtml, within } from './markup.js';
import { EMPTY_LIST, readAnswer } from './records.js';
import {
  readTable,
  type Table,
  type TableQuery,
  type TableRow,
  type TableStream,
} from './table.js';

export interface TableOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface TableReadOptions extends TableOptions {
  /** @default 'POST' */
  readonly method?: 'GET' | 'POST' | undefined;
  /** The longest answer, in bytes. @default the client's `maxAnswer` */
  readonly maxBytes?: number | undefined;
}

/** The most rows that are read back one by one. For more rows, the whole table is read once. */
const MAX_SINGLE_READS = 16;
/** The most rows that one request deletes. */
const DELETE_BATCH_ROWS = 100;
/**
 * The most bytes that are read of the answer to a change. The answer proves nothing, but an answer
 * that is read to its end keeps the connection open.
 */
const MAX_DRAINED_BYTES = 64 * 1024;

/**
 * The tables of a peer.
 *
 * Every change is verified by reading the table back. The methods return what was read, or throw
 * PEER_NOT_DONE if that is not what was requested. Names, keys and columns have no defaults.
 *
 * @throws PeerError
 * @throws TypeError for a name, key or column that no peer can have: an empty one, one of more than
 *   500 characters, one that is not well-formed, a key that ends with NUL
 */
export class PeerTables {
  constructor(
    private readonly http: Http,
    private readonly dialectOf: (signal: AbortSignal | undefined) => Promise<TableDialect>,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the longest key that a row of this peer can have, in bytes; undefined if no limit is
   * known.
   */
  async maxKeyBytes({ signal }: TableOptions = {}): Promise<number | undefined> {
    return (await this.dialectOf(signal)).keyBytes;
  }

  /** Returns the names of all tables, in the order of the peer. */
  async list({ signal }: TableOptions = {}): Promise<readonly string[]> {
    const { pagePath: path } = await this.dialectOf(signal);
    const body = await formBody([], this.http.url(path));
    const answer = succeeded(await this.http.ask(requestOf('POST', path, body, signal)));
    const isPage = decoded(answer.body).trimStart().startsWith('<');
    const names = isPage ? readable(answer, () => tableOptions(answer)) : listedTables(answer);
    if (names === undefined) throw unusable(answer, 'does not show the list of its tables');
    return [...new Set(names)];
  }

  /**
   * Passes a table to `use` while it arrives; returns undefined if there is no such table.
   *
   * @throws PeerError PEER_ANSWER if the answer breaks off or cannot be read, possibly in the
   *   middle of `use`
   */
  async stream<T>(
    query: TableQuery,
    use: (table: TableStream) => Promise<T>,
    options: TableReadOptions = {},
  ): Promise<T | undefined> {
    checkName('table', query.table);
    return await this.#read(query, undefined, use, options);
  }

  /** Reads a whole table into memory; undefined if there is no such table. */
  read(query: TableQuery, options: TableReadOptions = {}): Promise<Table | undefined> {
    return this.stream(query, collectTable, options);
  }

  /**
   * Creates rows, or changes the given cells of existing rows. Other cells stay as they are. The
   * table need not exist.
   *
   * @returns the rows as they were read back, each once, in the given order
   * @throws PeerError PEER_NOT_DONE if a row reads back otherwise than requested; other rows may
   *   have been changed
   */
  async set(
    table: string,
    rows: readonly TableRow[],
    { signal }: TableOptions = {},
  ): Promise<readonly TableRow[]> {
    checkName('table', table);
    const asked = rows.map(checkedRow);
    const dialect = await this.#checkedDialect(
      asked.map(({ pk }) => pk),
      signal,
    );
    const merged = new Map<string, ReadonlyMap<string, string>>();
    for (const { pk, cells } of asked) {
      // The answer may contain the whole table. `count` keeps it small.
      const row = fieldsOf({ table, commitrow: dialect.actions.commitrow, count: 1, pk });
      const columns = [...cells].map(([column, value]) => ({ name: `col_${column}`, value }));
      await this.#change([...row, ...columns], signal);
      merged.set(pk, new Map([...(merged.get(pk) ?? []), ...cells]));
    }
    const seen = await this.#lookUp(table, [...merged.keys()], signal);
    return [...merged].map(([pk, cells]) => {
      const row = seen?.get(pk);
      const ofTable = `of the table ${quoted(table)}`;
      if (row === undefined)
        throw this.#notDone(
          dialect,
          `was asked to set row ${quoted(pk)} ${ofTable}, and does not show that row`,
        );
      for (const [column, value] of cells) {
        const shown = row.cells.get(column) ?? '';
        if (shown === value) continue;
        const where = `column ${quoted(column)} of row ${quoted(pk)} ${ofTable}`;
        throw this.#notDone(dialect, `was asked to set ${where} to ${difference(value, shown)}`);
      }
      return row;
    });
  }

  /**
   * Adds a row under a new key of 12 characters (`0-9a-z`). New keys sort by time.
   *
   * @returns the row as it was read back
   */
  async add(
    table: string,
    cells: ReadonlyMap<string, string>,
    options: TableOptions = {},
  ): Promise<TableRow> {
    checkName('table', table);
    const pk = newRowKey(this.clock.now());
    if ((await this.#lookUp(table, [pk], options.signal))?.has(pk)) {
      const dialect = await this.dialectOf(options.signal);
      throw this.#notDone(dialect, `shows a row under a new key of the table ${quoted(table)}`);
    }
    const [row] = await this.set(table, [{ pk, cells }], options);
    return row ?? { pk, cells: new Map() };
  }

  /**
   * Deletes the rows with exactly these keys. A row that does not exist counts as deleted.
   *
   * @returns the keys, each once; the peer shows none of them any more
   * @throws PeerError PEER_NOT_DONE if the peer still shows one
   * @throws TypeError if there are no keys
   */
  async deleteRows(
    table: string,
    keys: readonly string[],
    { signal }: TableOptions = {},
  ): Promise<readonly string[]> {
    checkName('table', table);
    if (keys.length === 0) throw new TypeError('deleteRows needs the keys of the rows');
    for (const pk of keys) checkKey(pk);
    const dialect = await this.#checkedDialect(keys, signal);
    const gone = [...new Set(keys)];
    for (let at = 0; at < gone.length; at += DELETE_BATCH_ROWS) {
      const some = gone.slice(at, at + DELETE_BATCH_ROWS);
      const rows = some.map((pk, n) => ({ name: `item_${n}`, value: `pk_${pk}` }));
      await this.#change(
        [...fieldsOf({ table, count: 1, deleterows: dialect.actions.deleterows }), ...rows],
        signal,
      );
    }
    const seen = await this.#lookUp(table, gone, signal);
    if (seen === undefined) await this.#checkDropped(table, signal);
    const left = gone.filter((pk) => seen?.has(pk));
    if (left.length === 0) return gone;
    const more = left.length > 1 ? ` and ${left.length - 1} more` : '';
    const what = `row ${quoted(left[0] ?? '')} of the table ${quoted(table)}${more}`;
    throw this.#notDone(dialect, `was asked to delete ${what}, and still shows it`);
  }

  /**
   * Deletes a whole table.
   *
   * @returns the names of the remaining tables
   * @throws PeerError PEER_NOT_DONE if it is still among them
   */
  async drop(table: string, { signal }: TableOptions = {}): Promise<readonly string[]> {
    checkName('table', table);
    const { actions } = await this.dialectOf(signal);
    await this.#change(fieldsOf({ table, deletetable: actions.deletetable }), signal);
    return await this.#checkDropped(table, signal);
  }

  /**
   * @returns the names of the remaining tables
   * @throws PeerError PEER_NOT_DONE if `table` is one of them
   */
  async #checkDropped(table: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
    const left = await this.list({ signal });
    if (!left.includes(table)) return left;
    throw this.#notDone(await this.dialectOf(signal), `still lists the table ${quoted(table)}`);
  }

  /** Reads the rows with these keys that exist; undefined if the table does not exist. */
  async #lookUp(
    table: string,
    keys: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, TableRow> | undefined> {
    const wanted = new Set(keys);
    const seen = new Map<string, TableRow>();
    const { readsOneRow } = await this.dialectOf(signal);
    const asked = readsOneRow && keys.length <= MAX_SINGLE_READS ? keys : [undefined];
    const collect = async ({ rows }: TableStream) => {
      for await (const group of rows) {
        for (const row of group) if (wanted.has(row.pk)) seen.set(row.pk, row);
        if (seen.size === wanted.size) break;
      }
      return true;
    };
    for (const pk of asked) {
      // Some peers return all rows, whichever was requested: then this row was read already.
      if (pk !== undefined && seen.has(pk)) continue;
      const isThere = await this.#read({ table }, pk, collect, {
        signal,
        maxBytes: Number.MAX_SAFE_INTEGER,
      });
      if (!isThere) return undefined;
    }
    return seen;
  }

  /** @param pk requests only the row with this key; the peer may return others too */
  async #read<T>(
    { table, count, search }: TableQuery,
    pk: string | undefined,
    use: (table: TableStream) => Promise<T>,
    { method = 'POST', maxBytes, signal }: TableReadOptions,
  ): Promise<T | undefined> {
    const { readPath, allRowsCount, keyBytes } = await this.dialectOf(signal);
    const fields = fieldsOf({ table, pk, count: count ?? allRowsCount, search });
    const isQuery = method === 'GET';
    const query = new URLSearchParams(
      fields.map(({ name, value }): [string, string] => [name, value]),
    );
    const path = isQuery ? `${readPath}?${query}` : readPath;
    const body = isQuery ? undefined : await formBody(fields, this.http.url(readPath));
    const request = requestOf(method, path, body, signal);
    return await this.http.stream({ ...request, maxBytes }, async (answer) => {
      const stream = await readTable(answer, table, keyBytes);
      return stream === undefined ? undefined : await use(stream);
    });
  }

  /** Requests a change. Throws for an error status. The content of an answer proves nothing. */
  async #change(fields: readonly FormField[], signal: AbortSignal | undefined): Promise<void> {
    const { changePath, changeBody } = await this.dialectOf(signal);
    const url = this.http.url(changePath);
    const request = requestOf('POST', changePath, await changeBody(fields, url), signal);
    const isTaken = await this.http.stream(
      { ...request, maxBytes: Number.MAX_SAFE_INTEGER },
      async (answer) => {
        let bytes = 0;
        for await (const chunk of answer.chunks) {
          bytes += chunk.length;
          if (bytes > MAX_DRAINED_BYTES) break;
        }
        return true;
      },
    );
    if (isTaken) return;
    const what = 'has no such table or no such page (404)';
    throw new PeerError('PEER_REFUSED', { url, what, status: 404, delivered: 'yes' });
  }

  /** @throws PeerError PEER_KEY if the peer would cut a key, which would name another row */
  async #checkedDialect(
    keys: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<TableDialect> {
    const dialect = await this.dialectOf(signal);
    const { keyBytes = Number.POSITIVE_INFINITY, changePath } = dialect;
    const long = keys.find((pk) => Buffer.byteLength(pk) > keyBytes);
    if (long === undefined) return dialect;
    const bytes = Buffer.byteLength(long);
    const what = `was not asked: the key ${quoted(long)} has ${bytes} bytes, and keys of this peer have at most ${keyBytes}`;
    throw new PeerError('PEER_KEY', { url: this.http.url(changePath), what, delivered: 'no' });
  }

  /** Returns the error for a change that reading back does not show. */
  #notDone({ changePath }: TableDialect, what: string): PeerError {
    const url = this.http.url(changePath);
    return new PeerError('PEER_NOT_DONE', { url, what, delivered: 'yes' });
  }
}

/** Collects a streamed table in memory. */
async function collectTable({ name, columns, rows }: TableStream): Promise<Table> {
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

function requestOf(
  method: 'GET' | 'POST',
  path: string,
  body: Body | undefined,
  signal: AbortSignal | undefined,
): PeerRequest {
  return { counted: 'other', method, path, isProtected: true, body, signal };
}

/**
 * Returns the tables in the selection list of a page, as YaCy has one; undefined without a list.
 */
function tableOptions({ body }: HttpAnswer): readonly string[] | undefined {
  const lists = within(parseHtml(decoded(body)), ['select']).filter(
    ({ attribs }) => attribs.name === 'table',
  );
  if (lists.length === 0) return undefined;
  const choices = lists.flatMap(({ children }) => within(children, ['option']));
  return choices
    .map(({ attribs }) => (attribs.value ?? '').toWellFormed())
    .filter((name) => name !== '');
}

/**
 * Returns the tables that an answer lists in its `tables` fields; undefined without such a field.
 */
function listedTables(answer: HttpAnswer): readonly string[] | undefined {
  const fields = readAnswer(answer).record.fields.filter(({ name }) => name === 'tables');
  if (fields.length === 0) return undefined;
  return fields.map(({ value }) => value).filter((value) => value !== '' && value !== EMPTY_LIST);
}

/** The longest name of a table, key or column, in UTF-16 code units. */
const MAX_NAME_LENGTH = 500;

function checkName(what: 'table' | 'key' | 'column', name: string): void {
  if (name.length > 0 && name.length <= MAX_NAME_LENGTH && name.isWellFormed()) return;
  throw new TypeError(
    `a ${what} has 1 to ${MAX_NAME_LENGTH} well-formed characters, not ${name.length}: ${quoted(name)}`,
  );
}

/**
 * Refuses a key that ends with NUL. NULs are padding when a key is read back, so it would name
 * another row.
 */
function checkKey(pk: string): void {
  checkName('key', pk);
  if (pk.endsWith('\0')) throw new TypeError(`a key does not end with NUL: ${quoted(pk)}`);
}

/** Returns the row with cells that are well-formed text. @throws TypeError */
function checkedRow({ pk, cells }: TableRow): TableRow {
  checkKey(pk);
  for (const column of cells.keys()) checkName('column', column);
  return {
    pk,
    cells: new Map([...cells].map(([column, value]) => [column, value.toWellFormed()])),
  };
}

/** Returns both texts, starting shortly before the first difference. */
function difference(asked: string, shown: string): string {
  let at = 0;
  while (at < asked.length && asked[at] === shown[at]) at += 1;
  const from = Math.max(0, at - 25);
  const place = from === 0 ? '' : ` (from character ${from} on)`;
  return `${quoted(asked.slice(from))}, and shows ${quoted(shown.slice(from))}${place}`;
}
