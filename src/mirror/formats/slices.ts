import type { TableRow } from '../../peer/table.js';
import type { Rows } from './write.js';

/** Cells that are turned into text at once: about a millisecond of work. */
const CELLS = 4000;

/** The same rows in groups small enough that the event loop is not held up, however wide the table. */
export async function* slices(rows: Rows, columns: number): AsyncGenerator<readonly TableRow[]> {
  const most = Math.max(1, Math.floor(CELLS / (columns + 1)));
  for await (const group of rows) {
    for (let from = 0; from < group.length; from += most) yield group.slice(from, from + most);
  }
}
