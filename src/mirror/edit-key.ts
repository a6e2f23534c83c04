import { createHash } from 'node:crypto';
import type { Cells, Grid } from './merge.js';

/** A row of an edited file; new where its key is empty. */
export interface EditedRow {
  readonly pk: string;
  readonly cells: Cells;
}

const KEY_LENGTH = 12;

/**
 * Gives new rows their keys: 12 characters [0-9a-z], made of what stands in the row. So a run that ended between the commit
 * of a row and the writing of the file finds the same key again, and adds nothing twice. Of equal rows each has its own, and
 * a key that `base` has is of a row that was there before. New rows without anything in them are left out: spreadsheets
 * like to leave such lines.
 *
 * @param salt differs between mirrors, so that two people who add equal rows add two
 */
export function withKeys(
  rows: readonly EditedRow[],
  columns: readonly string[],
  base: Grid | undefined,
  salt: string,
): Grid {
  const keyed = new Map<string, Cells>();
  for (const { pk, cells } of rows) if (pk !== '') keyed.set(pk, cells);
  const tries = new Map<string, number>();
  for (const { pk, cells } of rows) {
    if (pk !== '' || [...cells.values()].every((value) => value === '')) continue;
    const content = contentOf(cells);
    let occurrence = tries.get(content) ?? 0;
    let key = keyOf(salt, content, occurrence);
    while (keyed.has(key) || base?.rows.has(key)) {
      occurrence += 1;
      key = keyOf(salt, content, occurrence);
    }
    tries.set(content, occurrence + 1);
    keyed.set(key, cells);
  }
  return { columns, rows: keyed };
}

/** The same for rows with the same cells, in whatever order, with or without the empty ones. */
function contentOf(cells: Cells): string {
  const filled = [...cells].filter(([, value]) => value !== '');
  return JSON.stringify(filled.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function keyOf(salt: string, content: string, occurrence: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([salt, content, occurrence]))
    .digest('hex');
  // 15 hexadecimal digits make 60 bits; 12 digits to base 36 hold 62.
  return BigInt(`0x${hash.slice(0, 15)}`)
    .toString(36)
    .padStart(KEY_LENGTH, '0');
}
