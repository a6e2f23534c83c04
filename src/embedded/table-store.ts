import type { Clock } from '../lib/clock.js';
import { newRowKey } from '../lib/row-key.js';
import { inSlices, nextTurn, Yielder } from '../lib/slices.js';
import { bytes, type Database, int } from './database.js';
import type { Row } from './driver.js';
import { Refusal } from './form.js';

/** A table of the peer, without its rows. */
export interface StoredTable {
  /** Unique, also after the table was dropped. */
  readonly id: number;
  readonly name: string;
  /** The number of rows. */
  readonly rows: number;
}

export interface StoredRow {
  readonly pk: string;
  /** Column and value, in the order of the columns. Empty cells are missing. */
  readonly cells: readonly (readonly [column: string, value: string])[];
}

/** Selects rows of a table. */
export interface RowChoice {
  readonly pk?: string | undefined;
  /** Selects rows behind this key. */
  readonly after?: string | undefined;
  /** Selects rows with this text in a cell or in the key. Case does not matter. */
  readonly search?: string | undefined;
  readonly count?: number | undefined;
}

export const MAX_NAME_CHARS = 500;
export const MAX_COLUMNS = 1_000;
/** The size of a group of rows, in bytes. A group also ends with its slice of time. */
const GROUP_BYTES = 262_144;
/** The rows that one transaction deletes. */
const DELETED_AT_ONCE = 100;

const ROWS = `SELECT pk, cells FROM table_rows WHERE in_table = ? AND pk > ? ORDER BY pk`;
const ROW = `SELECT pk, cells FROM table_rows WHERE in_table = ? AND pk = ?`;

/**
 * The tables: rows by key, sorted by the code points of the keys.
 *
 * A table is created by its first row, and a column by the first row that names it. Both stay
 * without rows. Names and texts are stored as bytes, because SQLite ends a text at NUL. The cells
 * of a row are one JSON list of alternating column numbers and values.
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

  /** Lists all tables by name. */
  list(): StoredTable[] {
    return this.#database.rows('SELECT * FROM tables ORDER BY name').map(toTable);
  }

  find(name: string): StoredTable | undefined {
    const row = this.#database.row('SELECT * FROM tables WHERE name = ?', Buffer.from(name));
    return row && toTable(row);
  }

  /** Returns the columns by number, in the order of creation. */
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
   * Yields rows in groups. Each group takes one slice of time, and may be empty. The table may
   * change between two groups: each row is read when its turn comes.
   *
   * @throws Error if the table is dropped meanwhile
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
   * Creates a row, or merges cells into the one with this key. Other cells stay. The row is on disk
   * when this returns. Without a key, the row gets a new one, as `table add` gives it.
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

  /** Deletes rows by key, in several transactions. @returns the keys that existed */
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

  /** Drops a table. `clearDropped` deletes its rows. */
  drop({ id }: StoredTable): void {
    this.#database.transaction(() => {
      this.#database.run('DELETE FROM tables WHERE id = ?', id);
      this.#database.run('DELETE FROM table_columns WHERE in_table = ?', id);
      this.#database.run('INSERT INTO dropped_tables VALUES (?)', id);
    });
  }

  /**
   * Deletes the rows of dropped tables in slices, so that a large table does not hold the event
   * loop. After a stop, a crash or a disk error, the next call continues. The start of the peer
   * calls it too.
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
      if (known.size >= MAX_COLUMNS)
        throw new Refusal(400, `A table has at most ${MAX_COLUMNS} columns.`);
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

/** Encodes the cells of a row, in the order of the columns. */
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
