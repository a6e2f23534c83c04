import { rmdirSync } from 'node:fs';
import { join } from 'node:path';
import sqlite, { type JSValue, type SQLiteValue } from 'node-sqlite3-wasm';
import { messageOf, systemCode } from '../lib/errors.js';
import { EmbeddedError, failures } from './errors.js';

export type Row = Readonly<Record<string, SQLiteValue>>;

/**
 * What leads from each format to the next; the first one begins with nothing. What has been
 * released is never changed.
 */
const STEPS: readonly string[] = [
  `
  CREATE TABLE documents (
    id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, urlhash TEXT NOT NULL, title TEXT NOT NULL, collections TEXT NOT NULL,
    size INTEGER NOT NULL, words INTEGER NOT NULL, digest TEXT NOT NULL, last_modified INTEGER NOT NULL,
    load_date INTEGER NOT NULL, seq INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX documents_by_urlhash ON documents (urlhash);
  CREATE TABLE memberships (collection TEXT NOT NULL, document INTEGER NOT NULL, PRIMARY KEY (collection, document))
    STRICT, WITHOUT ROWID;
  CREATE TABLE texts (document INTEGER NOT NULL, part INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (document, part)) STRICT;
  CREATE TABLE tally (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE queue (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL, collections TEXT NOT NULL, load_date INTEGER NOT NULL,
    data BLOB NOT NULL
  ) STRICT;
  CREATE VIRTUAL TABLE words USING fts5 (title, name, body, content='', contentless_delete=1, tokenize='ascii');
  INSERT INTO words (words, rank) VALUES ('rank', 'bm25(6.0, 3.0, 1.0)');
  `,
  `
  CREATE TABLE tables (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL UNIQUE, rows INTEGER NOT NULL, last_key INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE table_columns (
    id INTEGER PRIMARY KEY, in_table INTEGER NOT NULL, name BLOB NOT NULL, UNIQUE (in_table, name)
  ) STRICT;
  CREATE TABLE table_rows (in_table INTEGER NOT NULL, pk BLOB NOT NULL, cells BLOB NOT NULL, PRIMARY KEY (in_table, pk)) STRICT;
  CREATE TABLE table_refuse (in_table INTEGER PRIMARY KEY) STRICT;
  `,
  `
  ALTER TABLE documents ADD COLUMN author TEXT;
  ALTER TABLE documents ADD COLUMN date INTEGER;
  ALTER TABLE documents ADD COLUMN language TEXT;
  ALTER TABLE texts ADD COLUMN deflated INTEGER NOT NULL DEFAULT 0;
  CREATE VIRTUAL TABLE beginnings USING fts5 (letters, content='', contentless_delete=1, tokenize='ascii', detail=none);
  CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
  INSERT INTO tally SELECT 'to renew', max(id) FROM documents HAVING max(id) IS NOT NULL;
  `,
  `
  INSERT INTO words (words, rank) VALUES ('automerge', 0);
  INSERT INTO beginnings (beginnings, rank) VALUES ('automerge', 0);
  INSERT OR REPLACE INTO tally SELECT 'to renew', max(id) FROM documents HAVING max(id) IS NOT NULL;
  `,
];
const FORMAT = STEPS.length;

/**
 * The peer's SQLite database in one file, for one connection.
 *
 * It is held exclusively from opening to closing: that is what lets SQLite write ahead without
 * shared memory, which this build does not have, so that a commit costs one fsync. The build's lock
 * is a directory that stays after a kill; whoever opens a Database holds the lock of the directory,
 * so a directory found here is a dead process's and is removed.
 */
export class Database {
  readonly path: string;
  readonly #connection: sqlite.Database;
  readonly #statements = new Map<string, sqlite.Statement>();

  /** @throws EmbeddedError EMBEDDED_DIR_DAMAGED, EMBEDDED_DIR_NEWER, EMBEDDED_DIR_UNWRITABLE */
  constructor(dir: string) {
    this.path = join(dir, 'peer.sqlite');
    try {
      rmdirSync(`${this.path}.lock`);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT')
        throw new EmbeddedError(failures.directoryUnwritable(dir, error));
    }
    try {
      this.#connection = new sqlite.Database(this.path);
    } catch (error) {
      throw new EmbeddedError(failures.directoryUnwritable(dir, error));
    }
    try {
      this.#prepare();
    } catch (error) {
      this.#connection.close();
      if (error instanceof EmbeddedError) throw error;
      if (isDiskFailure(error)) throw new EmbeddedError(failures.directoryUnwritable(dir, error));
      throw new EmbeddedError(failures.databaseDamaged(this.path, error));
    }
  }

  #prepare(): void {
    this.#connection.exec(`
      PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864;
    `);
    const format = int(this.row('PRAGMA user_version'), 'user_version');
    if (format > FORMAT) throw new EmbeddedError(failures.databaseNewer(this.path, format, FORMAT));
    if (format < FORMAT) this.transaction(() => this.#upgrade(format));
  }

  #upgrade(format: number): void {
    for (const step of STEPS.slice(format)) this.#connection.exec(step);
    this.#connection.exec(`PRAGMA user_version = ${FORMAT}`);
  }

  /** All rows; statements are kept prepared, so `sql` comes from a fixed set. */
  rows(sql: string, ...values: JSValue[]): Row[] {
    return this.#with(sql, (statement) => statement.all(values) as Row[]);
  }

  row(sql: string, ...values: JSValue[]): Row | undefined {
    return this.rows(sql, ...values)[0];
  }

  /** Gives rows one by one until `take` wants no more, so that what is not wanted is not read. */
  scan(sql: string, values: JSValue[], take: (row: Row) => boolean): void {
    const statement = this.#connection.prepare(sql);
    try {
      for (const row of statement.iterate(values)) if (!take(row as Row)) break;
    } finally {
      finalizeQuietly(statement);
    }
  }

  /** The row number of the last row inserted. */
  run(sql: string, ...values: JSValue[]): number {
    return this.#with(sql, (statement) => Number(statement.run(values).lastInsertRowid));
  }

  /** Runs `work` whole or not at all; it is on disk when this returns. */
  transaction<T>(work: () => T): T {
    this.#connection.exec('BEGIN');
    try {
      const result = work();
      this.#connection.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#connection.inTransaction) this.#connection.exec('ROLLBACK');
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  /** Closing it twice is harmless. */
  close(): void {
    if (!this.isOpen) return;
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
    this.#connection.close();
  }

  #with<T>(sql: string, use: (statement: sqlite.Statement) => T): T {
    const kept = this.#statements.get(sql);
    const statement = kept ?? this.#connection.prepare(sql);
    if (!kept) this.#statements.set(sql, statement);
    try {
      return use(statement);
    } catch (error) {
      this.#statements.delete(sql);
      finalizeQuietly(statement);
      throw error;
    }
  }
}

/**
 * A statement that failed cannot be used again, and tells its error once more when it is finalized.
 */
function finalizeQuietly(statement: sqlite.Statement): void {
  try {
    statement.finalize();
  } catch {
    // The caller has the error already.
  }
}

const DISK_CODES = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/**
 * Whether SQLite or a file failed for want of disk space or a failing disk, which passes, and not
 * for what was asked of it.
 */
export function isDiskFailure(error: unknown): boolean {
  if (DISK_CODES.includes(systemCode(error) ?? '')) return true;
  return /disk I\/O error|disk is full|unable to open database file/i.test(messageOf(error));
}

export function int(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== 'number') throw new TypeError(`column ${column} is no number`);
  return value;
}

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`column ${column} is no text`);
  return value;
}

export function bytes(row: Row, column: string): Buffer {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw new TypeError(`column ${column} is no blob`);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}
