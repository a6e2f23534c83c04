import type { TableRow } from '../../peer/table.js';

/** Writes and reads tables in one format. */
export interface TableCodec {
  /** Yields the text of a table. Every row has every column, and an absent cell is empty. */
  readonly write: (table: WrittenTable, rows: Rows) => AsyncIterable<string>;
  /**
   * Yields the rows of an edited file. Adds columns to `columns` that no row may name. Undefined
   * for a format that cannot be edited.
   *
   * @throws OffsetFault
   */
  readonly read?: (text: string, columns: Set<string>) => Iterable<PositionedRow>;
  /** Whether a file without rows names its columns. */
  readonly namesColumnsWithoutRows: boolean;
}

/** Writes and reads tables in a format that can be edited. */
export type EditableCodec = Required<TableCodec>;

/** The options of a written table. */
export interface WrittenTable {
  readonly name: string;
  /**
   * The columns in the order of the file, without the key, which comes first. Cells of other
   * columns are left out.
   */
  readonly columns: readonly string[];
  /** Whether cells that look like formulas get a ' in front (CSV only). @default false */
  readonly neutralise?: boolean;
  /** The line ends (CSV only). @default 'lf' */
  readonly newline?: 'lf' | 'crlf';
}

/** Rows in groups. */
export type Rows = AsyncIterable<readonly TableRow[]>;

/** The name of the key column in files. */
export const KEY_COLUMN = 'pk';

/**
 * Returns the name of a column in files. A name like the one of the key column gets one "_" more.
 */
export function columnInFile(column: string): string {
  return /^pk_*$/.test(column) ? `${column}_` : column;
}

/** Returns the name in the peer of a column of a file. */
export function columnInPeer(column: string): string {
  return /^pk_+$/.test(column) ? column.slice(0, -1) : column;
}

/** A table that was read from a file. */
export interface TableText {
  /** The columns with their names in the peer, without the key, in the order of the file. */
  readonly columns: readonly string[];
  readonly rows: readonly TextRow[];
}

export interface TextRow {
  /** The key, empty for a new row. */
  readonly pk: string;
  /** The cells, empty ones too. A column that a JSON row does not name is absent. */
  readonly cells: ReadonlyMap<string, string>;
  /** The line in which the row begins, from 1. */
  readonly line: number;
}

/** A row with its position in the text. */
export interface PositionedRow extends Pick<TextRow, 'pk' | 'cells'> {
  /** The offset of the row, not less than the one of the row before. */
  readonly at: number;
  /** The offset of the key. */
  readonly keyAt: number;
}
