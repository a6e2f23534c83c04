import { OffsetFault } from '../../lib/json.js';
import { columnInPeer, KEY_COLUMN } from './key-column.js';
import { LineCounter, type TableBuilder } from './table-builder.js';

interface Field {
  readonly text: string;
  /** Offset of its beginning. */
  readonly at: number;
}

/**
 * Reads CSV as RFC 4180 has it into a builder, lines ended by CRLF or LF, and passes over empty lines; yields its offset after
 * each record.
 *
 * @throws OffsetFault
 */
export function* readCsv(text: string, builder: TableBuilder): Generator<number, void> {
  const scanner = new CsvScanner(text);
  const lines = new LineCounter(text);
  const header = scanner.record();
  if (header === undefined) throw new OffsetFault(0, 'nothing: the file is empty');
  const keyPlace = checkHeader(header);
  const columns = header.map(({ text: name }) => columnInPeer(name));
  for (const [i, column] of columns.entries()) if (i !== keyPlace) builder.addColumn(column);
  for (let record = scanner.record(); record !== undefined; record = scanner.record()) {
    checkCount(record, columns.length, scanner.at);
    const cells = new Map<string, string>();
    for (const [i, column] of columns.entries()) {
      if (i !== keyPlace) cells.set(column, record[i]?.text ?? '');
    }
    const key = record[keyPlace];
    const line = lines.lineAt(record[0]?.at ?? 0);
    builder.addRow({ pk: key?.text ?? '', cells, line }, key?.at ?? 0);
    yield scanner.at;
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

function checkCount(record: readonly Field[], count: number, end: number): void {
  if (record.length === count) return;
  const fields = `${record.length} ${record.length === 1 ? 'field' : 'fields'}`;
  throw new OffsetFault(record[count]?.at ?? end, `${fields} where the header has ${count}`);
}

/** Walks over CSV once, record by record. */
class CsvScanner {
  readonly #text: string;
  #at = 0;
  /** Where the last record ended, before its line break. */
  #end = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where the last record ended, before its line break. */
  get at(): number {
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
      throw new OffsetFault(
        end,
        'a quote in a field without quotes around it: write it twice, within quotes',
      );
    }
    this.#at = end;
    return { text: this.#text.slice(at, end), at };
  }

  #quoted(): string {
    const opened = this.#at;
    let end = this.#text.indexOf('"', opened + 1);
    let doubled = false;
    while (end !== -1 && this.#text[end + 1] === '"') {
      doubled = true;
      end = this.#text.indexOf('"', end + 2);
    }
    if (end === -1) throw new OffsetFault(opened, 'a quote that is never closed');
    this.#at = end + 1;
    if (this.#until(/[,\r\n]/g) !== this.#at) {
      throw new OffsetFault(this.#at, 'something after the closing quote of a field');
    }
    const inner = this.#text.slice(opened + 1, end);
    return doubled ? inner.replaceAll('""', '"') : inner;
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
