import { MARKUP_ESCAPES } from '../../lib/markup.js';
import type { TableRow } from '../../peer/table.js';

export type TableFormat = 'csv' | 'json' | 'ndjson' | 'xml';

/** What is written of a table. */
export interface WrittenTable {
  readonly name: string;
  /**
   * Without the key, which comes first; in the order in which they are written. Cells of other
   * columns are left out.
   */
  readonly columns: readonly string[];
  /** Whether a ' is put before what a spreadsheet would take for a formula (CSV only). */
  readonly neutralise?: boolean;
  /** What ends a line (CSV only). @default 'lf' */
  readonly newline?: 'lf' | 'crlf';
}

/** Rows in groups, as they come. */
export type Rows = AsyncIterable<readonly TableRow[]>;

/** What the column of the keys is called in files. */
export const KEY_COLUMN = 'pk';

/**
 * What a column of the peer is called in a file: one that is called like the key column gets one
 * "_" more.
 */
function columnInFile(column: string): string {
  return /^pk_*$/.test(column) ? `${column}_` : column;
}

/** What a column of a file is called in the peer. */
export function columnInPeer(column: string): string {
  return /^pk_+$/.test(column) ? column.slice(0, -1) : column;
}

/**
 * The text of a table in a format, piece by piece; every row has every column, an absent cell is an
 * empty one.
 */
export function writeTable(
  format: TableFormat,
  table: WrittenTable,
  rows: Rows,
): AsyncIterable<string> {
  return WRITERS[format](table, slicesOf(rows, table.columns.length));
}

const WRITERS = { csv: writeCsv, json: writeJson, ndjson: writeNdjson, xml: writeXml };

/** Cells that are turned into text at once: about a millisecond of work. */
const CELLS = 4000;

/**
 * The same rows in groups small enough that the event loop is not held up, however wide the table.
 */
async function* slicesOf(rows: Rows, columns: number): AsyncGenerator<readonly TableRow[]> {
  const most = Math.max(1, Math.floor(CELLS / (columns + 1)));
  for await (const group of rows) {
    for (let from = 0; from < group.length; from += most) yield group.slice(from, from + most);
  }
}

/**
 * A cell that a spreadsheet takes for a formula, or one that was made not to be: different cells
 * stay different. The full-width signs are taken for plain ones by some.
 */
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/**
 * CSV as RFC 4180 has it, but for the line ends: a header line, quotes where they are needed, LF
 * after every line unless CRLF is asked for.
 */
async function* writeCsv({ columns, neutralise, newline }: WrittenTable, slices: Rows) {
  const end = newline === 'crlf' ? '\r\n' : '\n';
  const cell = (text: string): string => {
    const shown = neutralise && FORMULA.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown;
  };
  // A line of one empty field would be an empty line.
  const line = (texts: readonly string[]): string => (texts.map(cell).join(',') || '""') + end;
  yield line([KEY_COLUMN, ...columns.map(columnInFile)]);
  for await (const slice of slices) {
    yield slice
      .map(({ pk, cells }) => line([pk, ...columns.map((column) => cells.get(column) ?? '')]))
      .join('');
  }
}

/** A JSON list of objects, one row a line, the key first. */
async function* writeJson({ columns }: WrittenTable, slices: Rows) {
  const line = lineWriter(columns);
  let separator = '[\n';
  for await (const slice of slices) {
    yield separator + slice.map(line).join(',\n');
    separator = ',\n';
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n';
}

/** A JSON object a line, the key first. */
async function* writeNdjson({ columns }: WrittenTable, slices: Rows) {
  const line = lineWriter(columns);
  for await (const slice of slices) yield slice.map((row) => `${line(row)}\n`).join('');
}

/**
 * Writes the text and builds no object: an object would put names like "7" first and take
 * `__proto__` for itself.
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

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML 1.0 cannot hold.
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/**
 * XML 1.0: `<table name>` holds `<row pk>` holds `<cell col>`, of every column. What XML cannot
 * hold, also not escaped, stands as base64 of its UTF-8: in an attribute called `name-base64`,
 * `pk-base64` or `col-base64`, or in a cell with `encoding="base64"`.
 */
async function* writeXml(table: WrittenTable, slices: Rows) {
  const columns = table.columns.map(
    (column) => [column, `  <cell ${attribute('col', column)}`] as const,
  );
  yield `<?xml version="1.0" encoding="UTF-8"?>\n<table ${attribute('name', table.name)}>\n`;
  for await (const slice of slices) {
    let text = '';
    for (const { pk, cells } of slice) {
      text += `<row ${attribute('pk', pk)}>\n`;
      for (const [column, start] of columns)
        text += `${start}${content(cells.get(column) ?? '')}</cell>\n`;
      text += '</row>\n';
    }
    yield text;
  }
  yield '</table>\n';
}

function attribute(name: string, value: string): string {
  const text = value.toWellFormed();
  if (IMPOSSIBLE.test(text)) return `${name}-base64="${base64(text)}"`;
  return `${name}="${text.replace(/[&<>"\t\n\r]/g, escaped)}"`;
}

/** What follows on the name of the cell's column: the end of the tag, and the text. */
function content(value: string): string {
  const text = value.toWellFormed();
  if (IMPOSSIBLE.test(text)) return ` encoding="base64">${base64(text)}`;
  return `>${text.replace(/[&<>\r]/g, escaped)}`;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/**
 * A reader makes blanks of line breaks and tabs in attributes, and LF of CR everywhere, unless they
 * are numbers.
 */
function escaped(character: string): string {
  return MARKUP_ESCAPES[character] ?? `&#${character.charCodeAt(0)};`;
}
