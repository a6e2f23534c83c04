import { JsonScanner, OffsetFault } from '../../lib/json.js';
import { wellFormed } from '../../lib/text.js';
import { columnInPeer, KEY_COLUMN } from './key-column.js';
import { LineCounter, type TableBuilder } from './table-builder.js';

/**
 * Reads a list of objects into a builder; yields its offset after each row.
 *
 * @throws OffsetFault
 */
export function* readJson(text: string, builder: TableBuilder): Generator<number, void> {
  const lines = new LineCounter(text);
  const scanner = new JsonScanner(text);
  scanner.begin();
  if (text[scanner.at] !== '[') throw new OffsetFault(scanner.at, 'no list: the rows stand in "[" and "]"');
  for (const _ of scanner.items()) {
    readRow(text, scanner, lines.lineAt(scanner.at), builder);
    yield scanner.at;
  }
  scanner.end();
}

/**
 * Reads an object a line into a builder; yields its offset after each line.
 *
 * @throws OffsetFault
 */
export function* readNdjson(text: string, builder: TableBuilder): Generator<number, void> {
  for (let from = 0, line = 1; from < text.length; line += 1) {
    const lineFeed = text.indexOf('\n', from);
    const end = lineFeed === -1 ? text.length : lineFeed;
    readLine(text.slice(from, end), from, line, builder);
    from = end + 1;
    yield from;
  }
}

function readLine(text: string, from: number, line: number, builder: TableBuilder): void {
  if (/^[ \t\r]*$/.test(text)) return;
  const scanner = new JsonScanner(text);
  try {
    scanner.begin();
    readRow(text, scanner, line, builder);
    scanner.end();
  } catch (error) {
    if (error instanceof OffsetFault) throw new OffsetFault(from + error.offset, error.what);
    throw error;
  }
}

function readRow(text: string, scanner: JsonScanner, line: number, builder: TableBuilder): void {
  let keyAt = scanner.at;
  if (text[keyAt] !== '{') throw new OffsetFault(keyAt, 'no row: a row stands in "{" and "}"');
  let pk = '';
  const cells = new Map<string, string>();
  for (const { name, at } of scanner.entries()) {
    if (name === '') throw new OffsetFault(at, 'a column without a name');
    if (name === KEY_COLUMN) keyAt = scanner.at;
    const value = readCell(text, scanner);
    if (name === KEY_COLUMN) pk = value;
    else cells.set(wellFormed(columnInPeer(name)), value);
  }
  builder.addRow({ pk, cells, line }, keyAt);
}

/** A number as it is written, so that 1.50 stays that; nothing for null. */
function readCell(text: string, scanner: JsonScanner): string {
  const from = scanner.at;
  if (text[from] === '{' || text[from] === '[') {
    throw new OffsetFault(
      from,
      'a list or an object where a text, a number, true, false or null should stand',
    );
  }
  scanner.value();
  const written = text.slice(from, scanner.at);
  if (written.startsWith('"')) return wellFormed(String(JSON.parse(written)));
  return written === 'null' ? '' : written;
}
