import type { Readable } from './check.js';
import type { Connection, Driver, Row, Statement, Value } from './driver.js';

/** A database in a file that no peer uses, for reading only. */
export class DatabaseCopy implements Readable {
  readonly #connection: Connection;
  readonly #statements = new Map<string, Statement>();

  constructor(path: string, driver: Driver) {
    this.#connection = driver.openToRead(path);
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

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#connection.close();
  }
}
