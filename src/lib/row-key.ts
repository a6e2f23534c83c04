import { randomInt } from 'node:crypto';

/**
 * Returns a key for a new row of a table: 12 characters of `0-9a-z`. Keys sort by time.
 *
 * @param now ms since the epoch
 */
export function newRowKey(now: number): string {
  const chance = randomInt(36 ** 4).toString(36);
  return now.toString(36).padStart(8, '0').slice(-8) + chance.padStart(4, '0');
}
