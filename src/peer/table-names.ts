import { randomInt } from 'node:crypto';
import { wellFormed } from '../lib/text.js';
import type { TableRow } from './table.js';
import { quoted } from './table-words.js';

/** Names of tables, keys and columns are not longer, in UTF-16 code units. */
const LONGEST_NAME = 500;

/** @throws TypeError for a name that no peer can have: empty, longer than 500, not well-formed */
export function checkName(what: 'table' | 'key' | 'column', name: string): void {
  if (name.length > 0 && name.length <= LONGEST_NAME && wellFormed(name) === name) return;
  throw new TypeError(
    `a ${what} has 1 to ${LONGEST_NAME} well-formed characters, not ${name.length}: ${quoted(name)}`,
  );
}

/**
 * What stands behind a key in NULs is taken for padding when it is read back: it would be another row's key.
 *
 * @throws TypeError
 */
export function checkKey(pk: string): void {
  checkName('key', pk);
  if (pk.endsWith('\0')) throw new TypeError(`a key does not end with NUL: ${quoted(pk)}`);
}

/** A row as it can travel: its cells well-formed. @throws TypeError */
export function checkedRow({ pk, cells }: TableRow): TableRow {
  checkKey(pk);
  for (const column of cells.keys()) checkName('column', column);
  return { pk, cells: new Map([...cells].map(([column, value]) => [column, wellFormed(value)])) };
}

/** 12 of `0-9a-z`: time in ms, then chance. */
export function newKey(now: number): string {
  const time = now.toString(36).padStart(8, '0').slice(-8);
  return (
    time +
    randomInt(36 ** 4)
      .toString(36)
      .padStart(4, '0')
  );
}
