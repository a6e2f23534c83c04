/** What the column of the keys is called in files. */
export const KEY_COLUMN = 'pk';

/** What a column of the peer is called in a file: one that is called like the key column gets one "_" more. */
export function columnInFile(column: string): string {
  return /^pk_*$/.test(column) ? `${column}_` : column;
}

/** What a column of a file is called in the peer. */
export function columnInPeer(column: string): string {
  return /^pk_+$/.test(column) ? column.slice(0, -1) : column;
}
