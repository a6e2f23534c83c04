import { wellFormed } from '../../lib/text.js';
import { slices } from './slices.js';
import type { Rows, WrittenTable } from './write.js';

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML 1.0 cannot hold.
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/**
 * XML 1.0: `<table name>` holds `<row pk>` holds `<cell col>`, of every column. What XML cannot hold, also not escaped, stands as
 * base64 of its UTF-8: in an attribute called `name-base64`, `pk-base64` or `col-base64`, or in a cell with
 * `encoding="base64"`.
 */
export async function* writeXml(table: WrittenTable, rows: Rows): AsyncGenerator<string> {
  const columns = table.columns.map((column) => [column, `  <cell ${attribute('col', column)}`] as const);
  yield `<?xml version="1.0" encoding="UTF-8"?>\n<table ${attribute('name', table.name)}>\n`;
  for await (const slice of slices(rows, table.columns.length)) {
    let text = '';
    for (const { pk, cells } of slice) {
      text += `<row ${attribute('pk', pk)}>\n`;
      for (const [column, start] of columns) text += `${start}${content(cells.get(column) ?? '')}</cell>\n`;
      text += '</row>\n';
    }
    yield text;
  }
  yield '</table>\n';
}

function attribute(name: string, value: string): string {
  const text = wellFormed(value);
  if (IMPOSSIBLE.test(text)) return `${name}-base64="${base64(text)}"`;
  return `${name}="${text.replace(/[&<>"\t\n\r]/g, escaped)}"`;
}

/** What follows on the name of the cell's column: the end of the tag, and the text. */
function content(value: string): string {
  const text = wellFormed(value);
  if (IMPOSSIBLE.test(text)) return ` encoding="base64">${base64(text)}`;
  return `>${text.replace(/[&<>\r]/g, escaped)}`;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

const NAMED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** A reader makes blanks of line breaks and tabs in attributes, and LF of CR everywhere, unless they are numbers. */
function escaped(character: string): string {
  return NAMED[character] ?? `&#${character.charCodeAt(0)};`;
}
