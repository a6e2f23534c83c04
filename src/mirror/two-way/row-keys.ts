import { createHash } from 'node:crypto';
import { withPauses } from '../../lib/slices.js';
import type { TableRow } from '../../peer/table.js';
import type { Cells } from './merge.js';

const KEY_LENGTH = 12;

/**
 * Gives new rows their keys: 12 characters of `0-9a-z`, derived from the content of the row.
 *
 * - A run that is repeated after a crash derives the same key, and adds no row twice.
 * - Equal rows get different keys.
 * - A key that the base has belongs to an older row, and is not used.
 * - A new row without content is left out: spreadsheets like to leave such lines.
 *
 * @param isTaken whether the base has a row of this key
 * @param salt differs between mirrors, so that equal rows of two mirrors become two rows
 * @returns all rows by their keys
 */
export async function assignKeys(
  rows: readonly TableRow[],
  isTaken: (pk: string) => boolean,
  salt: string,
): Promise<ReadonlyMap<string, Cells>> {
  const keyed = new Map<string, Cells>();
  for (const { pk, cells } of rows) if (pk !== '') keyed.set(pk, cells);
  /** The next occurrence to try, by content. */
  const occurrences = new Map<string, number>();
  for await (const { pk, cells } of withPauses(rows)) {
    const filled = pk === '' ? [...cells].filter(([, value]) => value !== '') : [];
    if (filled.length === 0) continue;
    // Rows with the same cells have the same content, in any order of columns.
    const content = JSON.stringify(filled.sort(([a], [b]) => (a < b ? -1 : 1)));
    let occurrence = occurrences.get(content) ?? 0;
    let key = generatedKey(salt, content, occurrence);
    while (keyed.has(key) || isTaken(key)) {
      occurrence += 1;
      key = generatedKey(salt, content, occurrence);
    }
    occurrences.set(content, occurrence + 1);
    keyed.set(key, cells);
  }
  return keyed;
}

function generatedKey(salt: string, content: string, occurrence: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([salt, content, occurrence]))
    .digest('hex');
  // 15 hexadecimal digits are 60 bits. 12 digits to base 36 hold 62.
  return BigInt(`0x${hash.slice(0, 15)}`)
    .toString(36)
    .padStart(KEY_LENGTH, '0');
}
