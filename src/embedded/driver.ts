import type { Database as WasmDatabase, Statement as WasmStatement } from 'node-sqlite3-wasm';
import { messageOf } from '../lib/errors.js';

/** A value of a column or a parameter. A text ends at NUL, and half a surrogate pair is U+FFFD. */
export type Value = number | string | Uint8Array | null;

export type Row = Readonly<Record<string, Value>>;

export interface Statement {
  all(values: readonly Value[]): Row[];
  /** Yields the rows one by one. The caller finalizes a statement whose rows it does not read. */
  iterate(values: readonly Value[]): Iterable<Row>;
  /** @returns the row number of the last row that was inserted */
  run(values: readonly Value[]): number;
  /** Called once. Reports no error. */
  finalize(): void;
}

export interface Connection {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  /** Called once, when all statements are finalized. */
  close(): void;
}

export const DRIVER_NAMES = ['node:sqlite', 'node-sqlite3-wasm'] as const;
export type DriverName = (typeof DRIVER_NAMES)[number];

/**
 * A build of SQLite.
 *
 * - `node:sqlite` is part of Node from version 22 on. Some versions lack FTS5, or ask for a flag.
 * - `node-sqlite3-wasm` is WebAssembly, which works everywhere, and takes several times as long.
 *
 * Both read and write the same files and answer alike. Their errors have the message of SQLite and
 * no code. Neither heeds the lock of the other: the caller holds the lock of the directory.
 */
export interface Driver {
  readonly name: DriverName;
  /** Opens a file, which is created if it is missing. */
  open(path: string): Connection;
  /** Opens an existing file without a write-ahead log, for reading only. */
  openToRead(path: string): Connection;
}

/** Returns the fastest driver that works in this process. */
export async function fastestDriver(): Promise<Driver> {
  return nodeDriver() ?? (await wasmDriver());
}

/** @throws Error if this process does not have it */
export async function driverNamed(name: DriverName): Promise<Driver> {
  const driver = name === 'node:sqlite' ? nodeDriver() : await wasmDriver();
  if (driver === undefined) throw new Error(`Node ${process.version} has no ${name} with FTS5`);
  return driver;
}

/** The part of `node:sqlite` that is used. The types of the oldest Node do not have it. */
interface NodeSqlite {
  readonly DatabaseSync: new (
    path: string,
    options?: { readonly readOnly?: boolean },
  ) => {
    exec(sql: string): void;
    prepare(sql: string): NodeStatement;
    close(): void;
  };
}

interface NodeStatement {
  all(...values: NodeValue[]): Row[];
  iterate(...values: NodeValue[]): Iterable<Row>;
  run(...values: NodeValue[]): { readonly lastInsertRowid: number | bigint };
}

type NodeValue = Value | bigint;

/** Returns the driver `node:sqlite` if this Node has it, with a full-text index. */
export function nodeDriver(): Driver | undefined {
  const sqlite = nodeSqlite();
  if (sqlite === undefined) return undefined;
  const driver: Driver = {
    name: 'node:sqlite',
    open: (path) => withPlainErrors(() => openNode(sqlite, path, false)),
    openToRead: (path) => withPlainErrors(() => openNode(sqlite, path, true)),
  };
  return hasFullTextIndex(driver) ? driver : undefined;
}

/** Loads `node:sqlite` without the warning that it is experimental. */
function nodeSqlite(): NodeSqlite | undefined {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  const found = process.getBuiltinModule('node:sqlite') as NodeSqlite | undefined;
  process.emitWarning = emitWarning;
  return found;
}

/** Finds out by doing it. A Node that links SQLite of the system may have any version of it. */
function hasFullTextIndex(driver: Driver): boolean {
  try {
    const connection = driver.open(':memory:');
    connection.exec("CREATE VIRTUAL TABLE probe USING fts5 (a, content='', contentless_delete=1)");
    const statement = connection.prepare('SELECT rowid FROM probe');
    for (const _ of statement.iterate([])) break;
    connection.close();
    return true;
  } catch {
    return false;
  }
}

function openNode({ DatabaseSync }: NodeSqlite, path: string, readOnly: boolean): Connection {
  const connection = new DatabaseSync(path, { readOnly });
  return {
    exec: (sql) => withPlainErrors(() => connection.exec(sql)),
    prepare: (sql) => preparedByNode(withPlainErrors(() => connection.prepare(sql))),
    close: () => withPlainErrors(() => connection.close()),
  };
}

function preparedByNode(statement: NodeStatement): Statement {
  return {
    all: (values) => withPlainErrors(() => statement.all(...values.map(boundByNode))),
    iterate: (values) => iteratedByNode(statement, values),
    run: (values) =>
      withPlainErrors(() => Number(statement.run(...values.map(boundByNode)).lastInsertRowid)),
    // The garbage collector finalizes it.
    finalize: () => {},
  };
}

function* iteratedByNode(statement: NodeStatement, values: readonly Value[]): Generator<Row> {
  try {
    yield* statement.iterate(...values.map(boundByNode));
  } catch (error) {
    throw plainError(error);
  }
}

/**
 * Returns a parameter for `node:sqlite`. It binds numbers as floats, and FTS5 ignores a condition
 * on `rowid` that is no integer. It binds texts beyond NUL.
 */
function boundByNode(value: Value): NodeValue {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== 'string') return value;
  const end = value.indexOf('\0');
  return end === -1 ? value : value.slice(0, end);
}

function withPlainErrors<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw plainError(error);
  }
}

/** Removes the code ERR_SQLITE_ERROR, which hides the reason. */
function plainError(error: unknown): Error {
  return new Error(messageOf(error), { cause: error });
}

/** Returns the driver `node-sqlite3-wasm`. */
export async function wasmDriver(): Promise<Driver> {
  const { default: sqlite } = await import('node-sqlite3-wasm');
  const { Database } = sqlite;
  return {
    name: 'node-sqlite3-wasm',
    open: (path) => openWasm(new Database(path)),
    openToRead: (path) => openWasm(new Database(path, { readOnly: true, fileMustExist: true })),
  };
}

function openWasm(connection: WasmDatabase): Connection {
  return {
    exec: (sql) => connection.exec(sql),
    prepare: (sql) => preparedByWasm(connection.prepare(sql)),
    close: () => connection.close(),
  };
}

function preparedByWasm(statement: WasmStatement): Statement {
  return {
    all: (values) => statement.all(values.map(boundByWasm)) as Row[],
    iterate: (values) => statement.iterate(values.map(boundByWasm)) as Iterable<Row>,
    run: (values) => Number(statement.run(values.map(boundByWasm)).lastInsertRowid),
    finalize: () => finalizeQuietly(statement),
  };
}

/** Returns a parameter for `node-sqlite3-wasm`, which stores half a surrogate pair as it is. */
function boundByWasm(value: Value): Value {
  return typeof value === 'string' ? value.toWellFormed() : value;
}

/** Finalizes a statement. If it failed, SQLite reports its error once more, which is ignored. */
function finalizeQuietly(statement: WasmStatement): void {
  try {
    statement.finalize();
  } catch {
    // The caller has the error already.
  }
}
