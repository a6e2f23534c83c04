import { randomInt } from 'node:crypto';

/**
 * A key for a new row of a table: 12 of `0-9a-z`, which sort by time. @param now in ms since the
 * epoch
 */
export function newRowKey(now: number): string {
  const chance = randomInt(36 ** 4).toString(36);
  return now.toString(36).padStart(8, '0').slice(-8) + chance.padStart(4, '0');
}
