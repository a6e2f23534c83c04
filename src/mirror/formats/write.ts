import type { TableRow } from '../../peer/table.js';

export type TableFormat = 'csv' | 'json' | 'ndjson' | 'xml';

/** The options of a written table. */
export interface WrittenTable {
  readonly name: string;
  /**
   * The columns in the order of the file, without the key, which comes first. Cells of other
   * columns are left out.
   */
  readonly columns: readonly string[];
  /** Whether cells that look like formulas get a ' in front (CSV only). @default false */
  readonly neutralise?: boolean;
  /** The line ends (CSV only). @default 'lf' */
  readonly newline?: 'lf' | 'crlf';
}

/** Rows in groups. */
export type Rows = AsyncIterable<readonly TableRow[]>;

/** The name of the key column in files. */
export const KEY_COLUMN = 'pk';

/**
 * Returns the name of a column in files. A name like the one of the key column gets one "_" more.
 */
function columnInFile(column: string): string {
  return /^pk_*$/.test(column) ? `${column}_` : column;
}

/** Returns the name in the peer of a column of a file. */
export function columnInPeer(column: string): string {
  return /^pk_+$/.test(column) ? column.slice(0, -1) : column;
}

/** Yields the text of a table. Every row has every column, and an absent cell is empty. */
export function writeTable(
  format: TableFormat,
  table: WrittenTable,
  rows: Rows,
): AsyncIterable<string> {
  return WRITERS[format](table, slicesOf(rows, table.columns.length));
}

const WRITERS = { csv: writeCsv, json: writeJson, ndjson: writeNdjson, xml: writeXml };

/** The cells that are formatted between two pauses: about a millisecond of work. */
const CELLS_PER_SLICE = 4000;

/** Splits groups of rows, so that a wide table does not block the event loop. */
async function* slicesOf(rows: Rows, columns: number): AsyncGenerator<readonly TableRow[]> {
  const most = Math.max(1, Math.floor(CELLS_PER_SLICE / (columns + 1)));
  for await (const group of rows) {
    for (let from = 0; from < group.length; from += most) yield group.slice(from, from + most);
  }
}

/**
 * A cell that a spreadsheet takes for a formula, or one that was neutralised before: different
 * cells stay different. Some spreadsheets treat the full-width signs like the plain ones.
 */
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/**
 * Writes CSV (RFC 4180): a header, quotes only if needed, and LF line ends unless CRLF is wanted.
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

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML 1.0 cannot hold.
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/**
 * Writes XML 1.0: `<table name>` has `<row pk>`, which has a `<cell col>` for each column. Text
 * with characters that XML cannot hold is base64 of its UTF-8: in the attributes `name-base64`,
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

/** Returns the end of the start tag of a cell, and its text. */
function content(value: string): string {
  const text = value.toWellFormed();
  if (IMPOSSIBLE.test(text)) return ` encoding="base64">${base64(text)}`;
  return `>${text.replace(/[&<>\r]/g, escaped)}`;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Escapes line breaks and tabs as numbers: a reader would normalise the plain characters. */
function escaped(character: string): string {
  return NAMED[character] ?? `&#${character.charCodeAt(0)};`;
}
