import { randomInt } from 'node:crypto';
import type { Clock } from '../lib/clock.js';
import { wellFormed } from '../lib/well-formed.js';
import type { Asking, PeerRequest } from './asking.js';
import { PeerError } from './errors.js';
import { formBody } from './form.js';
import { statusError } from './status.js';
import type { Table, TableQuery, TableRow, TableStream } from './table.js';
import { readTable } from './table-answer.js';
import { readTableForm, readTableList } from './table-pages.js';
import type { TableDialect, TableField } from './table-requests.js';
import { difference, quoted, rowOf } from './table-words.js';

export interface TableOptions {
  readonly signal?: AbortSignal;
}

export interface TableReadOptions extends TableOptions {
  /** @default 'POST' */
  readonly method?: 'GET' | 'POST';
  /** Bytes; a longer answer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number;
}

/** Any form can be read; JSON carries every text as it is. */
const ACCEPT = 'application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.8, */*;q=0.1';
/** Names of tables, keys and columns are not longer, in UTF-16 code units. */
const LONGEST_NAME = 500;
/** Up to so many rows are looked up one by one; more in one pass over the whole table. */
const FEW_ROWS = 16;
/** Rows that one request deletes. */
const DELETED_AT_ONCE = 100;
/** The answer to a change proves nothing; so many bytes of it are read, to keep the connection. */
const UNREAD_BYTES = 64 * 1024;
const KEY_TRIES = 3;

/**
 * The tables of a peer.
 *
 * Whatever changes a table is read back, and returns what was seen then; PEER_NOT_DONE where that is not what was
 * asked for. Names, keys and columns are never made up or defaulted.
 *
 * @throws PeerError
 * @throws TypeError for a name, key or column that no peer can have: empty, longer than 500, not well-formed, a key
 *   that ends with NUL
 */
export class PeerTables {
  readonly #asking: Asking;
  readonly #dialectOf: (signal: AbortSignal | undefined) => Promise<TableDialect>;
  readonly #clock: Clock;

  constructor(
    asking: Asking,
    dialectOf: (signal: AbortSignal | undefined) => Promise<TableDialect>,
    clock: Clock,
  ) {
    this.#asking = asking;
    this.#dialectOf = dialectOf;
    this.#clock = clock;
  }

  /** Bytes of the longest key that rows of this peer can have; undefined where it has no limit that is known. */
  async maxKeyBytes({ signal }: TableOptions = {}): Promise<number | undefined> {
    return (await this.#dialectOf(signal)).maxKeyBytes;
  }

  /** The names of all tables, in the peer's order. */
  async list({ signal }: TableOptions = {}): Promise<readonly string[]> {
    const dialect = await this.#dialectOf(signal);
    const answer = await this.#asking.ask(await this.#page(dialect, dialect.listFields(), signal));
    const error = statusError(answer);
    if (error !== undefined) throw error;
    return readTableList(answer);
  }

  /**
   * Hands a table to `use` while it comes in; undefined where there is none of this name. An answer that is cut short
   * or cannot be read throws PEER_ANSWER, also in the middle.
   */
  async stream<T>(
    query: TableQuery,
    use: (table: TableStream) => Promise<T>,
    options: TableReadOptions = {},
  ): Promise<T | undefined> {
    checkName('table', query.table);
    return await this.#read(await this.#dialectOf(options.signal), query, undefined, use, options);
  }

  /** A whole table, held in memory; undefined where there is none of this name. */
  read(query: TableQuery, options: TableReadOptions = {}): Promise<Table | undefined> {
    return this.stream(query, whole, options);
  }

  /** What the peer's editor asks for when a row is added; undefined where there is no such table. */
  async form(
    table: string,
    { signal }: TableOptions = {},
  ): Promise<{ readonly columns: readonly string[] } | undefined> {
    checkName('table', table);
    const dialect = await this.#dialectOf(signal);
    const fields = dialect.formFields(table);
    if (fields === undefined) {
      const shown = await this.read({ table, count: 1 }, signal === undefined ? {} : { signal });
      return shown && { columns: shown.columns };
    }
    const answer = await this.#asking.ask(await this.#page(dialect, fields, signal));
    if (answer.status === 404) return undefined;
    const error = statusError(answer);
    if (error !== undefined) throw error;
    return { columns: readTableForm(answer) };
  }

  /**
   * Creates rows, or changes the cells that are given of rows that exist; the others stay. The table need not exist.
   *
   * @returns the rows as they were seen afterwards, each once, in the order in which they were given
   * @throws PeerError PEER_NOT_DONE when a row is not seen as it was asked for; those before it may have been changed
   */
  async set(
    table: string,
    rows: readonly TableRow[],
    { signal }: TableOptions = {},
  ): Promise<readonly TableRow[]> {
    checkName('table', table);
    const asked = rows.map(checkedRow);
    const dialect = await this.#dialectOf(signal);
    for (const { pk } of asked) this.#refuseLongKey(dialect, pk);
    for (const row of asked) await this.#change(dialect, dialect.commitFields(table, row), signal);
    const merged = mergedByKey(asked);
    const seen = await this.#lookUp(dialect, table, [...merged.keys()], signal);
    return [...merged].map(([pk, cells]) => this.#checkSeen(dialect, table, pk, cells, seen?.get(pk)));
  }

  /**
   * Adds a row under a new key: 12 of `0-9a-z`, which sort by time.
   *
   * @returns the row as it was seen afterwards
   */
  async add(
    table: string,
    cells: ReadonlyMap<string, string>,
    options: TableOptions = {},
  ): Promise<TableRow> {
    checkName('table', table);
    const pk = await this.#newKey(await this.#dialectOf(options.signal), table, options.signal);
    const [row] = await this.set(table, [{ pk, cells }], options);
    return row ?? { pk, cells: new Map() };
  }

  /**
   * Deletes the rows with exactly these keys; one that is not there counts as deleted.
   *
   * @returns the keys, each once: none of them was seen afterwards
   * @throws PeerError PEER_NOT_DONE when one is still there
   * @throws TypeError without keys
   */
  async deleteRows(
    table: string,
    keys: readonly string[],
    { signal }: TableOptions = {},
  ): Promise<readonly string[]> {
    checkName('table', table);
    if (keys.length === 0) throw new TypeError('deleteRows needs the keys of the rows');
    for (const pk of keys) checkKey(pk);
    const dialect = await this.#dialectOf(signal);
    for (const pk of keys) this.#refuseLongKey(dialect, pk);
    const gone = [...new Set(keys)];
    for (let at = 0; at < gone.length; at += DELETED_AT_ONCE) {
      const some = gone.slice(at, at + DELETED_AT_ONCE);
      await this.#change(dialect, dialect.deleteRowsFields(table, some), signal);
    }
    const seen = await this.#lookUp(dialect, table, gone, signal);
    if (seen === undefined) await this.#checkDropped(dialect, table, signal);
    const left = gone.filter((pk) => seen?.has(pk));
    if (left.length > 0) {
      const more = left.length > 1 ? ` and ${left.length - 1} more` : '';
      throw this.#notDone(
        dialect,
        `was told to delete ${rowOf(table, left[0] ?? '')}${more}, and still shows it`,
      );
    }
    return gone;
  }

  /**
   * Deletes a whole table.
   *
   * @returns the names of the tables that are left
   * @throws PeerError PEER_NOT_DONE when it is still among them
   */
  async drop(table: string, { signal }: TableOptions = {}): Promise<readonly string[]> {
    checkName('table', table);
    const dialect = await this.#dialectOf(signal);
    await this.#change(dialect, dialect.dropFields(table), signal);
    return this.#checkDropped(dialect, table, signal);
  }

  async #checkDropped(
    dialect: TableDialect,
    table: string,
    signal: AbortSignal | undefined,
  ): Promise<readonly string[]> {
    const left = await this.list(signal === undefined ? {} : { signal });
    if (left.includes(table)) throw this.#notDone(dialect, `still lists the table ${quoted(table)}`);
    return left;
  }

  async #read<T>(
    dialect: TableDialect,
    query: TableQuery,
    pk: string | undefined,
    use: (table: TableStream) => Promise<T>,
    { method = 'POST', maxBytes, signal }: TableReadOptions,
  ): Promise<T | undefined> {
    const fields = dialect.readFields(query, pk);
    const path = dialect.readPath;
    const sent =
      method === 'GET'
        ? {
            path: `${path}?${new URLSearchParams(fields.map(({ name, value }): [string, string] => [name, value]))}`,
          }
        : { path, body: await formBody(fields, this.#asking.url(path)) };
    return this.#asking.stream(
      { counted: 'other', method, isProtected: true, accept: ACCEPT, signal, maxBytes, ...sent },
      async (answer) => {
        const table = await readTable(answer, query.table, dialect.hasRawKeys);
        return table === undefined ? undefined : use(table);
      },
    );
  }

  async #page(
    { pagePath: path }: TableDialect,
    fields: readonly TableField[],
    signal: AbortSignal | undefined,
  ): Promise<PeerRequest> {
    const body = await formBody(fields, this.#asking.url(path));
    return { counted: 'other', method: 'POST', path, isProtected: true, accept: ACCEPT, body, signal };
  }

  /** Asks for a change. What is answered to it proves nothing, as long as it is no error. */
  async #change(
    { changePath: path, changeBody }: TableDialect,
    fields: readonly TableField[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const body = await changeBody(fields, this.#asking.url(path));
    const maxBytes = Number.MAX_SAFE_INTEGER;
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

  /** The rows of these keys, as far as they are there; undefined where the table is not. */
  async #lookUp(
    dialect: TableDialect,
    table: string,
    keys: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, TableRow> | undefined> {
    const wanted = new Set(keys);
    const seen = new Map<string, TableRow>();
    const options = { maxBytes: Number.MAX_SAFE_INTEGER, ...(signal === undefined ? {} : { signal }) };
    const asked = dialect.readsOneRow && keys.length <= FEW_ROWS ? keys : [undefined];
    for (const pk of asked) {
      // A peer that gives all rows whichever is asked for has shown it already.
      if (pk !== undefined && seen.has(pk)) continue;
      const collected = ({ rows }: TableStream) => collect(rows, wanted, seen);
      const isThere = await this.#read(dialect, { table }, pk, collected, options);
      if (!isThere) return undefined;
    }
    return seen;
  }

  async #newKey(dialect: TableDialect, table: string, signal: AbortSignal | undefined): Promise<string> {
    for (let tries = 0; tries < KEY_TRIES; tries += 1) {
      const pk = newKey(this.#clock.now());
      const seen = await this.#lookUp(dialect, table, [pk], signal);
      if (!seen?.has(pk)) return pk;
    }
    throw this.#notDone(dialect, `shows a row under every new key of the table ${quoted(table)}`);
  }

  #checkSeen(
    dialect: TableDialect,
    table: string,
    pk: string,
    cells: ReadonlyMap<string, string>,
    seen: TableRow | undefined,
  ): TableRow {
    if (seen === undefined)
      throw this.#notDone(dialect, `was told to set ${rowOf(table, pk)}, and does not show that row`);
    for (const [column, value] of cells) {
      const shown = seen.cells.get(column) ?? '';
      if (shown === value) continue;
      const where = `column ${quoted(column)} of ${rowOf(table, pk)}`;
      throw this.#notDone(dialect, `was told to set ${where} to ${difference(value, shown)}`);
    }
    return seen;
  }

  /** Cut by the peer, it would be another row. */
  #refuseLongKey({ maxKeyBytes = Number.POSITIVE_INFINITY, changePath }: TableDialect, pk: string): void {
    const bytes = Buffer.byteLength(pk);
    if (bytes <= maxKeyBytes) return;
    throw new PeerError('PEER_KEY', {
      url: this.#asking.url(changePath),
      what: `was not asked: the key ${quoted(pk)} has ${bytes} bytes, and keys of this peer have at most ${maxKeyBytes}`,
      delivered: 'no',
    });
  }

  #notDone({ changePath }: TableDialect, what: string): PeerError {
    const url = this.#asking.url(changePath);
    return new PeerError('PEER_NOT_DONE', { url, what, delivered: 'yes' });
  }
}

async function whole({ name, columns, rows }: TableStream): Promise<Table> {
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

function checkedRow({ pk, cells }: TableRow): TableRow {
  checkKey(pk);
  for (const column of cells.keys()) checkName('column', column);
  return { pk, cells: new Map([...cells].map(([column, value]) => [column, wellFormed(value)])) };
}

function checkName(what: 'table' | 'key' | 'column', name: string): void {
  if (name.length > 0 && name.length <= LONGEST_NAME && wellFormed(name) === name) return;
  throw new TypeError(
    `a ${what} has 1 to ${LONGEST_NAME} well-formed characters, not ${name.length}: ${quoted(name)}`,
  );
}

/** What stands behind a key in NULs is taken for padding when it is read back: it would be another row's key. */
function checkKey(pk: string): void {
  checkName('key', pk);
  if (pk.endsWith('\0')) throw new TypeError(`a key does not end with NUL: ${quoted(pk)}`);
}

function mergedByKey(rows: readonly TableRow[]): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const merged = new Map<string, Map<string, string>>();
  for (const { pk, cells } of rows) merged.set(pk, new Map([...(merged.get(pk) ?? []), ...cells]));
  return merged;
}

/** Time in ms, then chance. */
function newKey(now: number): string {
  const time = now.toString(36).padStart(8, '0').slice(-8);
  return (
    time +
    randomInt(36 ** 4)
      .toString(36)
      .padStart(4, '0')
  );
}
