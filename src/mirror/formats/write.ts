import type { TableRow } from '../../peer/table.js';
import { writeCsv } from './write-csv.js';
import { writeJson, writeNdjson } from './write-json.js';
import { writeXml } from './write-xml.js';

export type TableFormat = 'csv' | 'json' | 'ndjson' | 'xml';

/** What is written of a table. */
export interface WrittenTable {
  readonly name: string;
  /** Without the key, which comes first; in the order in which they are written. Cells of other columns are left out. */
  readonly columns: readonly string[];
}

export interface WriteOptions {
  /** Puts a ' before what a spreadsheet would take for a formula (CSV only). */
  readonly neutralise: boolean;
}

/** Rows in groups, as they come. */
export type Rows = AsyncIterable<readonly TableRow[]>;

/** The text of a table in a format, piece by piece; every row has every column, an absent cell is an empty one. */
export function writeTable(
  format: TableFormat,
  table: WrittenTable,
  rows: Rows,
  options: WriteOptions,
): AsyncIterable<string> {
  switch (format) {
    case 'csv':
      return writeCsv(table, rows, options);
    case 'json':
      return writeJson(table, rows);
    case 'ndjson':
      return writeNdjson(table, rows);
    case 'xml':
      return writeXml(table, rows);
  }
}
