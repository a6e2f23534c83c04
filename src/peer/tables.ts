import type { Clock } from '../lib/clock.js';
import { newRowKey } from '../lib/row-key.js';
import {
  decoded,
  EMPTY_LIST,
  type HttpAnswer,
  parseHtml,
  readAnswer,
  readable,
  succeeded,
  unusable,
  within,
} from './answer.js';
import type { TableDialect } from './dialect.js';
import { PeerError, quoted } from './errors.js';
import { type Body, type FormField, fieldsOf, formBody } from './form.js';
import type { Http, PeerRequest } from './http.js';
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
  /** Bytes; a longer answer is refused. @default the client's maxAnswer */
  readonly maxBytes?: number | undefined;
}

/** Up to so many rows are looked up one by one; more in one pass over the whole table. */
const FEW_ROWS = 16;
/** Rows that one request deletes. */
const DELETED_AT_ONCE = 100;
/** The answer to a change proves nothing; so many bytes of it are read, to keep the connection. */
const UNREAD_BYTES = 64 * 1024;

/**
 * The tables of a peer.
 *
 * Whatever changes a table is read back, and returns what was seen then; PEER_NOT_DONE where that
 * is not what was asked for. Names, keys and columns are never made up or defaulted.
 *
 * @throws PeerError
 * @throws TypeError for a name, key or column that no peer can have: empty, longer than 500, not
 *   well-formed, a key that ends with NUL
 */
export class PeerTables {
  constructor(
    private readonly http: Http,
    private readonly dialectOf: (signal: AbortSignal | undefined) => Promise<TableDialect>,
    private readonly clock: Clock,
  ) {}

  /**
   * Bytes of the longest key that rows of this peer can have; undefined where it has no limit that
   * is known.
   */
  async maxKeyBytes({ signal }: TableOptions = {}): Promise<number | undefined> {
    return (await this.dialectOf(signal)).keyBytes;
  }

  /** The names of all tables, in the peer's order. */
  async list({ signal }: TableOptions = {}): Promise<readonly string[]> {
    const { pagePath: path } = await this.dialectOf(signal);
    const body = await formBody([], this.http.url(path));
    const answer = succeeded(await this.http.ask(requestOf('POST', path, body, signal)));
    const isPage = decoded(answer.body).trimStart().startsWith('<');
    const names = isPage ? readable(answer, () => choicesOn(answer)) : listedIn(answer);
    if (names === undefined) throw unusable(answer, 'does not show the list of its tables');
    return [...new Set(names)];
  }

  /**
   * Hands a table to `use` while it comes in; undefined where there is none of this name. An answer
   * that is cut short or cannot be read throws PEER_ANSWER, also in the middle.
   */
  async stream<T>(
    query: TableQuery,
    use: (table: TableStream) => Promise<T>,
    options: TableReadOptions = {},
  ): Promise<T | undefined> {
    checkName('table', query.table);
    return await this.#read(query, undefined, use, options);
  }

  /** A whole table, held in memory; undefined where there is none of this name. */
  read(query: TableQuery, options: TableReadOptions = {}): Promise<Table | undefined> {
    return this.stream(query, whole, options);
  }

  /**
   * Creates rows, or changes the cells that are given of rows that exist; the others stay. The
   * table need not exist.
   *
   * @returns the rows as they were seen afterwards, each once, in the order in which they were
   *   given
   * @throws PeerError PEER_NOT_DONE when a row is not seen as it was asked for; those before it may
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
      // The answer may show the table, however large: `count` keeps it small.
      const row = fieldsOf({ table, commitrow: dialect.actions.commitrow, count: 1, pk });
      const columns = [...cells].map(([column, value]) => ({ name: `col_${column}`, value }));
      await this.#change([...row, ...columns], signal);
      merged.set(pk, new Map([...(merged.get(pk) ?? []), ...cells]));
    }
    const seen = await this.#lookUp(table, [...merged.keys()], signal);
    return [...merged].map(([pk, cells]) => {
      const row = seen?.get(pk);
      const told = `of the table ${quoted(table)}`;
      if (row === undefined)
        throw this.#notDone(
          dialect,
          `was told to set row ${quoted(pk)} ${told}, and does not show that row`,
        );
      for (const [column, value] of cells) {
        const shown = row.cells.get(column) ?? '';
        if (shown === value) continue;
        const where = `column ${quoted(column)} of row ${quoted(pk)} ${told}`;
        throw this.#notDone(dialect, `was told to set ${where} to ${difference(value, shown)}`);
      }
      return row;
    });
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
    const pk = newRowKey(this.clock.now());
    if ((await this.#lookUp(table, [pk], options.signal))?.has(pk)) {
      const dialect = await this.dialectOf(options.signal);
      throw this.#notDone(dialect, `shows a row under a new key of the table ${quoted(table)}`);
    }
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
    const dialect = await this.#checkedDialect(keys, signal);
    const gone = [...new Set(keys)];
    for (let at = 0; at < gone.length; at += DELETED_AT_ONCE) {
      const some = gone.slice(at, at + DELETED_AT_ONCE);
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
    throw this.#notDone(dialect, `was told to delete ${what}, and still shows it`);
  }

  /**
   * Deletes a whole table.
   *
   * @returns the names of the tables that are left
   * @throws PeerError PEER_NOT_DONE when it is still among them
   */
  async drop(table: string, { signal }: TableOptions = {}): Promise<readonly string[]> {
    checkName('table', table);
    const { actions } = await this.dialectOf(signal);
    await this.#change(fieldsOf({ table, deletetable: actions.deletetable }), signal);
    return await this.#checkDropped(table, signal);
  }

  /** @returns the names of the tables that are left */
  async #checkDropped(table: string, signal: AbortSignal | undefined): Promise<readonly string[]> {
    const left = await this.list({ signal });
    if (!left.includes(table)) return left;
    throw this.#notDone(await this.dialectOf(signal), `still lists the table ${quoted(table)}`);
  }

  /** The rows of these keys, as far as they are there; undefined where the table is not. */
  async #lookUp(
    table: string,
    keys: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, TableRow> | undefined> {
    const wanted = new Set(keys);
    const seen = new Map<string, TableRow>();
    const { readsOneRow } = await this.dialectOf(signal);
    const asked = readsOneRow && keys.length <= FEW_ROWS ? keys : [undefined];
    const collect = async ({ rows }: TableStream) => {
      for await (const group of rows) {
        for (const row of group) if (wanted.has(row.pk)) seen.set(row.pk, row);
        if (seen.size === wanted.size) break;
      }
      return true;
    };
    for (const pk of asked) {
      // A peer that gives all rows whichever is asked for has shown it already.
      if (pk !== undefined && seen.has(pk)) continue;
      const isThere = await this.#read({ table }, pk, collect, {
        signal,
        maxBytes: Number.MAX_SAFE_INTEGER,
      });
      if (!isThere) return undefined;
    }
    return seen;
  }

  /** @param pk only the row with this key; a peer may give others too */
  async #read<T>(
    { table, count, search }: TableQuery,
    pk: string | undefined,
    use: (table: TableStream) => Promise<T>,
    { method = 'POST', maxBytes, signal }: TableReadOptions,
  ): Promise<T | undefined> {
    const { readPath, countOfAll, keyBytes } = await this.dialectOf(signal);
    const fields = fieldsOf({ table, pk, count: count ?? countOfAll, search });
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

  /** Asks for a change. What is answered to it proves nothing, as long as it is no error. */
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
          if (bytes > UNREAD_BYTES) break;
        }
        return true;
      },
    );
    if (isTaken) return;
    const what = 'has no such table or no such page (404)';
    throw new PeerError('PEER_REFUSED', { url, what, status: 404, delivered: 'yes' });
  }

  /** @throws PeerError PEER_KEY for a key that the peer would cut: it would be another row */
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

  /** The error of a change that is not seen afterwards. */
  #notDone({ changePath }: TableDialect, what: string): PeerError {
    const url = this.http.url(changePath);
    return new PeerError('PEER_NOT_DONE', { url, what, delivered: 'yes' });
  }
}

/** A table that comes in, held in memory. */
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

function requestOf(
  method: 'GET' | 'POST',
  path: string,
  body: Body | undefined,
  signal: AbortSignal | undefined,
): PeerRequest {
  return { counted: 'other', method, path, isProtected: true, body, signal };
}

/** The tables that a page offers to choose from, as YaCy's does. */
function choicesOn({ body }: HttpAnswer): readonly string[] | undefined {
  const lists = within(parseHtml(decoded(body)), ['select']).filter(
    ({ attribs }) => attribs.name === 'table',
  );
  if (lists.length === 0) return undefined;
  const choices = lists.flatMap(({ children }) => within(children, ['option']));
  return choices
    .map(({ attribs }) => (attribs.value ?? '').toWellFormed())
    .filter((name) => name !== '');
}

/** The tables that an answer in JSON lists. */
function listedIn(answer: HttpAnswer): readonly string[] | undefined {
  const fields = readAnswer(answer).record.fields.filter(({ name }) => name === 'tables');
  if (fields.length === 0) return undefined;
  return fields.map(({ value }) => value).filter((value) => value !== '' && value !== EMPTY_LIST);
}

/** Names of tables, keys and columns are not longer, in UTF-16 code units. */
const LONGEST_NAME = 500;

function checkName(what: 'table' | 'key' | 'column', name: string): void {
  if (name.length > 0 && name.length <= LONGEST_NAME && name.isWellFormed()) return;
  throw new TypeError(
    `a ${what} has 1 to ${LONGEST_NAME} well-formed characters, not ${name.length}: ${quoted(name)}`,
  );
}

/**
 * What stands behind a key in NULs is taken for padding when it is read back: it would be another
 * row's key.
 */
function checkKey(pk: string): void {
  checkName('key', pk);
  if (pk.endsWith('\0')) throw new TypeError(`a key does not end with NUL: ${quoted(pk)}`);
}

/** A row as it can travel: its cells well-formed. */
function checkedRow({ pk, cells }: TableRow): TableRow {
  checkKey(pk);
  for (const column of cells.keys()) checkName('column', column);
  return {
    pk,
    cells: new Map([...cells].map(([column, value]) => [column, value.toWellFormed()])),
  };
}

/** Two texts, from just before where they part. */
function difference(asked: string, shown: string): string {
  let at = 0;
  while (at < asked.length && asked[at] === shown[at]) at += 1;
  const from = Math.max(0, at - 25);
  const place = from === 0 ? '' : ` (from character ${from} on)`;
  return `${quoted(asked.slice(from))}, and shows ${quoted(shown.slice(from))}${place}`;
}
