import type { Database } from './database.js';

/** Terms of the index with the number of documents that have them, in order. */
export const TERMS = 'SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ?';

/** Returns the bounds of the terms that begin with a prefix, for `>=` and `<`. */
export function rangeOf(prefix: string): [from: string, to: string] {
  return [prefix, `${prefix}\u{10ffff}`];
}

/** Whether a document has this term, or a term with this prefix. */
export function isInVocabulary(word: string, isPrefix: boolean, database: Database): boolean {
  const [from, to] = isPrefix ? rangeOf(word) : [word, word];
  const sql = 'SELECT 1 AS found FROM vocabulary WHERE term >= ? AND term <= ? LIMIT 1';
  return database.row(sql, from, to) !== undefined;
}
