import { isUtf8 } from 'node:buffer';
import type { EditableFormat, TableFormat } from '../../config/mirror-schema.js';
import { type JsonFault, OffsetFault, positionOf } from '../../lib/json.js';
import { nextTurn } from '../../lib/slices.js';
import type { TableRow } from '../../peer/table.js';
import { csv } from './csv.js';
import { json, ndjson } from './json.js';
import type {
  EditableCodec,
  Rows,
  TableCodec,
  TableText,
  TextRow,
  WrittenTable,
} from './table-text.js';
import { xml } from './xml.js';

/**
 * The formats by their names in the configuration. A new format is one file here, one line below,
 * and its name in `config/mirror-schema.ts`.
 */
export const FORMATS: Readonly<
  Record<TableFormat, TableCodec> & Record<EditableFormat, EditableCodec>
> = { csv, json, ndjson, xml };

/** Yields the text of a table. Every row has every column, and an absent cell is empty. */
export function writeTable(
  format: TableFormat,
  table: WrittenTable,
  rows: Rows,
): AsyncIterable<string> {
  return FORMATS[format].write(table, slicesOf(rows, table.columns.length));
}

/** Whether a file of this format names its columns even without rows. */
export function namesColumnsWithoutRows(format: TableFormat): boolean {
  return FORMATS[format].namesColumnsWithoutRows;
}

/** The cells that are formatted between two pauses: about a millisecond of work. */
const CELLS_PER_SLICE = 4000;

/** Splits groups of rows, so that a wide table does not block the event loop. */
async function* slicesOf(rows: Rows, columns: number): AsyncGenerator<readonly TableRow[]> {
  const most = Math.max(1, Math.floor(CELLS_PER_SLICE / (columns + 1)));
  for await (const group of rows) {
    for (let from = 0; from < group.length; from += most) yield group.slice(from, from + most);
  }
}

/** A table, or the first fault of the file. */
type ReadResult = { readonly table: TableText } | { readonly fault: JsonFault };

/** The characters that are parsed between two pauses: a few milliseconds of work. */
const CHARACTERS_PER_SLICE = 2 ** 18;

/**
 * Reads a file that a person may have edited. It is strict: the first fault ends it with a
 * position, and nothing is guessed. A row without a key is a new row.
 *
 * @throws TypeError for a format that cannot be edited
 */
export async function readTable(format: TableFormat, bytes: Uint8Array): Promise<ReadResult> {
  const { read } = FORMATS[format];
  if (read === undefined) throw new TypeError(`A file in ${format} cannot be edited`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    .toString()
    .replace(/^\ufeff/, '');
  try {
    checkEncoding(bytes, text);
    return { table: await readRows(read, text) };
  } catch (error) {
    if (!(error instanceof OffsetFault)) throw error;
    return { fault: { ...positionOf(text, error.offset), what: error.what } };
  }
}

/** @throws OffsetFault, also for a key that is there twice */
async function readRows(read: EditableCodec['read'], text: string): Promise<TableText> {
  const columns = new Set<string>();
  const rows: TextRow[] = [];
  const lines = new LineCounter(text);
  /** The line of each key. */
  const lineOfKey = new Map<string, number>();
  let pauseAt = CHARACTERS_PER_SLICE;
  for (const { pk, cells, at, keyAt } of read(text, columns)) {
    const line = lines.lineOf(at);
    const before = pk === '' ? undefined : lineOfKey.get(pk);
    if (before !== undefined) {
      const key = `the key ${JSON.stringify(pk)}`;
      throw new OffsetFault(keyAt, `${key} for the second time: it is in line ${before} already`);
    }
    lineOfKey.set(pk, line);
    for (const column of cells.keys()) columns.add(column);
    rows.push({ pk, cells, line });
    if (at < pauseAt) continue;
    pauseAt = at + CHARACTERS_PER_SLICE;
    await nextTurn();
  }
  return { columns: [...columns], rows };
}

/** Finds the lines of growing offsets. */
class LineCounter {
  #line = 1;
  #lineEnd: number;

  constructor(private readonly text: string) {
    this.#lineEnd = text.indexOf('\n');
  }

  /** @param offset not less than the one before */
  lineOf(offset: number): number {
    while (this.#lineEnd !== -1 && this.#lineEnd < offset) {
      this.#line += 1;
      this.#lineEnd = this.text.indexOf('\n', this.#lineEnd + 1);
    }
    return this.#line;
  }
}

/**
 * Refuses text that is not UTF-8.
 *
 * @param text the decoded bytes, with U+FFFD for what cannot be decoded
 * @throws OffsetFault
 */
function checkEncoding(bytes: Uint8Array, text: string): void {
  if (isUtf8(bytes)) return;
  const [first, second] = bytes;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  const encoding = isUtf16 ? 'UTF-16' : 'no UTF-8';
  throw new OffsetFault(text.indexOf('\ufffd'), `${encoding}: save the file as UTF-8`);
}
