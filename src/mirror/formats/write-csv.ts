import { stringify } from 'csv-stringify/sync';
import { neutralised } from './formula.js';
import { columnInFile, KEY_COLUMN } from './key-column.js';
import { slices } from './slices.js';
import type { Rows, WriteOptions, WrittenTable } from './write.js';

/** CSV as RFC 4180 has it: a header line, CRLF after every line, quotes where they are needed. */
export async function* writeCsv(
  table: WrittenTable,
  rows: Rows,
  options: WriteOptions,
): AsyncGenerator<string> {
  const cell = options.neutralise ? neutralised : (text: string) => text;
  yield text([[KEY_COLUMN, ...table.columns.map((column) => cell(columnInFile(column)))]]);
  for await (const slice of slices(rows, table.columns.length)) {
    yield text(
      slice.map(({ pk, cells }) => [
        cell(pk),
        ...table.columns.map((column) => cell(cells.get(column) ?? '')),
      ]),
    );
  }
}

function text(records: string[][]): string {
  return stringify(records, {
    record_delimiter: 'windows',
    quoted_match: /[\r\n]/,
    // A line of one empty field would be an empty line.
    quoted_empty: records[0]?.length === 1,
  });
}
