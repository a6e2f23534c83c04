import { wellFormed } from '../../lib/text.js';
import type { TableRow } from '../../peer/table.js';
import { columnInFile, KEY_COLUMN } from './key-column.js';
import { slices } from './slices.js';
import type { Rows, WrittenTable } from './write.js';

/** A JSON list of objects, one row a line, the key first. */
export async function* writeJson(table: WrittenTable, rows: Rows): AsyncGenerator<string> {
  const line = lineWriter(table.columns);
  let separator = '[\n';
  for await (const slice of slices(rows, table.columns.length)) {
    yield separator + slice.map(line).join(',\n');
    separator = ',\n';
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n';
}

/** A JSON object a line, the key first. */
export async function* writeNdjson(table: WrittenTable, rows: Rows): AsyncGenerator<string> {
  const line = lineWriter(table.columns);
  for await (const slice of slices(rows, table.columns.length)) {
    yield slice.map((row) => `${line(row)}\n`).join('');
  }
}

/** Writes the text and builds no object: an object would put names like "7" first and take `__proto__` for itself. */
function lineWriter(columns: readonly string[]): (row: TableRow) => string {
  const key = `{${quoted(KEY_COLUMN)}:`;
  const names = columns.map((column) => [column, `,${quoted(columnInFile(column))}:`] as const);
  return ({ pk, cells }) => {
    let line = key + quoted(pk);
    for (const [column, name] of names) line += name + quoted(cells.get(column) ?? '');
    return `${line}}`;
  };
}

function quoted(text: string): string {
  return JSON.stringify(wellFormed(text));
}
