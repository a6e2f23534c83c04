import { randomInt } from 'node:crypto';
import { rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Connection, Driver, Row, Statement, Value } from './driver.js';
import { directoryUnwritable, EmbeddedError } from './errors.js';

/**
 * The format of the database, in SQLite's `user_version`. A change of SCHEMA, or of what a table
 * holds, takes the next number. A database of another format is refused, but one of
 * MIGRATED_FORMAT gets this format at once and its new contents later (`migration.ts`).
 */
export const FORMAT = 6;
/** The format that lacks only the symbol words in `words`. */
export const MIGRATED_FORMAT = 5;
/**
 * The name in `counts` of the progress of a migration: documents with this id or a higher one are
 * done. There is no such row if no migration is to be done.
 */
export const MIGRATION = 'migration';
/**
 * The name in `counts` of a random number that tells databases apart. A restore gives the restored
 * database another one.
 */
const IDENTITY = 'identity';
/** The numbers from which it is taken. */
const IDENTITIES = 2 ** 47;

/**
 * The tables of the database.
 *
 * - `documents` has one row a document; `memberships` has its collections, `texts` its text in
 *   deflated parts.
 * - `words` is the full-text index. `prefixes` indexes the first two to four letters of each word.
 *   Both take their row number from `documents.id`. `vocabulary` lists the terms of `words`.
 * - `counts` has the number of documents, in all (`documents`) and by collection (`in NAME`), and
 *   the progress of a migration (MIGRATION), and the identity of the database (IDENTITY).
 * - `tables`, `table_columns` and `table_rows` are the tables that programs keep in the peer.
 *   `dropped_tables` names those whose rows are still to be deleted. Ids of tables are never reused
 *   (AUTOINCREMENT). Names and cells are bytes, because SQLite ends a text at NUL.
 *
 * FTS5 merges on its own for 50 ms now and then. `DocumentStore.merge` does it in small steps, so
 * `automerge` is off.
 */
const SCHEMA = `
  CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    urlhash TEXT NOT NULL,
    title TEXT NOT NULL,
    collections TEXT NOT NULL,
    size INTEGER NOT NULL,
    words INTEGER NOT NULL,
    digest TEXT NOT NULL,
    last_modified INTEGER NOT NULL,
    load_date INTEGER NOT NULL,
    author TEXT,
    date INTEGER,
    language TEXT
  ) STRICT;
  CREATE INDEX documents_by_urlhash ON documents (urlhash);

  CREATE TABLE memberships (
    collection TEXT NOT NULL,
    document INTEGER NOT NULL,
    PRIMARY KEY (collection, document)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE texts (
    document INTEGER NOT NULL,
    part INTEGER NOT NULL,
    deflated BLOB NOT NULL,
    PRIMARY KEY (document, part)
  ) STRICT;

  CREATE TABLE counts (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE VIRTUAL TABLE words USING fts5 (
    title, name, body, content='', contentless_delete=1, tokenize='ascii'
  );
  INSERT INTO words (words, rank) VALUES ('rank', 'bm25(6.0, 3.0, 1.0)');
  INSERT INTO words (words, rank) VALUES ('automerge', 0);
  CREATE VIRTUAL TABLE prefixes USING fts5 (
    letters, content='', contentless_delete=1, tokenize='ascii', detail=none
  );
  INSERT INTO prefixes (prefixes, rank) VALUES ('automerge', 0);
  CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);

  CREATE TABLE tables (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name BLOB NOT NULL UNIQUE,
    rows INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE table_columns (
    id INTEGER PRIMARY KEY,
    in_table INTEGER NOT NULL,
    name BLOB NOT NULL,
    UNIQUE (in_table, name)
  ) STRICT;

  CREATE TABLE table_rows (
    in_table INTEGER NOT NULL,
    pk BLOB NOT NULL,
    cells BLOB NOT NULL,
    PRIMARY KEY (in_table, pk)
  ) STRICT;

  CREATE TABLE dropped_tables (id INTEGER PRIMARY KEY) STRICT;
`;

/**
 * The peer's SQLite database in one file, for one connection.
 *
 * The connection locks the file exclusively until it is closed. The WebAssembly build of SQLite has
 * no shared memory, and only an exclusive lock allows a write-ahead log without it. A commit then
 * costs one fsync. The build's own lock is a directory, which remains after a kill. The caller
 * holds the lock of the peer's directory, so a lock found here belongs to a dead process and is
 * removed.
 */
export class Database {
  readonly path: string;
  readonly #connection: Connection;
  readonly #statements = new Map<string, Statement>();
  #isOpen = true;

  /**
   * @throws EmbeddedError EMBEDDED_DIR_DAMAGED, EMBEDDED_DIR_NEWER, EMBEDDED_DIR_OLDER,
   *   EMBEDDED_DIR_UNWRITABLE
   */
  constructor(dir: string, driver: Driver) {
    this.path = join(dir, 'peer.sqlite');
    try {
      rmdirSync(`${this.path}.lock`);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw directoryUnwritable(dir, error);
    }
    try {
      this.#connection = driver.open(this.path);
    } catch (error) {
      throw directoryUnwritable(dir, error);
    }
    try {
      this.#prepare();
    } catch (error) {
      this.#connection.close();
      if (error instanceof EmbeddedError) throw error;
      if (isDiskFailure(error)) throw directoryUnwritable(dir, error);
      if (isLocked(error))
        throw directoryUnwritable(dir, new Error('another program has peer.sqlite open'));
      const why = messageOf(error);
      const values = { path: this.path, why };
      const context = { cause: error, details: { path: this.path } };
      throw new EmbeddedError('EMBEDDED_DIR_DAMAGED', values, context);
    }
  }

  #prepare(): void {
    this.#connection.exec(`
      PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864;
    `);
    const format = int(this.row('PRAGMA user_version'), 'user_version');
    if (format === FORMAT) return;
    if (format === MIGRATED_FORMAT) {
      this.#beginMigration();
      return;
    }
    const { path } = this;
    const details = { path, found: format, known: FORMAT };
    if (format > FORMAT) throw new EmbeddedError('EMBEDDED_DIR_NEWER', details);
    if (format > 0)
      throw new EmbeddedError(
        'EMBEDDED_DIR_OLDER',
        { ...details, oldest: MIGRATED_FORMAT, old: `${path}.old` },
        { details },
      );
    // A new file has format 0 and no tables. In a database of another program this fails.
    this.transaction(() => {
      this.#connection.exec(SCHEMA);
      this.#connection.exec(`PRAGMA user_version = ${FORMAT}`);
    });
  }

  #beginMigration(): void {
    this.transaction(() => {
      const end = 'SELECT coalesce(max(id), 0) + 1 FROM documents';
      this.#connection.exec(`INSERT INTO counts VALUES ('${MIGRATION}', (${end}))`);
      this.#connection.exec(`PRAGMA user_version = ${FORMAT}`);
    });
  }

  /** The number that tells this database from others, and from itself before a restore. */
  get identity(): number {
    const row = this.row('SELECT value FROM counts WHERE name = ?', IDENTITY);
    return row === undefined ? this.renew() : int(row, 'value');
  }

  /** Gives the database another identity. */
  renew(): number {
    const identity = randomInt(IDENTITIES);
    this.run('INSERT OR REPLACE INTO counts VALUES (?, ?)', IDENTITY, identity);
    return identity;
  }

  /** Returns all rows. The statements that were used last stay prepared. */
  rows(sql: string, ...values: Value[]): Row[] {
    return this.#with(sql, (statement) => statement.all(values));
  }

  row(sql: string, ...values: Value[]): Row | undefined {
    return this.rows(sql, ...values)[0];
  }

  /** Passes rows to `take` one by one, until it returns false. The rest is not read. */
  scan(sql: string, values: readonly Value[], take: (row: Row) => boolean): void {
    for (const row of this.iterate(sql, ...values)) if (!take(row)) break;
  }

  /** Yields rows one by one, of a statement that no other call uses. */
  *iterate(sql: string, ...values: Value[]): Generator<Row, void> {
    const statement = this.#connection.prepare(sql);
    try {
      yield* statement.iterate(values);
    } finally {
      statement.finalize();
    }
  }

  /** Runs a statement. @returns the row number of the last row that was inserted */
  run(sql: string, ...values: Value[]): number {
    return this.#with(sql, (statement) => statement.run(values));
  }

  /** Runs `work` in a transaction. Its changes are on disk when this returns. */
  transaction<T>(work: () => T): T {
    this.#connection.exec('BEGIN');
    try {
      const result = work();
      this.#connection.exec('COMMIT');
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #rollBack(): void {
    try {
      this.#connection.exec('ROLLBACK');
    } catch {
      // After some errors, such as that of a full disk, SQLite has already done it.
    }
  }

  /**
   * Moves all changes into the file, which then stays as it is until `resumeCheckpoints`.
   *
   * @returns the size of the file, in bytes
   */
  suspendCheckpoints(): number {
    const { busy } = this.row('PRAGMA wal_checkpoint(TRUNCATE)') ?? {};
    if (busy !== 0) throw new Error('the write-ahead log is in use');
    this.#connection.exec('PRAGMA wal_autocheckpoint = 0');
    const pages = int(this.row('PRAGMA page_count'), 'page_count');
    return pages * int(this.row('PRAGMA page_size'), 'page_size');
  }

  /** Moves all changes into the file, now and from time to time. */
  resumeCheckpoints(): void {
    this.#connection.exec('PRAGMA wal_autocheckpoint = 1000');
    this.rows('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Closes the connection. A second call does nothing. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
    this.#connection.close();
  }

  #forgetOldest(): void {
    for (const [sql, statement] of this.#statements) {
      this.#statements.delete(sql);
      statement.finalize();
      return;
    }
  }

  #with<T>(sql: string, use: (statement: Statement) => T): T {
    const statement = this.#statements.get(sql) ?? this.#connection.prepare(sql);
    // The statement that was used last is the last one of the map.
    this.#statements.delete(sql);
    this.#statements.set(sql, statement);
    if (this.#statements.size > MAX_STATEMENTS) this.#forgetOldest();
    try {
      return use(statement);
    } catch (error) {
      this.#statements.delete(sql);
      statement.finalize();
      throw error;
    }
  }
}

/** Returns the rows of `sqlite_schema` in a new database. */
export function newSchema(driver: Driver): Row[] {
  const connection = driver.open(':memory:');
  try {
    connection.exec(SCHEMA);
    const statement = connection.prepare(SCHEMA_ROWS);
    const rows = statement.all([]);
    statement.finalize();
    return rows;
  } finally {
    connection.close();
  }
}

export const SCHEMA_ROWS = 'SELECT type, name, tbl_name, sql FROM sqlite_schema';

/** The most statements that stay prepared. Each takes about 40 kB. */
const MAX_STATEMENTS = 200;

const DISK_CODES = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/** Whether the disk is full or failing. Such an error says nothing about the request. */
export function isDiskFailure(error: unknown): boolean {
  if (DISK_CODES.includes(systemCode(error) ?? '')) return true;
  return /disk I\/O error|disk is full|unable to open database file/i.test(messageOf(error));
}

/** Whether another program has the file open, such as the shell of SQLite. */
export function isLocked(error: unknown): boolean {
  return /database is locked/i.test(messageOf(error));
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
