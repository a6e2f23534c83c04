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
