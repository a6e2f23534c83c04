import type { Clock } from '../lib/clock.js';
import type { Asking } from './asking.js';
import type { Table, TableQuery, TableRow, TableStream } from './table.js';
import { TableAsking, whole } from './table-asking.js';
import { checkedRow, checkKey, checkName, newKey } from './table-names.js';
import type { TableDialect } from './table-requests.js';
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
    return (await this.#ask(signal)).list();
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
    return await (await this.#ask(options.signal)).read(query, use, options);
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
    const columns = await (await this.#ask(signal)).columns(table);
    return columns && { columns };
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
    const asking = await this.#ask(signal);
    for (const { pk } of asked) asking.refuseLongKey(pk);
    for (const row of asked) await asking.commit(table, row);
    const merged = mergedByKey(asked);
    const seen = await asking.lookUp(table, [...merged.keys()]);
    return [...merged].map(([pk, cells]) => checkSeen(asking, table, pk, cells, seen?.get(pk)));
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
    const pk = await this.#newKey(await this.#ask(options.signal), table);
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
    const asking = await this.#ask(signal);
    for (const pk of keys) asking.refuseLongKey(pk);
    const gone = [...new Set(keys)];
    await asking.deleteRows(table, gone);
    const seen = await asking.lookUp(table, gone);
    if (seen === undefined) await checkDropped(asking, table);
    const left = gone.filter((pk) => seen?.has(pk));
    if (left.length > 0) {
      const more = left.length > 1 ? ` and ${left.length - 1} more` : '';
      const what = `${rowOf(table, left[0] ?? '')}${more}`;
      throw asking.notDone(`was told to delete ${what}, and still shows it`);
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
    const asking = await this.#ask(signal);
    await asking.drop(table);
    return checkDropped(asking, table);
  }

  async #ask(signal: AbortSignal | undefined): Promise<TableAsking> {
    return new TableAsking(this.#asking, await this.#dialectOf(signal), signal);
  }

  async #newKey(asking: TableAsking, table: string): Promise<string> {
    for (let tries = 0; tries < KEY_TRIES; tries += 1) {
      const pk = newKey(this.#clock.now());
      const seen = await asking.lookUp(table, [pk]);
      if (!seen?.has(pk)) return pk;
    }
    throw asking.notDone(`shows a row under every new key of the table ${quoted(table)}`);
  }
}

/** @returns the names of the tables that are left */
async function checkDropped(asking: TableAsking, table: string): Promise<readonly string[]> {
  const left = await asking.list();
  if (left.includes(table)) throw asking.notDone(`still lists the table ${quoted(table)}`);
  return left;
}

function checkSeen(
  asking: TableAsking,
  table: string,
  pk: string,
  cells: ReadonlyMap<string, string>,
  seen: TableRow | undefined,
): TableRow {
  if (seen === undefined)
    throw asking.notDone(`was told to set ${rowOf(table, pk)}, and does not show that row`);
  for (const [column, value] of cells) {
    const shown = seen.cells.get(column) ?? '';
    if (shown === value) continue;
    const where = `column ${quoted(column)} of ${rowOf(table, pk)}`;
    throw asking.notDone(`was told to set ${where} to ${difference(value, shown)}`);
  }
  return seen;
}

function mergedByKey(rows: readonly TableRow[]): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const merged = new Map<string, Map<string, string>>();
  for (const { pk, cells } of rows) merged.set(pk, new Map([...(merged.get(pk) ?? []), ...cells]));
  return merged;
}
