import type { TableMirrorConfig } from '../config/config.js';
import type { EditAlarm, EditAlarmCode } from './edit-alarms.js';
import type { Base } from './edit-base.js';
import { LARGEST_EDITED } from './edit-bytes.js';
import type { ReadFile } from './edit-file.js';
import type { EditSource } from './edit-table.js';
import { readTable, type TableText } from './formats/read.js';
import type { Cells, Grid } from './merge.js';

/** Rows: a larger table is not taken for one that a person edits. */
const MOST_ROWS = 100_000;
/** Characters: longer keys and names of columns are none. */
const LONGEST_NAME = 500;
/** Keys or columns that a sentence names. */
const NAMED = 5;

/** Makes the alarm for the table that is being read. */
export type Alarm = (code: EditAlarmCode, detail: string) => EditAlarm;

/** The peer's table, in memory. */
export interface PeerTable {
  /** As the file has them. */
  readonly columns: readonly string[];
  /** All cells; its columns are those in which something stands. */
  readonly grid: Grid;
}

/** @throws EditAlarm EDIT_TOO_LARGE, EDIT_KEYS */
export async function readPeerTable(source: EditSource, alarm: Alarm): Promise<PeerTable> {
  const rows = new Map<string, Cells>();
  const filled = new Set<string>();
  let size = 0;
  for await (const group of source.rows) {
    for (const { pk, cells } of group) {
      if (rows.has(pk)) throw alarm('EDIT_KEYS', `the peer shows the key ${JSON.stringify(pk)} twice`);
      rows.set(pk, cells);
      size += pk.length;
      for (const [column, value] of cells) {
        size += value.length;
        if (value !== '') filled.add(column);
      }
    }
    if (rows.size > MOST_ROWS || size > LARGEST_EDITED) {
      const limits = `${MOST_ROWS} rows or ${LARGEST_EDITED} characters`;
      throw alarm('EDIT_TOO_LARGE', `the peer's table has more than ${limits}`);
    }
  }
  return { columns: source.columns, grid: { columns: [...filled].sort(), rows } };
}

/**
 * The table that the person left in the file; its columns are to be checked yet.
 *
 * @throws EditAlarm EDIT_UNREADABLE, EDIT_TOO_LARGE
 */
export async function readEditedTable(
  read: ReadFile,
  base: Base | undefined,
  format: TableMirrorConfig['format'],
  alarm: Alarm,
): Promise<TableText> {
  // What was not touched need not be read, whatever a format loses on the way.
  if (base?.file === read.sha256) return asWritten(base.shown, await base.grid());
  if (format === 'xml') throw new TypeError('XML is not edited');
  // A list of rows that is empty may be meant so; a file without anything in it is an accident.
  if (isBlank(read.bytes)) throw alarm('EDIT_UNREADABLE', 'line 1, column 1: nothing stands in it');
  const result = await readTable(format, read.bytes);
  if ('fault' in result) {
    const { line, column, what } = result.fault;
    throw alarm('EDIT_UNREADABLE', `line ${line}, column ${column}: ${what}`);
  }
  const { table } = result;
  if (table.rows.length > MOST_ROWS) {
    throw alarm('EDIT_TOO_LARGE', `it has ${table.rows.length} rows, of at most ${MOST_ROWS}`);
  }
  const long = table.rows.find(({ pk }) => pk.length > LONGEST_NAME);
  if (long !== undefined) {
    throw alarm('EDIT_UNREADABLE', `line ${long.line}: a key of more than ${LONGEST_NAME} characters`);
  }
  const padded = table.rows.find(({ pk }) => pk.endsWith('\0'));
  if (padded !== undefined) {
    throw alarm(
      'EDIT_UNREADABLE',
      `line ${padded.line}: a key that ends with NUL, which peers take for padding`,
    );
  }
  return table;
}

/**
 * Refuses new rows whose keys the peer would cut.
 *
 * @param most bytes of a key; undefined for no limit
 * @throws EditAlarm EDIT_UNREADABLE
 */
export function checkNewKeys(
  { rows }: TableText,
  there: Grid['rows'],
  most: number | undefined,
  alarm: Alarm,
): void {
  const long = rows.find(({ pk }) => most !== undefined && Buffer.byteLength(pk) > most && !there.has(pk));
  if (long === undefined) return;
  const what = `the key ${JSON.stringify(long.pk)} has ${Buffer.byteLength(long.pk)} bytes`;
  throw alarm('EDIT_UNREADABLE', `line ${long.line}: ${what}, and keys of this peer have at most ${most}`);
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
}

/**
 * Refuses a file that lacks columns of the copy that it was made from, or has such as it cannot have.
 *
 * @throws EditAlarm EDIT_COLUMNS
 */
export function checkColumns(
  mine: TableText,
  base: Base | undefined,
  { format, columns: configured }: Pick<TableMirrorConfig, 'format' | 'columns'>,
  alarm: Alarm,
): void {
  // A list without rows names no columns, and lacks none.
  if (format !== 'csv' && mine.rows.length === 0) return;
  const { columns } = mine;
  const shown = base?.shown ?? [];
  const missing = base === undefined ? [] : lackedColumns(mine, base);
  if (missing.length > 0) throw alarm('EDIT_COLUMNS', `lacks columns that it had: ${named(missing)}`);
  const isStrange = (column: string) =>
    column.length > LONGEST_NAME ||
    column === '' ||
    (configured !== undefined && !configured.includes(column) && !shown.includes(column));
  const strange = columns.filter(isStrange);
  if (strange.length > 0) {
    throw alarm('EDIT_COLUMNS', `has columns that this mirror cannot have: ${named(strange)}`);
  }
}

/** Columns in which something stands in the file that was written from a base, and that the file does not have. */
export function lackedColumns({ columns }: TableText, base: Base): readonly string[] {
  const filled = new Set(base.columns);
  return base.shown.filter((column) => filled.has(column) && !columns.includes(column));
}

/** The table as the file has it that was written from a base. */
function asWritten(columns: readonly string[], grid: Grid): TableText {
  return { columns, rows: [...grid.rows].map(([pk, cells]) => ({ pk, cells, line: 0 })) };
}

/** Some of them, for a sentence. */
export function named(names: readonly string[]): string {
  const first = names.slice(0, NAMED).map((name) => JSON.stringify(name.slice(0, LONGEST_NAME)));
  const more = names.length - first.length;
  return more > 0 ? `${first.join(', ')} and ${more} more` : first.join(', ');
}
