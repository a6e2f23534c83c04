/** One row of a table of the peer. */
export interface TableRow {
  /** Its key: unique in the table, opaque. */
  readonly pk: string;
  /** By column. A cell that is not there is as good as an empty one: peers do not tell the two apart. */
  readonly cells: ReadonlyMap<string, string>;
}

/** Which rows of which table. What is not given is not sent. */
export interface TableQuery {
  readonly table: string;
  /** Most rows; all of them unless given. */
  readonly count?: number;
  /** Only rows in which a cell holds this; how it is read is the peer's business (YaCy: a regular expression). */
  readonly search?: string;
}

/** A table as it comes in: rows in groups, in the peer's order, in bounded memory however many there are. */
export interface TableStream {
  /** What the peer calls it. */
  readonly name: string;
  /** The columns that the peer named ahead of the rows, without the key; undefined where it did not. */
  readonly columns: readonly string[] | undefined;
  readonly rows: AsyncIterable<readonly TableRow[]>;
}

/** A whole table in memory. */
export interface Table {
  readonly name: string;
  /** All columns, in the order in which the peer showed them first. */
  readonly columns: readonly string[];
  readonly rows: readonly TableRow[];
}
