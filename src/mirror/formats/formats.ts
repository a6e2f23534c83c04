import type { EditableFormat, TableFormat } from '../../config/table-formats.js';
import type { TableRow } from '../../peer/table.js';
import { csv } from './csv.js';
import { json, ndjson } from './json.js';
import type { EditableCodec, Rows, TableCodec, WrittenTable } from './table-text.js';
import { xml } from './xml.js';

/**
 * The formats by their names in the configuration. A new format is one file here, one line below,
 * and its name in `config/table-formats.ts`.
 */
export const FORMATS: Readonly<
  Record<TableFormat, TableCodec> & Record<EditableFormat, EditableCodec>
> = { csv, json, ndjson, xml };

/** Yields the text of a table. Every row has every column, and an absent cell is empty. */
export function writeTable(
  format: TableFormat,
  table: WrittenTable,
  rows: Rows,
): AsyncIterable<string> {
  return FORMATS[format].write(table, slicesOf(rows, table.columns.length));
}

/** Whether a file of this format names its columns even without rows. */
export function namesColumnsWithoutRows(format: TableFormat): boolean {
  return FORMATS[format].namesColumnsWithoutRows;
}

/** The cells that are formatted between two pauses: about a millisecond of work. */
const CELLS_PER_SLICE = 4000;

/** Splits groups of rows, so that a wide table does not block the event loop. */
async function* slicesOf(rows: Rows, columns: number): AsyncGenerator<readonly TableRow[]> {
  const most = Math.max(1, Math.floor(CELLS_PER_SLICE / (columns + 1)));
  for await (const group of rows) {
    for (let from = 0; from < group.length; from += most) yield group.slice(from, from + most);
  }
}
