import type { Clock } from '../lib/clock.js';
import { newRowKey } from '../lib/row-key.js';
import { inSlices, nextTurn, Yielder } from '../lib/slices.js';
import { bytes, type Database, int, type Row } from './database.js';
import { Refusal } from './form.js';

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

export const LONGEST_NAME = 500;
export const MOST_COLUMNS = 1_000;
/** The size of a group of rows, in bytes. A group also ends with its slice of time. */
const GROUP_BYTES = 262_144;
/** The rows that one transaction deletes. */
const DELETED_AT_ONCE = 100;

const ROWS = `SELECT pk, cells FROM table_rows WHERE in_table = ? AND pk > ? ORDER BY pk`;
const ROW = `SELECT pk, cells FROM table_rows WHERE in_table = ? AND pk = ?`;

/**
 * The tables: rows by key, each a record of its own, sorted by the code points of the keys.
 *
 * A table comes into being with its first row and a column with the first row that names it; both
 * stay without rows. Names and texts are kept as bytes, because this SQLite ends a text at NUL; the
 * cells of a row are one JSON list of column number and value in turns.
 */
export class TableStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #maxRow: number;

  /** @param maxRow bytes of all cells of a row together */
  constructor(database: Database, clock: Clock, maxRow: number) {
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

  /** Its columns by their numbers, in the order in which they came. */
  columns({ id }: StoredTable): Map<number, string> {
    const rows = this.#database.rows(
      'SELECT id, name FROM table_columns WHERE in_table = ? ORDER BY id',
      id,
    );
    return new Map(rows.map((row) => [int(row, 'id'), bytes(row, 'name').toString()]));
  }

  row(table: StoredTable, key: string): StoredRow | undefined {
    const found = this.#database.row(ROW, table.id, Buffer.from(key));
    return found && toRow(found, this.columns(table));
  }

  /**
   * Gives rows in groups, each in a slice of time; a group may be empty. Between two groups the
   * table may change: each row is shown as it is when its turn comes.
   *
   * @throws Error where the table was dropped meanwhile
   */
  *read(table: StoredTable, choice: RowChoice): Generator<StoredRow[]> {
    const { pk, search = '' } = choice;
    let left = choice.count ?? Number.POSITIVE_INFINITY;
    let last: Buffer = Buffer.from(choice.after ?? '');
    for (let more = true; more && left > 0; ) {
      const group: StoredRow[] = [];
      const slice = new Yielder(this.#clock);
      let size = 0;
      more = false;
      if (!this.#database.row('SELECT 1 FROM tables WHERE id = ?', table.id))
        throw new Error('the table was deleted while it was read');
      const columns = this.columns(table);
      const [sql, key] = pk === undefined ? [ROWS, last] : [ROW, Buffer.from(pk)];
      this.#database.scan(sql, [table.id, key], (found) => {
        const row = toRow(found, columns);
        last = bytes(found, 'pk');
        size += bytes(found, 'cells').length;
        if (matches(row, search.toLowerCase())) {
          group.push(row);
          left -= 1;
        }
        more = pk === undefined && (size > GROUP_BYTES || slice.isDue);
        return left > 0 && !more;
      });
      yield group;
    }
  }

  /**
   * Makes a row, or merges cells into the one that has this key: the cells that are not given stay.
   * It is on disk when this returns. Without a key it gets a new one, of the kind that `table add`
   * gives.
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
      if (encoded.length > this.#maxRow)
        throw new Refusal(413, `A row holds at most ${this.#maxRow} bytes.`);
      this.#database.run(
        `INSERT INTO table_rows VALUES (?, ?, ?) ON CONFLICT (in_table, pk) DO UPDATE SET cells = excluded.cells`,
        table.id,
        pk,
        encoded,
      );
      if (!before) this.#database.run('UPDATE tables SET rows = rows + 1 WHERE id = ?', table.id);
      return toRow({ pk, cells: encoded }, this.columns(table));
    });
  }

  /**
   * Deletes the rows with these keys, a bite after the other; returns the keys of those that were
   * there.
   */
  async deleteRows(name: string, keys: readonly string[]): Promise<string[]> {
    const deleted: string[] = [];
    for await (const slice of inSlices(keys, DELETED_AT_ONCE)) {
      this.#database.transaction(() => {
        const table = this.find(name);
        if (table) deleted.push(...slice.filter((key) => this.#deleteRow(table, key)));
      });
    }
    return deleted;
  }

  #deleteRow({ id }: StoredTable, key: string): boolean {
    const pk = Buffer.from(key);
    if (!this.#database.row('SELECT 1 FROM table_rows WHERE in_table = ? AND pk = ?', id, pk))
      return false;
    this.#database.run('DELETE FROM table_rows WHERE in_table = ? AND pk = ?', id, pk);
    this.#database.run('UPDATE tables SET rows = rows - 1 WHERE id = ?', id);
    return true;
  }

  /** Takes a table away; its rows are left to `clearDropped`. */
  drop({ id }: StoredTable): void {
    this.#database.transaction(() => {
      this.#database.run('DELETE FROM tables WHERE id = ?', id);
      this.#database.run('DELETE FROM table_columns WHERE in_table = ?', id);
      this.#database.run('INSERT INTO dropped_tables VALUES (?)', id);
    });
  }

  /**
   * Clears the rows of dropped tables away, slice by slice, so that dropping a large table stops
   * nobody. What a stop, a kill or a failing disk leaves is for the next call, which also comes at
   * the start.
   */
  async clearDropped(): Promise<void> {
    const bite = `DELETE FROM table_rows WHERE rowid IN (SELECT rowid FROM table_rows WHERE in_table = ? LIMIT ${DELETED_AT_ONCE})`;
    const next = () => this.#database.row('SELECT id FROM dropped_tables LIMIT 1');
    for (; this.#database.isOpen && next(); await nextTurn()) {
      const id = int(next(), 'id');
      const slice = new Yielder(this.#clock);
      this.#database.transaction(() => {
        do this.#database.run(bite, id);
        while (this.#hasRows(id) && !slice.isDue);
        if (!this.#hasRows(id)) this.#database.run('DELETE FROM dropped_tables WHERE id = ?', id);
      });
    }
  }

  #hasRows(id: number): boolean {
    return (
      this.#database.row('SELECT 1 FROM table_rows WHERE in_table = ? LIMIT 1', id) !== undefined
    );
  }

  #create(name: string): StoredTable {
    const id = this.#database.run(
      'INSERT INTO tables (name, rows) VALUES (?, 0)',
      Buffer.from(name),
    );
    return { id, name, rows: 0 };
  }

  #withColumns(table: StoredTable, wanted: Iterable<string>): ReadonlyMap<string, number> {
    const known = new Map([...this.columns(table)].map(([id, name]) => [name, id]));
    for (const name of wanted) {
      if (known.has(name)) continue;
      if (known.size >= MOST_COLUMNS)
        throw new Refusal(400, `A table has at most ${MOST_COLUMNS} columns.`);
      const sql = 'INSERT INTO table_columns (in_table, name) VALUES (?, ?)';
      known.set(name, this.#database.run(sql, table.id, Buffer.from(name)));
    }
    return known;
  }

  #nextKey(table: StoredTable): string {
    let key: string;
    do key = newRowKey(this.#clock.now());
    while (this.#database.row(ROW, table.id, Buffer.from(key)));
    return key;
  }
}

function toRow(row: Row, columns: ReadonlyMap<number, string>): StoredRow {
  const cells = [...decode(bytes(row, 'cells'))];
  return {
    pk: bytes(row, 'pk').toString(),
    cells: cells.map(([id, value]): [string, string] => [columns.get(id) ?? '', value]),
  };
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

function matches({ pk, cells }: StoredRow, needle: string): boolean {
  return [pk, ...cells.map(([, value]) => value)].some((text) =>
    text.toLowerCase().includes(needle),
  );
}

function toTable(row: Row): StoredTable {
  return { id: int(row, 'id'), name: bytes(row, 'name').toString(), rows: int(row, 'rows') };
}
