import type { Rows, TableCodec, WrittenTable } from './table-text.js';

/** XML 1.0. It cannot be edited. */
export const xml: TableCodec = { write: writeXml, namesColumnsWithoutRows: false };

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
