import { isUtf8 } from 'node:buffer';
import { type JsonFault, JsonScanner, OffsetFault, positionOf } from '../../lib/json.js';
import { nextTurn } from '../../lib/slices.js';
import { columnInPeer, KEY_COLUMN, type TableFormat } from './write.js';

/** A table as a person left it in a file. */
export interface TableText {
  /** As the peer calls them, without the key, in the order of the file. */
  readonly columns: readonly string[];
  readonly rows: readonly TextRow[];
}

export interface TextRow {
  /** Empty for a new row. */
  readonly pk: string;
  /**
   * What the file says, also where it says nothing (an empty text); a column that the row does not
   * name is absent.
   */
  readonly cells: ReadonlyMap<string, string>;
  /** Where the row begins, from 1. */
  readonly line: number;
}

/** Formats that can be edited. */
export type EditableFormat = Exclude<TableFormat, 'xml'>;

/** A table, or where the file stops being one, and why. */
export type ReadResult = { readonly table: TableText } | { readonly fault: JsonFault };

/** Characters that are read without a pause: a few milliseconds of work. */
const AT_ONCE = 2 ** 18;

/** A row as it stands in a file, by offsets in its text. */
interface ReadRow {
  readonly pk: string;
  readonly cells: ReadonlyMap<string, string>;
  /** Where it begins; not before the row before it. */
  readonly at: number;
  /** Where a second row of its key is to be told of. */
  readonly keyAt: number;
}

/**
 * They read rows one by one; columns that the rows need not name are added to a set. @throws
 * OffsetFault
 */
const READERS = { csv: readCsv, json: readJson, ndjson: readNdjson };

/**
 * Reads a file that a person may have edited, strictly: every fault is told with its place, and
 * nothing is guessed. A row without key is a new row. Nothing is read of a file with a fault.
 */
export async function readTable(format: EditableFormat, bytes: Uint8Array): Promise<ReadResult> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    .toString()
    .replace(/^\ufeff/, '');
  const columns = new Set<string>();
  const rows: TextRow[] = [];
  /** In which line each key stands. */
  const lines = new Map<string, number>();
  let [line, lineEnd, pauseAt] = [1, text.indexOf('\n'), AT_ONCE];
  try {
    checkEncoding(bytes, text);
    for (const { pk, cells, at, keyAt } of READERS[format](text, columns)) {
      for (; lineEnd !== -1 && lineEnd < at; lineEnd = text.indexOf('\n', lineEnd + 1)) line += 1;
      const before = pk === '' ? undefined : lines.get(pk);
      if (before !== undefined) {
        const what = `the key ${JSON.stringify(pk)} for the second time: it stands in line ${before} already`;
        throw new OffsetFault(keyAt, what);
      }
      lines.set(pk, line);
      for (const column of cells.keys()) columns.add(column);
      rows.push({ pk, cells, line });
      if (at < pauseAt) continue;
      pauseAt = at + AT_ONCE;
      await nextTurn();
    }
  } catch (error) {
    if (!(error instanceof OffsetFault)) throw error;
    return { fault: { ...positionOf(text, error.offset), what: error.what } };
  }
  return { table: { columns: [...columns], rows } };
}

/**
 * @throws OffsetFault where it is not UTF-8; what cannot be read of it has become U+FFFD in `text`
 */
function checkEncoding(bytes: Uint8Array, text: string): void {
  if (isUtf8(bytes)) return;
  const [first, second] = bytes;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  throw new OffsetFault(
    text.indexOf('\ufffd'),
    `${isUtf16 ? 'UTF-16' : 'no UTF-8'}: save the file as UTF-8`,
  );
}

/** Reads a list of objects. */
function* readJson(text: string): Generator<ReadRow, void> {
  const scanner = new JsonScanner(text);
  scanner.begin();
  if (text[scanner.at] !== '[')
    throw new OffsetFault(scanner.at, 'no list: the rows stand in "[" and "]"');
  for (const _ of scanner.items()) yield readRow(text, scanner);
  scanner.end();
}

/**
 * Reads an object a line. A list of rows that is empty may be meant so; a file without anything in
 * it is an accident.
 */
function* readNdjson(text: string): Generator<ReadRow, void> {
  if (text.trim() === '') throw new OffsetFault(0, 'nothing: the file is empty');
  for (let from = 0; from < text.length; ) {
    const lineFeed = text.indexOf('\n', from);
    const end = lineFeed === -1 ? text.length : lineFeed;
    const line = text.slice(from, end);
    if (!/^[ \t\r]*$/.test(line)) yield readLine(line, from);
    from = end + 1;
  }
}

/** @param from offset of the line in the text of the file */
function readLine(line: string, from: number): ReadRow {
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

function readRow(text: string, scanner: JsonScanner): ReadRow {
  const { at } = scanner;
  if (text[at] !== '{') throw new OffsetFault(at, 'no row: a row stands in "{" and "}"');
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

/** A number as it is written, so that 1.50 stays that; nothing for null. */
function readCell(text: string, scanner: JsonScanner): string {
  const from = scanner.at;
  if (text[from] === '{' || text[from] === '[') {
    const what = 'a list or an object where a text, a number, true, false or null should stand';
    throw new OffsetFault(from, what);
  }
  scanner.value();
  const written = text.slice(from, scanner.at);
  if (written.startsWith('"')) return String(JSON.parse(written)).toWellFormed();
  return written === 'null' ? '' : written;
}

interface Field {
  readonly text: string;
  /** Offset of its beginning. */
  readonly at: number;
}

function* readCsv(text: string, named: Set<string>): Generator<ReadRow, void> {
  const records = csvRecords(text);
  const header = records.next().value;
  if (!header) throw new OffsetFault(0, 'nothing: the file is empty');
  const keyPlace = checkHeader(header.fields);
  const columns = header.fields.map(({ text: name }) => columnInPeer(name));
  for (const [i, column] of columns.entries()) if (i !== keyPlace) named.add(column);
  for (const { fields, end } of records) {
    if (fields.length !== columns.length) {
      const count = `${fields.length} ${fields.length === 1 ? 'field' : 'fields'}`;
      throw new OffsetFault(
        fields[columns.length]?.at ?? end,
        `${count} where the header has ${columns.length}`,
      );
    }
    const cells = new Map<string, string>();
    for (const [i, column] of columns.entries())
      if (i !== keyPlace) cells.set(column, fields[i]?.text ?? '');
    const { text: pk = '', at: keyAt = 0 } = fields[keyPlace] ?? {};
    yield { pk, cells, at: fields[0]?.at ?? 0, keyAt };
  }
}

/** @returns which field is the key */
function checkHeader(names: readonly Field[]): number {
  const seen = new Set<string>();
  for (const { text, at } of names) {
    if (text === '') throw new OffsetFault(at, 'a column without a name');
    if (seen.has(text))
      throw new OffsetFault(at, `the column ${JSON.stringify(text)} for the second time`);
    seen.add(text);
  }
  const keyPlace = names.findIndex(({ text }) => text === KEY_COLUMN);
  if (keyPlace !== -1) return keyPlace;
  const [first] = names;
  const other =
    names.length === 1 && /^pk(?<separator>[;\t|])/.exec(first?.text ?? '')?.groups?.separator;
  const why = other
    ? `: fields are separated by ${JSON.stringify(other)}, and should be by ","`
    : '';
  throw new OffsetFault(first?.at ?? 0, `a header without the key column "${KEY_COLUMN}"${why}`);
}

/**
 * The records of CSV as RFC 4180 has it, lines ended by CRLF or LF; empty lines are passed over.
 * `end`: before the line break.
 */
function* csvRecords(
  text: string,
): Generator<{ readonly fields: readonly Field[]; readonly end: number }, void> {
  let at = 0;
  const until = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.index ?? text.length;
  };
  const lineBreak = (): boolean => {
    const length = text.startsWith('\r\n', at) ? 2 : text[at] === '\n' ? 1 : 0;
    at += length;
    return length > 0;
  };
  const field = (): Field => {
    const from = at;
    if (text[from] !== '"') {
      at = until(/[",\r\n]/g);
      if (text[at] !== '"') return { text: text.slice(from, at), at: from };
      throw new OffsetFault(
        at,
        'a quote in a field without quotes around it: write it twice, within quotes',
      );
    }
    let end = text.indexOf('"', from + 1);
    while (end !== -1 && text[end + 1] === '"') end = text.indexOf('"', end + 2);
    if (end === -1) throw new OffsetFault(from, 'a quote that is never closed');
    at = end + 1;
    if (until(/[,\r\n]/g) !== at)
      throw new OffsetFault(at, 'something after the closing quote of a field');
    return { text: text.slice(from + 1, end).replaceAll('""', '"'), at: from };
  };
  for (;;) {
    while (lineBreak());
    if (at === text.length) return;
    const fields = [field()];
    while (text[at] === ',') {
      at += 1;
      fields.push(field());
    }
    const end = at;
    if (at < text.length && !lineBreak()) {
      throw new OffsetFault(at, 'a line that ends with CR alone: lines end with CRLF or LF');
    }
    yield { fields, end };
  }
}
