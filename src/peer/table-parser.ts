import type { TableRow } from './table.js';

/** What stands ahead of the rows. */
export interface TableHead {
  /** What the peer calls the table; undefined where it does not say. */
  readonly name: string | undefined;
  /** Without the key; undefined where the peer did not name them ahead. */
  readonly columns: readonly string[] | undefined;
}

/** Reads a table of one form while it comes in. It holds what it was given since the last whole row, and no more. */
export interface TableParser {
  /** Known once the rows begin; still undefined at the end where the answer shows no table. */
  readonly head: TableHead | undefined;
  /** Rows that came whole, for the owner to take out. */
  readonly rows: TableRow[];
  /** @throws Unreadable */
  write(bytes: Buffer): void;
  /** @throws Unreadable when the answer broke off, or is about something else */
  end(): void;
}

/** Deeper answers are no tables. */
export const DEEPEST = 64;
/** Elements with more attributes belong to no table. */
export const MOST_ATTRIBUTES = 1000;

/** Keys of a fixed width come padded with NUL (YaCy); no key ends with one otherwise. */
export function unpadded(key: string): string {
  let end = key.length;
  while (key.charCodeAt(end - 1) === 0) end -= 1;
  return key.slice(0, end);
}

export type Attributes = Readonly<Record<string, string>>;

/** An attribute, or `<name>-base64` where markup cannot hold its text. */
export function textAttribute(attributes: Attributes, name: string): string | undefined {
  const base64 = attributes[`${name}-base64`];
  return base64 === undefined ? attributes[name] : ofBase64(base64);
}

/** The text of which base64 gives the bytes in UTF-8. */
export function ofBase64(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}
