import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { Refusal } from './answer.js';
import { bytes, type Database, int, type Row } from './database.js';

/** A table of the peer, without its rows. */
export interface StoredTable {
  /** Never that of another table, also after this one is gone. */
  readonly id: number;
  readonly name: string;
  /** How many rows it has. */
  readonly rows: number;
}

export interface StoredRow {
  readonly pk: string;
  /** Column and value, in the order of the columns; empty cells are not there. */
  readonly cells: readonly (readonly [column: string, value: string])[];
}

/** Which rows of a table. */
export interface RowChoice {
  readonly pk?: string | undefined;
  /** Only rows behind this key. */
  readonly after?: string | undefined;
  /** Only rows with this in a cell or in the key, whatever its case. */
  readonly search?: string | undefined;
  readonly count?: number | undefined;
}

export interface TableStoreOptions {
  readonly database: Database;
  readonly clock: Clock;
  /** Bytes of all cells of a row together. */
  readonly maxRow: number;
}

export const LONGEST_NAME = 500;
export const MOST_COLUMNS = 1_000;
/** Rows are read in groups of about so many bytes or milliseconds. */
const GROUP_BYTES = 262_144;
const SLICE_MS = 5;
/** Generated keys have so many digits, as YaCy's have. */
const KEY_DIGITS = 12;

const ROWS = `SELECT pk, cells FROM table_rows WHERE in_table = ? AND pk > ? ORDER BY pk`;
const ROW = `SELECT pk, cells FROM table_rows WHERE in_table = ? AND pk = ?`;

/**
 * The tables: rows by key, each a record of its own, sorted by the code points of the keys.
 *
 * A table comes into being with its first row and a column with the first row that names it; both stay without rows. Names and
 * texts are kept as bytes, because this SQLite ends a text at NUL; the cells of a row are one JSON list of column
 * number and value in turns. Of a table that is dropped the rows are left to TableRefuse.
 */
export class TableStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #maxRow: number;

  constructor({ database, clock, maxRow }: TableStoreOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#maxRow = maxRow;
  }

  /** All tables, sorted by name. */
  list(): StoredTable[] {
    return this.#database.rows('SELECT * FROM tables ORDER BY name').map(toTable);
  }

  find(name: string): StoredTable | undefined {
    const row = this.#database.row('SELECT * FROM tables WHERE name = ?', Buffer.from(name));
    return row && toTable(row);
  }

  /** Its columns, in the order in which they came. */
  columns(table: StoredTable): string[] {
    return [...this.#columnNames(table.id).values()];
  }

  row(table: StoredTable, key: string): StoredRow | undefined {
    const found = this.#database.row(ROW, table.id, Buffer.from(key));
    return found && new RowReader(() => this.#columnNames(table.id)).read(found);
  }

  /**
   * Gives rows in groups, each in a slice of time; a group may be empty. Between two groups the table may change: each row is
   * shown as it is when its turn comes.
   *
   * @throws Error where the table was dropped meanwhile
   */
  *read(table: StoredTable, choice: RowChoice): Generator<StoredRow[]> {
    const needle = choice.search?.toLowerCase();
    let left = choice.count ?? Number.POSITIVE_INFINITY;
    if (choice.pk !== undefined) {
      const row = this.row(table, choice.pk);
      yield row && left > 0 && matches(row, needle) ? [row] : [];
      return;
    }
    const reader = new RowReader(() => this.#columnNames(table.id));
    let last: Buffer = Buffer.from(choice.after ?? '');
    for (let more = true; more && left > 0; ) {
      const group: StoredRow[] = [];
      const end = this.#clock.now() + SLICE_MS;
      let size = 0;
      more = false;
      if (!this.#database.row('SELECT 1 FROM tables WHERE id = ?', table.id))
        throw new Error('the table was deleted while it was read');
      this.#database.scan(ROWS, [table.id, last], (found) => {
        const row = reader.read(found);
        last = bytes(found, 'pk');
        size += bytes(found, 'cells').length;
        if (matches(row, needle)) {
          group.push(row);
          left -= 1;
        }
        more = size > GROUP_BYTES || this.#clock.now() > end;
        return left > 0 && !more;
      });
      yield group;
    }
  }

  /**
   * Makes a row, or merges cells into the one that has this key: the cells that are not given stay. It is on disk when
   * this returns. Without a key the next free number is taken.
   *
   * @throws Refusal 400, 413
   */
  commit(name: string, key: string | undefined, cells: ReadonlyMap<string, string>): StoredRow {
    return this.#database.transaction(() => {
      const table = this.find(name) ?? this.#create(name);
      const columns = this.#withColumns(table, cells.keys());
      const pk = Buffer.from(key ?? this.#nextKey(table));
      const before = this.#database.row(ROW, table.id, pk);
      const values = before ? decode(bytes(before, 'cells')) : new Map<number, string>();
      for (const [column, value] of cells) {
        const id = columns.get(column) ?? 0;
        if (value === '') values.delete(id);
        else values.set(id, value);
      }
      const encoded = encode(values);
      if (encoded.length > this.#maxRow) throw new Refusal(413, `A row holds at most ${this.#maxRow} bytes.`);
      this.#database.run(
        `INSERT INTO table_rows VALUES (?, ?, ?) ON CONFLICT (in_table, pk) DO UPDATE SET cells = excluded.cells`,
        table.id,
        pk,
        encoded,
      );
      if (!before) this.#database.run('UPDATE tables SET rows = rows + 1 WHERE id = ?', table.id);
      return new RowReader(() => this.#columnNames(table.id)).read({ pk, cells: encoded });
    });
  }

  /** Deletes one row, within the caller's transaction; whether it was there. */
  deleteRow(table: StoredTable, key: string): boolean {
    const pk = Buffer.from(key);
    if (!this.#database.row('SELECT 1 FROM table_rows WHERE in_table = ? AND pk = ?', table.id, pk))
      return false;
    this.#database.run('DELETE FROM table_rows WHERE in_table = ? AND pk = ?', table.id, pk);
    this.#database.run('UPDATE tables SET rows = rows - 1 WHERE id = ?', table.id);
    return true;
  }

  /** Takes a table away; it is gone from the disk's view when this returns, and its rows are refuse. */
  drop(table: StoredTable): void {
    this.#database.transaction(() => {
      this.#database.run('DELETE FROM tables WHERE id = ?', table.id);
      this.#database.run('DELETE FROM table_columns WHERE in_table = ?', table.id);
      this.#database.run('INSERT INTO table_refuse VALUES (?)', table.id);
    });
  }

  #create(name: string): StoredTable {
    const id = this.#database.run(
      'INSERT INTO tables (name, rows, last_key) VALUES (?, 0, 0)',
      Buffer.from(name),
    );
    return { id, name, rows: 0 };
  }

  #columnNames(id: number): Map<number, string> {
    const rows = this.#database.rows('SELECT id, name FROM table_columns WHERE in_table = ? ORDER BY id', id);
    return new Map(rows.map((row) => [int(row, 'id'), bytes(row, 'name').toString()]));
  }

  #withColumns(table: StoredTable, wanted: Iterable<string>): ReadonlyMap<string, number> {
    const known = new Map([...this.#columnNames(table.id)].map(([id, name]) => [name, id]));
    for (const name of wanted) {
      if (known.has(name)) continue;
      if (known.size >= MOST_COLUMNS) throw new Refusal(400, `A table has at most ${MOST_COLUMNS} columns.`);
      const sql = 'INSERT INTO table_columns (in_table, name) VALUES (?, ?)';
      known.set(name, this.#database.run(sql, table.id, Buffer.from(name)));
    }
    return known;
  }

  #nextKey(table: StoredTable): string {
    let number = int(this.#database.row('SELECT last_key FROM tables WHERE id = ?', table.id), 'last_key');
    let key: string;
    do {
      number += 1;
      key = String(number).padStart(KEY_DIGITS, '0');
    } while (this.#database.row(ROW, table.id, Buffer.from(key)));
    this.#database.run('UPDATE tables SET last_key = ? WHERE id = ?', number, table.id);
    return key;
  }
}

/** Turns records into rows; columns that came after it began are looked up when they are met. */
class RowReader {
  readonly #look: () => Map<number, string>;
  #names: Map<number, string>;

  constructor(look: () => Map<number, string>) {
    this.#look = look;
    this.#names = look();
  }

  read(row: Row): StoredRow {
    const list = JSON.parse(bytes(row, 'cells').toString()) as (number | string)[];
    const cells: [string, string][] = [];
    for (let i = 0; i + 1 < list.length; i += 2)
      cells.push([this.#name(list[i] as number), list[i + 1] as string]);
    return { pk: bytes(row, 'pk').toString(), cells };
  }

  #name(id: number): string {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    this.#names = this.#look();
    return this.#names.get(id) ?? '';
  }
}

/** Sorted by column number, which is the order of the columns. */
function encode(values: ReadonlyMap<number, string>): Buffer {
  return Buffer.from(JSON.stringify([...values].sort(([a], [b]) => a - b).flat()));
}

function decode(cells: Buffer): Map<number, string> {
  const list = JSON.parse(cells.toString()) as (number | string)[];
  const values = new Map<number, string>();
  for (let i = 0; i + 1 < list.length; i += 2) values.set(list[i] as number, list[i + 1] as string);
  return values;
}

function matches(row: StoredRow, needle: string | undefined): boolean {
  if (needle === undefined || needle === '') return true;
  return (
    row.pk.toLowerCase().includes(needle) ||
    row.cells.some(([, value]) => value.toLowerCase().includes(needle))
  );
}

function toTable(row: Row): StoredTable {
  return { id: int(row, 'id'), name: bytes(row, 'name').toString(), rows: int(row, 'rows') };
}

export interface TableRefuseOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
}

const REFUSE_SLICE_MS = 10;
/** Rows of one statement; a slice is not cut within one. */
const BITE = 50;

/**
 * Clears the rows of tables that were dropped away, slice by slice, so that dropping a large table stops nobody.
 *
 * It is idle until `notify`, works until nothing is left, and is idle again. What it did not get to, because of a stop, a crash or
 * a failing disk, is left for the next `notify`, which also comes at the start.
 */
export class TableRefuse {
  readonly #options: TableRefuseOptions;
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(options: TableRefuseOptions) {
    this.#options = options;
  }

  notify(): void {
    if (this.#stopped) return;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Ends after the slice at hand. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    try {
      do await nextTurn();
      while (!this.#stopped && this.#slice());
    } catch (error) {
      const why = messageOf(error);
      this.#options.log.error({ err: why }, `The rows of a deleted table cannot be cleared away now: ${why}`);
    }
  }

  /** Whether there is more. */
  #slice(): boolean {
    const { database, clock } = this.#options;
    const row = database.row('SELECT in_table FROM table_refuse LIMIT 1');
    if (!row) return false;
    const id = int(row, 'in_table');
    const end = clock.now() + REFUSE_SLICE_MS;
    const bite = `DELETE FROM table_rows WHERE rowid IN (SELECT rowid FROM table_rows WHERE in_table = ? LIMIT ${BITE})`;
    database.transaction(() => {
      do {
        database.run(bite, id);
        if (database.row('SELECT 1 FROM table_rows WHERE in_table = ? LIMIT 1', id)) continue;
        database.run('DELETE FROM table_refuse WHERE in_table = ?', id);
        return;
      } while (clock.now() < end);
    });
    return true;
  }
}
