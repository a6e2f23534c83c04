import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Grid } from './merge.js';

const NEWLINE = 0x0a;
/** Rows that are read or written without giving way to other work. */
const ROWS_A_TURN = 500;

/** Stands for the rows of a table: equal where they are, in the same order. */
export async function digestOf(grid: Grid): Promise<string> {
  const hash = createHash('sha256');
  hash.update(JSON.stringify(grid.columns));
  for await (const text of lines(grid)) hash.update(text);
  return hash.digest('hex');
}

/** A line for each row, some hundred at a time. */
export async function* lines({ columns, rows }: Grid): AsyncGenerator<string> {
  let text = '';
  let gathered = 0;
  for (const [pk, cells] of rows) {
    text += `${JSON.stringify([pk, ...columns.map((column) => cells.get(column) ?? '')])}\n`;
    gathered += 1;
    if (gathered % ROWS_A_TURN !== 0) continue;
    yield text;
    text = '';
    await nextTurn();
  }
  yield text;
}

/** The rows that `lines` wrote. */
export async function gridOf(lines: Buffer, columns: readonly string[]): Promise<Grid> {
  const rows = new Map<string, ReadonlyMap<string, string>>();
  for (let at = 0; at < lines.length; ) {
    const end = lines.indexOf(NEWLINE, at);
    const [pk = '', ...values] = JSON.parse(lines.toString('utf8', at, end)) as string[];
    const cells = new Map<string, string>();
    values.forEach((value, i) => {
      const column = columns[i];
      if (column !== undefined && value !== '') cells.set(column, value);
    });
    rows.set(pk, cells);
    at = end + 1;
    if (rows.size % ROWS_A_TURN === 0) await nextTurn();
  }
  return { columns, rows };
}
