import { setImmediate } from 'node:timers/promises';
import { OffsetFault, positionOf } from '../../lib/json.js';
import { decode } from './decode.js';
import { readCsv } from './read-csv.js';
import { readJson, readNdjson } from './read-json.js';
import { TableBuilder } from './table-builder.js';
import type { TableFormat } from './write.js';

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

/** Where a file stops being a table, and why; lines and columns (characters) count from 1. */
export interface TableFault {
  readonly line: number;
  readonly column: number;
  /** What stands there and what would be right, as one phrase. */
  readonly what: string;
}

/** Formats that can be edited. */
export type EditableFormat = Exclude<TableFormat, 'xml'>;

export type ReadResult = { readonly table: TableText } | { readonly fault: TableFault };

/** Characters that are read without a pause: a few milliseconds of work. */
const AT_ONCE = 2 ** 18;

/**
 * Reads a file that a person may have edited, strictly: every fault is told with its place, and nothing is guessed. A row
 * without key is a new row. Nothing is read of a file with a fault.
 */
export async function readTable(format: EditableFormat, bytes: Uint8Array): Promise<ReadResult> {
  const decoded = decode(bytes);
  if ('fault' in decoded) return decoded;
  const { text } = decoded;
  const builder = new TableBuilder();
  try {
    let pauseAt = AT_ONCE;
    for (const at of reader(format, text, builder)) {
      if (at < pauseAt) continue;
      pauseAt = at + AT_ONCE;
      await setImmediate();
    }
  } catch (error) {
    if (error instanceof OffsetFault)
      return { fault: { ...positionOf(text, error.offset), what: error.what } };
    throw error;
  }
  return { table: builder.table };
}

function reader(format: EditableFormat, text: string, builder: TableBuilder): Iterable<number> {
  switch (format) {
    case 'csv':
      return readCsv(text, builder);
    case 'json':
      return readJson(text, builder);
    case 'ndjson':
      return readNdjson(text, builder);
  }
}
