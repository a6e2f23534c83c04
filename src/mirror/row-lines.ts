import type { TableRow } from '../peer/table.js';

/**
 * Rows as lines of text: a JSON list of the key, then of each cell that is not empty the number of its column and its text.
 * Columns get their numbers as they come up.
 */
export class RowLines {
  readonly #numbers = new Map<string, number>();
  readonly #columns: string[] = [];

  /** In the order in which they came up. */
  get columns(): readonly string[] {
    return this.#columns;
  }

  line({ pk, cells }: TableRow): string {
    const parts: (string | number)[] = [pk];
    for (const [column, text] of cells) {
      const number = this.#number(column);
      if (text !== '') parts.push(number, text);
    }
    return JSON.stringify(parts);
  }

  /** What `line` was given; empty cells are absent. */
  rows(lines: readonly string[]): TableRow[] {
    const lists = JSON.parse(`[${lines.join(',')}]`) as readonly (readonly [string, ...unknown[]])[];
    return lists.map(([pk, ...parts]) => ({ pk, cells: this.#cells(parts) }));
  }

  #cells(parts: readonly unknown[]): Map<string, string> {
    const cells = new Map<string, string>();
    for (let i = 0; i < parts.length; i += 2) {
      const column = this.#columns[Number(parts[i])];
      if (column !== undefined) cells.set(column, String(parts[i + 1]));
    }
    return cells;
  }

  #number(column: string): number {
    const known = this.#numbers.get(column);
    if (known !== undefined) return known;
    const number = this.#columns.push(column) - 1;
    this.#numbers.set(column, number);
    return number;
  }
}
