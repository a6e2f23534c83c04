import { compareByCodePoint } from '../lib/text.js';
import type { TableRow } from '../peer/table.js';
import { KEY_COLUMN } from './formats/key-column.js';

/** By what a row is compared: the texts of the columns asked for, then its key. */
export type SortKey = readonly string[];

/** An order of rows: by columns, as text by code point, and by key where those are the same. */
export interface RowOrder {
  keyOf(row: TableRow): SortKey;
  /** Less than 0 where the first comes first. */
  compare(a: SortKey, b: SortKey): number;
}

/** @param columns by which rows are ordered, "pk" for the key; only by key unless given */
export function rowOrder(columns: readonly string[] = []): RowOrder {
  const of = columns.map((column) =>
    column === KEY_COLUMN ? (row: TableRow) => row.pk : (row: TableRow) => row.cells.get(column) ?? '',
  );
  return {
    keyOf: (row) => [...of.map((text) => text(row)), row.pk],
    compare(a, b) {
      for (let i = 0; i < a.length; i += 1) {
        const order = compareByCodePoint(a[i] ?? '', b[i] ?? '');
        if (order !== 0) return order;
      }
      return 0;
    },
  };
}
