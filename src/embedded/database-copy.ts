import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BackupError, reason } from './backup-errors.js';
import type { Readable } from './check.js';
import type { Connection, Driver, Row, Statement, Value } from './driver.js';

/**
 * A database in a file that no peer uses, for reading only.
 *
 * It is opened by a link in a temporary directory. The WebAssembly build of SQLite makes a lock
 * beside the file, also for reading. A lock beside a backup would remain after a kill, and fails in
 * a directory that cannot be written.
 */
export class DatabaseCopy implements Readable {
  readonly #connection: Connection;
  readonly #temporary: string;
  readonly #statements = new Map<string, Statement>();

  private constructor(connection: Connection, temporary: string) {
    this.#connection = connection;
    this.#temporary = temporary;
  }

  /**
   * @param path an absolute one
   * @throws BackupError BACKUP_NO_TEMPORARY; Error of the driver
   */
  static async open(path: string, driver: Driver): Promise<DatabaseCopy> {
    const temporary = await mkdtemp(join(tmpdir(), 'peersync-check-')).catch(noTemporary);
    try {
      const link = join(temporary, 'copy');
      await symlink(path, link).catch(noTemporary);
      return new DatabaseCopy(driver.openToRead(link), temporary);
    } catch (error) {
      await rm(temporary, { recursive: true, force: true });
      throw error;
    }
  }

  rows(sql: string, ...values: Value[]): Row[] {
    const statement = this.#statements.get(sql) ?? this.#connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement.all(values);
  }

  row(sql: string, ...values: Value[]): Row | undefined {
    return this.rows(sql, ...values)[0];
  }

  *iterate(sql: string, ...values: Value[]): Generator<Row, void> {
    const statement = this.#connection.prepare(sql);
    try {
      yield* statement.iterate(values);
    } finally {
      statement.finalize();
    }
  }

  async close(): Promise<void> {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#connection.close();
    await rm(this.#temporary, { recursive: true, force: true });
  }
}

function noTemporary(cause: unknown): never {
  throw new BackupError('BACKUP_NO_TEMPORARY', { dir: tmpdir(), why: reason(cause) }, { cause });
}
