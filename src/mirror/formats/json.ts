import { JsonScanner, OffsetFault } from '../../lib/json.js';
import type { TableRow } from '../../peer/table.js';
import {
  columnInFile,
  columnInPeer,
  type EditableCodec,
  KEY_COLUMN,
  type PositionedRow,
  type Rows,
  type WrittenTable,
} from './table-text.js';

/** A JSON list of objects, one row a line. */
export const json: EditableCodec = {
  write: writeJson,
  read: readJsonRows,
  namesColumnsWithoutRows: false,
};

/** A JSON object a line. */
export const ndjson: EditableCodec = {
  write: writeNdjson,
  read: readNdjsonRows,
  namesColumnsWithoutRows: false,
};

/** Writes a JSON list of objects, one row a line, the key first. */
async function* writeJson({ columns }: WrittenTable, slices: Rows) {
  const line = lineWriter(columns);
  let separator = '[\n';
  for await (const slice of slices) {
    yield separator + slice.map(line).join(',\n');
    separator = ',\n';
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n';
}

/** Writes a JSON object a line, the key first. */
async function* writeNdjson({ columns }: WrittenTable, slices: Rows) {
  const line = lineWriter(columns);
  for await (const slice of slices) yield slice.map((row) => `${line(row)}\n`).join('');
}

/**
 * Formats rows without objects: an object would move names like "7" to the front, and lose
 * `__proto__`.
 */
function lineWriter(columns: readonly string[]): (row: TableRow) => string {
  const quoted = (text: string): string => JSON.stringify(text.toWellFormed());
  const names = columns.map((column) => [column, `,${quoted(columnInFile(column))}:`] as const);
  return ({ pk, cells }) => {
    let line = `{${quoted(KEY_COLUMN)}:${quoted(pk)}`;
    for (const [column, name] of names) line += name + quoted(cells.get(column) ?? '');
    return `${line}}`;
  };
}

/**
 * Reads a JSON list of objects. JsonScanner slices the values out of the text: JSON.parse would
 * turn 1.50 into 1.5, round large numbers, take the last of two equal names, and report no
 * position.
 */
function* readJsonRows(text: string): Generator<PositionedRow, void> {
  const scanner = new JsonScanner(text);
  scanner.begin();
  if (text[scanner.at] !== '[')
    throw new OffsetFault(scanner.at, 'no list: the rows go between "[" and "]"');
  for (const _ of scanner.items()) yield readRow(text, scanner);
  scanner.end();
}

/** Reads a JSON object a line. An empty file is an accident, and refused. */
function* readNdjsonRows(text: string): Generator<PositionedRow, void> {
  if (text.trim() === '') throw new OffsetFault(0, 'nothing: the file is empty');
  for (let from = 0; from < text.length; ) {
    const lineFeed = text.indexOf('\n', from);
    const end = lineFeed === -1 ? text.length : lineFeed;
    const line = text.slice(from, end);
    if (!/^[ \t\r]*$/.test(line)) yield readLine(line, from);
    from = end + 1;
  }
}

/** @param from the offset of the line in the file */
function readLine(line: string, from: number): PositionedRow {
  const scanner = new JsonScanner(line);
  try {
    scanner.begin();
    const row = readRow(line, scanner);
    scanner.end();
    return { ...row, at: from + row.at, keyAt: from + row.keyAt };
  } catch (error) {
    if (error instanceof OffsetFault) throw new OffsetFault(from + error.offset, error.what);
    throw error;
  }
}

function readRow(text: string, scanner: JsonScanner): PositionedRow {
  const { at } = scanner;
  if (text[at] !== '{') throw new OffsetFault(at, 'no row: a row goes between "{" and "}"');
  let keyAt = at;
  let pk = '';
  const cells = new Map<string, string>();
  for (const { name, at } of scanner.entries()) {
    if (name === '') throw new OffsetFault(at, 'a column without a name');
    if (name === KEY_COLUMN) keyAt = scanner.at;
    const value = readCell(text, scanner);
    if (name === KEY_COLUMN) pk = value;
    else cells.set(columnInPeer(name).toWellFormed(), value);
  }
  return { pk, cells, at, keyAt };
}

/** Returns a value as text. A number stays as it is written, and null is empty. */
function readCell(text: string, scanner: JsonScanner): string {
  const from = scanner.at;
  if (text[from] === '{' || text[from] === '[') {
    const what = 'a list or an object instead of a text, a number, true, false or null';
    throw new OffsetFault(from, what);
  }
  scanner.value();
  const written = text.slice(from, scanner.at);
  if (written.startsWith('"')) return String(JSON.parse(written)).toWellFormed();
  return written === 'null' ? '' : written;
}
