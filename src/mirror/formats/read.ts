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

export interface ReadOptions {
  /** Whether the file was written so: the ' in front of formulas is taken off again (CSV only). */
  readonly neutralise: boolean;
}
