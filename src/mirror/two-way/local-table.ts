import type { TableMirrorConfig } from '../../config/config.js';
import { inSlices } from '../../lib/slices.js';
import { numberText } from '../../lib/text.js';
import type { TableRow } from '../../peer/table.js';
import { quotedList } from '../errors.js';
import { namesColumnsWithoutRows, writeTable } from '../formats/formats.js';
import { readTable } from '../formats/read.js';
import type { TableText } from '../formats/table-text.js';
import type { TablePlan } from '../plan.js';
import type { EditedFile, FileContent } from './edited-file.js';
import type { EarlierCopy } from './history.js';
import type { Grid } from './merge.js';
import { missingColumns } from './stale-copy.js';

/** The most rows of a table that can be edited. */
export const MAX_ROWS = 100_000;
/** The rows that are formatted between two pauses. */
const ROWS_PER_SLICE = 100;
/** The most characters of a key, or of the name of a column. */
const MAX_NAME_LENGTH = 500;

/**
 * Reads the table from the edited file.
 *
 * @throws MirrorCondition EDIT_UNREADABLE, EDIT_TOO_LARGE
 */
export async function readLocalTable(
  file: EditedFile,
  { bytes }: FileContent,
  format: TableMirrorConfig['format'],
): Promise<TableText> {
  const result = await readTable(format, bytes);
  if ('fault' in result) {
    const { line, column, what } = result.fault;
    throw file.condition('EDIT_UNREADABLE', `line ${line}, column ${column}: ${what}`);
  }
  const count = result.table.rows.length;
  if (count > MAX_ROWS) {
    const detail = `it has ${numberText(count)} rows, of at most ${numberText(MAX_ROWS)}`;
    throw file.condition('EDIT_TOO_LARGE', detail);
  }
  return result.table;
}

/**
 * Refuses a table that lacks columns of the copy that it was made from, or has others than the
 * configured ones.
 *
 * @throws MirrorCondition EDIT_COLUMNS
 */
export function checkColumns(
  file: EditedFile,
  table: TableText,
  copy: Pick<EarlierCopy, 'shown' | 'columns'> | undefined,
  { format, columns: configured }: TableMirrorConfig,
): void {
  // Without a header, a file without rows names no columns, and lacks none.
  if (!namesColumnsWithoutRows(format) && table.rows.length === 0) return;
  const missing = copy === undefined ? [] : missingColumns(table, copy);
  if (missing.length > 0) {
    throw file.condition('EDIT_COLUMNS', `lacks columns that it had: ${quotedList(missing)}`);
  }
  const allowed = configured && new Set([...configured, ...(copy?.shown ?? [])]);
  const refused = table.columns.filter(
    (column) => allowed?.has(column) === false || column.length > MAX_NAME_LENGTH,
  );
  if (refused.length > 0) {
    const detail = `has columns that this mirror cannot have: ${quotedList(refused)}`;
    throw file.condition('EDIT_COLUMNS', detail);
  }
}

/**
 * Refuses a new row whose key the peer would cut.
 *
 * @param maxBytes the longest key of the peer
 * @throws MirrorCondition EDIT_UNREADABLE
 */
export function checkNewKeys(
  file: EditedFile,
  { rows }: TableText,
  peerGrid: Grid,
  maxBytes = 4 * MAX_NAME_LENGTH,
): void {
  const isRefused = (pk: string): boolean =>
    pk.length > MAX_NAME_LENGTH || Buffer.byteLength(pk) > maxBytes || pk.endsWith('\0');
  const refused = rows.find(({ pk }) => !peerGrid.rows.has(pk) && isRefused(pk));
  if (refused === undefined) return;
  const { pk, line } = refused;
  const fault = `the key ${JSON.stringify(pk)} has ${Buffer.byteLength(pk)} bytes`;
  const limit = `keys of this peer have at most ${maxBytes} in ${MAX_NAME_LENGTH} characters, and do not end with NUL`;
  throw file.condition('EDIT_UNREADABLE', `line ${line}: ${fault}; ${limit}`);
}

/** Returns the text of the file for a table: every row with these columns. */
export function writeLocalTable(
  { source, settings }: TablePlan,
  columns: readonly string[],
  { rows }: Grid,
): AsyncIterable<string> {
  async function* groups(): AsyncGenerator<readonly TableRow[]> {
    for await (const group of inSlices(rows, ROWS_PER_SLICE)) {
      yield group.map(([pk, cells]) => ({ pk, cells }));
    }
  }
  const { format, newline } = settings;
  return writeTable(format, { name: source, columns, newline }, groups());
}
