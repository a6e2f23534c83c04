import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type JsonFault, JsonScanner, OffsetFault, positionOf } from '../../lib/json.js';
import { wellFormed } from '../../lib/text.js';
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
  /** What the file says, also where it says nothing (an empty text); a column that the row does not name is absent. */
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
const LINE_FEED = 10;

/**
 * Reads a file that a person may have edited, strictly: every fault is told with its place, and nothing is guessed. A row
 * without key is a new row. Nothing is read of a file with a fault.
 */
export async function readTable(format: EditableFormat, bytes: Uint8Array): Promise<ReadResult> {
  const decoded = decode(bytes);
  if ('fault' in decoded) return decoded;
  const { text } = decoded;
  const builder = new TableBuilder(text);
  const read = { csv: readCsv, json: readJson, ndjson: readNdjson }[format];
  try {
    let pauseAt = AT_ONCE;
    for (const at of read(text, builder)) {
      if (at < pauseAt) continue;
      pauseAt = at + AT_ONCE;
      await nextTurn();
    }
  } catch (error) {
    if (error instanceof OffsetFault)
      return { fault: { ...positionOf(text, error.offset), what: error.what } };
    throw error;
  }
  return { table: builder.table };
}

/** The text of a file in UTF-8, without its byte order mark; or where it is not UTF-8. */
function decode(bytes: Uint8Array): { readonly text: string } | { readonly fault: JsonFault } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return { text: buffer.toString().replace(/^\ufeff/, '') };
  const [first, second] = buffer;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return { fault: { line: 1, column: 1, what: 'UTF-16: save the file as UTF-8' } };
  }
  for (let from = 0, line = 1; ; line += 1) {
    const lineFeed = buffer.indexOf(LINE_FEED, from);
    const bytesOfLine = buffer.subarray(from, lineFeed === -1 ? buffer.length : lineFeed);
    if (!isUtf8(bytesOfLine)) {
      // The first byte that does not come back as it was.
      const back = Buffer.from(bytesOfLine.toString());
      const at = bytesOfLine.findIndex((byte, i) => byte !== back[i]);
      const column = [...bytesOfLine.subarray(0, at).toString()].length + 1;
      return { fault: { line, column, what: 'no UTF-8: save the file as UTF-8' } };
    }
    from = lineFeed + 1;
  }
}

/** Gathers the rows of a file that is read. */
class TableBuilder {
  readonly #text: string;
  readonly #columns = new Set<string>();
  readonly #rows: TextRow[] = [];
  /** In which line each key stands. */
  readonly #keys = new Map<string, number>();
  #line = 1;
  #lineFrom = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get table(): TableText {
    return { columns: [...this.#columns], rows: this.#rows };
  }

  addColumn(column: string): void {
    this.#columns.add(column);
  }

  /**
   * @param at offset of the row in the text; not before that of the row before
   * @param keyAt where a second row of this key is to be told of, as the caller counts
   * @throws OffsetFault when another row has this key
   */
  addRow(pk: string, cells: ReadonlyMap<string, string>, at: number, keyAt: number): void {
    const line = this.#lineAt(at);
    const before = pk === '' ? undefined : this.#keys.get(pk);
    if (before !== undefined) {
      const what = `the key ${JSON.stringify(pk)} for the second time: it stands in line ${before} already`;
      throw new OffsetFault(keyAt, what);
    }
    this.#keys.set(pk, line);
    for (const column of cells.keys()) this.addColumn(column);
    this.#rows.push({ pk, cells, line });
  }

  /** The line of an offset; offsets only grow. */
  #lineAt(offset: number): number {
    for (;;) {
      const end = this.#text.indexOf('\n', this.#lineFrom);
      if (end === -1 || end >= offset) return this.#line;
      this.#line += 1;
      this.#lineFrom = end + 1;
    }
  }
}

/** Reads a list of objects; yields its offset after each row. @throws OffsetFault */
function* readJson(text: string, builder: TableBuilder): Generator<number, void> {
  const scanner = new JsonScanner(text);
  scanner.begin();
  if (text[scanner.at] !== '[') throw new OffsetFault(scanner.at, 'no list: the rows stand in "[" and "]"');
  for (const _ of scanner.items()) {
    readRow(text, scanner, 0, builder);
    yield scanner.at;
  }
  scanner.end();
}

/** Reads an object a line; yields its offset after each line. @throws OffsetFault */
function* readNdjson(text: string, builder: TableBuilder): Generator<number, void> {
  for (let from = 0; from < text.length; ) {
    const lineFeed = text.indexOf('\n', from);
    const end = lineFeed === -1 ? text.length : lineFeed;
    const line = text.slice(from, end);
    if (!/^[ \t\r]*$/.test(line)) readLine(line, from, builder);
    from = end + 1;
    yield from;
  }
}

function readLine(line: string, from: number, builder: TableBuilder): void {
  const scanner = new JsonScanner(line);
  try {
    scanner.begin();
    readRow(line, scanner, from, builder);
    scanner.end();
  } catch (error) {
    if (error instanceof OffsetFault) throw new OffsetFault(from + error.offset, error.what);
    throw error;
  }
}

/** @param from offset of what the scanner walks over, in the text of the file */
function readRow(text: string, scanner: JsonScanner, from: number, builder: TableBuilder): void {
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
    else cells.set(wellFormed(columnInPeer(name)), value);
  }
  builder.addRow(pk, cells, from + at, keyAt);
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
  if (written.startsWith('"')) return wellFormed(String(JSON.parse(written)));
  return written === 'null' ? '' : written;
}

interface Field {
  readonly text: string;
  /** Offset of its beginning. */
  readonly at: number;
}

/**
 * Reads CSV as RFC 4180 has it, lines ended by CRLF or LF, and passes over empty lines; yields its offset after each record.
 *
 * @throws OffsetFault
 */
function* readCsv(text: string, builder: TableBuilder): Generator<number, void> {
  const scanner = new CsvScanner(text);
  const header = scanner.record();
  if (header === undefined) throw new OffsetFault(0, 'nothing: the file is empty');
  const keyPlace = checkHeader(header);
  const columns = header.map(({ text: name }) => columnInPeer(name));
  for (const [i, column] of columns.entries()) if (i !== keyPlace) builder.addColumn(column);
  for (let record = scanner.record(); record !== undefined; record = scanner.record()) {
    if (record.length !== columns.length) {
      const fields = `${record.length} ${record.length === 1 ? 'field' : 'fields'}`;
      const at = record[columns.length]?.at ?? scanner.end;
      throw new OffsetFault(at, `${fields} where the header has ${columns.length}`);
    }
    const cells = new Map<string, string>();
    for (const [i, column] of columns.entries()) if (i !== keyPlace) cells.set(column, record[i]?.text ?? '');
    const key = record[keyPlace];
    builder.addRow(key?.text ?? '', cells, record[0]?.at ?? 0, key?.at ?? 0);
    yield scanner.end;
  }
}

/** @returns which field is the key */
function checkHeader(names: readonly Field[]): number {
  const seen = new Set<string>();
  for (const { text, at } of names) {
    if (text === '') throw new OffsetFault(at, 'a column without a name');
    if (seen.has(text)) throw new OffsetFault(at, `the column ${JSON.stringify(text)} for the second time`);
    seen.add(text);
  }
  const keyPlace = names.findIndex(({ text }) => text === KEY_COLUMN);
  if (keyPlace !== -1) return keyPlace;
  const [first] = names;
  const other = names.length === 1 && /^pk(?<separator>[;\t|])/.exec(first?.text ?? '')?.groups?.separator;
  const why = other ? `: fields are separated by ${JSON.stringify(other)}, and should be by ","` : '';
  throw new OffsetFault(first?.at ?? 0, `a header without the key column "${KEY_COLUMN}"${why}`);
}

/** Walks over CSV once, record by record. */
class CsvScanner {
  readonly #text: string;
  #at = 0;
  #end = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the last record ended, before its line break. */
  get end(): number {
    return this.#end;
  }

  /** The next record that is no empty line; undefined at the end. */
  record(): readonly Field[] | undefined {
    while (this.#lineBreak());
    if (this.#at === this.#text.length) return undefined;
    const fields = [this.#field()];
    while (this.#text[this.#at] === ',') {
      this.#at += 1;
      fields.push(this.#field());
    }
    this.#end = this.#at;
    if (this.#at < this.#text.length && !this.#lineBreak()) {
      throw new OffsetFault(this.#at, 'a line that ends with CR alone: lines end with CRLF or LF');
    }
    return fields;
  }

  #field(): Field {
    const at = this.#at;
    if (this.#text[at] === '"') return { text: this.#quoted(), at };
    const end = this.#until(/[",\r\n]/g);
    if (this.#text[end] === '"') {
      const what = 'a quote in a field without quotes around it: write it twice, within quotes';
      throw new OffsetFault(end, what);
    }
    this.#at = end;
    return { text: this.#text.slice(at, end), at };
  }

  #quoted(): string {
    const opened = this.#at;
    let end = this.#text.indexOf('"', opened + 1);
    while (end !== -1 && this.#text[end + 1] === '"') end = this.#text.indexOf('"', end + 2);
    if (end === -1) throw new OffsetFault(opened, 'a quote that is never closed');
    this.#at = end + 1;
    if (this.#until(/[,\r\n]/g) !== this.#at) {
      throw new OffsetFault(this.#at, 'something after the closing quote of a field');
    }
    return this.#text.slice(opened + 1, end).replaceAll('""', '"');
  }

  #until(pattern: RegExp): number {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.index ?? this.#text.length;
  }

  #lineBreak(): boolean {
    const length = this.#text.startsWith('\r\n', this.#at) ? 2 : this.#text[this.#at] === '\n' ? 1 : 0;
    this.#at += length;
    return length > 0;
  }
}
