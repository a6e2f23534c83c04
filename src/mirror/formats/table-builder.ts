import { OffsetFault } from '../../lib/json.js';
import type { TableText, TextRow } from './read.js';

/** Gathers the rows of a file that is read. */
export class TableBuilder {
  readonly #columns = new Set<string>();
  readonly #rows: TextRow[] = [];
  /** In which line each key stands. */
  readonly #keys = new Map<string, number>();

  get table(): TableText {
    return { columns: [...this.#columns], rows: this.#rows };
  }

  addColumn(column: string): void {
    this.#columns.add(column);
  }

  /**
   * @param keyAt offset of the key, for the fault
   * @throws OffsetFault when another row has this key
   */
  addRow(row: TextRow, keyAt: number): void {
    if (row.pk !== '') {
      const before = this.#keys.get(row.pk);
      if (before !== undefined) {
        throw new OffsetFault(
          keyAt,
          `the key ${JSON.stringify(row.pk)} for the second time: it stands in line ${before} already`,
        );
      }
      this.#keys.set(row.pk, row.line);
    }
    for (const column of row.cells.keys()) this.addColumn(column);
    this.#rows.push(row);
  }
}

/** Tells the lines of offsets that only grow. */
export class LineCounter {
  readonly #text: string;
  #line = 1;
  #from = 0;

  constructor(text: string) {
    this.#text = text;
  }

  lineAt(offset: number): number {
    for (;;) {
      const end = this.#text.indexOf('\n', this.#from);
      if (end === -1 || end >= offset) return this.#line;
      this.#line += 1;
      this.#from = end + 1;
    }
  }
}
