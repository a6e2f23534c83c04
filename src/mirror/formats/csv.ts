import { OffsetFault } from '../../lib/json.js';
import {
  columnInFile,
  columnInPeer,
  type EditableCodec,
  KEY_COLUMN,
  type PositionedRow,
  type Rows,
  type WrittenTable,
} from './table-text.js';

/** CSV (RFC 4180) in UTF-8, with a header. */
export const csv: EditableCodec = {
  write: writeCsv,
  read: readCsvRows,
  namesColumnsWithoutRows: true,
};

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

interface Field {
  readonly text: string;
  /** The offset of its first character. */
  readonly at: number;
}

interface CsvRecord {
  readonly fields: readonly Field[];
  /** The offset of its end, before the line break. */
  readonly end: number;
}

/**
 * Reads the rows of a CSV file. The header names the columns.
 *
 * @param columns gets the names of the header, which a file without rows has too
 * @throws OffsetFault
 */
function* readCsvRows(text: string, columns: Set<string>): Generator<PositionedRow, void> {
  const records = new CsvReader(text).records();
  const header = records.next().value;
  if (!header) throw new OffsetFault(0, 'nothing: the file is empty');
  const keyIndex = checkHeader(header.fields);
  const names = header.fields.map((field) => columnInPeer(field.text));
  for (const [i, name] of names.entries()) if (i !== keyIndex) columns.add(name);
  for (const record of records) {
    checkFieldCount(record, names.length);
    const { fields } = record;
    const cells = new Map<string, string>();
    for (const [i, name] of names.entries())
      if (i !== keyIndex) cells.set(name, fields[i]?.text ?? '');
    const { text: pk = '', at: keyAt = 0 } = fields[keyIndex] ?? {};
    yield { pk, cells, at: fields[0]?.at ?? 0, keyAt };
  }
}

/** Checks the names of the header. Returns the index of the key column. */
function checkHeader(fields: readonly Field[]): number {
  const seen = new Set<string>();
  for (const { text, at } of fields) {
    if (text === '') throw new OffsetFault(at, 'a column without a name');
    if (seen.has(text))
      throw new OffsetFault(at, `the column ${JSON.stringify(text)} for the second time`);
    seen.add(text);
  }
  const keyIndex = fields.findIndex(({ text }) => text === KEY_COLUMN);
  if (keyIndex !== -1) return keyIndex;
  const [first] = fields;
  const separator =
    fields.length === 1 ? /^pk(?<separator>[;\t|])/.exec(first?.text ?? '')?.groups?.separator : '';
  const reason = separator
    ? `: fields are separated by ${JSON.stringify(separator)}, and should be by ","`
    : '';
  const fault = `a header without the key column "${KEY_COLUMN}"${reason}`;
  throw new OffsetFault(first?.at ?? 0, fault);
}

function checkFieldCount({ fields, end }: CsvRecord, expected: number): void {
  if (fields.length === expected) return;
  const count = `${fields.length} ${fields.length === 1 ? 'field' : 'fields'}`;
  const at = fields[expected]?.at ?? end;
  throw new OffsetFault(at, `${count} where the header has ${expected}`);
}

/**
 * Splits CSV (RFC 4180) into records. Lines end with CRLF or LF, and empty lines are skipped.
 *
 * This reader is our own because a condition names line and column of a fault. csv-parse 7.0
 * reports a quote that is never closed at the end of the file. It counts a CRLF within quotes as
 * two lines, accepts a lone CR, and takes twice as long (16 MB: 552 ms instead of 254 ms).
 */
class CsvReader {
  #at = 0;

  constructor(private readonly text: string) {}

  /** @throws OffsetFault */
  *records(): Generator<CsvRecord, void> {
    for (;;) {
      while (this.#skipLineBreak());
      if (this.#isAtEnd()) return;
      const fields = [this.#field()];
      while (this.text[this.#at] === ',') {
        this.#at += 1;
        fields.push(this.#field());
      }
      const end = this.#at;
      if (!this.#isAtEnd() && !this.#skipLineBreak()) {
        throw new OffsetFault(end, 'a line that ends with CR alone: lines end with CRLF or LF');
      }
      yield { fields, end };
    }
  }

  #field(): Field {
    return this.text[this.#at] === '"' ? this.#quotedField() : this.#plainField();
  }

  #plainField(): Field {
    const at = this.#at;
    this.#at = this.#next(/[",\r\n]/g);
    if (this.text[this.#at] === '"') {
      const fault = 'a quote in a field without quotes around it: write it twice, within quotes';
      throw new OffsetFault(this.#at, fault);
    }
    return { text: this.text.slice(at, this.#at), at };
  }

  #quotedField(): Field {
    const at = this.#at;
    let end = this.text.indexOf('"', at + 1);
    while (end !== -1 && this.text[end + 1] === '"') end = this.text.indexOf('"', end + 2);
    if (end === -1) throw new OffsetFault(at, 'a quote that is never closed');
    this.#at = end + 1;
    if (this.#next(/[,\r\n]/g) !== this.#at) {
      throw new OffsetFault(this.#at, 'something after the closing quote of a field');
    }
    return { text: this.text.slice(at + 1, end).replaceAll('""', '"'), at };
  }

  #skipLineBreak(): boolean {
    const length = this.text.startsWith('\r\n', this.#at)
      ? 2
      : this.text[this.#at] === '\n'
        ? 1
        : 0;
    this.#at += length;
    return length > 0;
  }

  /** Returns the offset of the next match, or the end of the text. */
  #next(pattern: RegExp): number {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.text)?.index ?? this.text.length;
  }

  #isAtEnd(): boolean {
    return this.#at === this.text.length;
  }
}
