import { type Database, int } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import { wordsOf } from './words.js';

/** More documents than these are not counted and not ranked: for words that are nearly everywhere it would take too long. */
export const MOST_COUNTED = 10_000;
const MOST_TERMS = 32;
const LONGEST_QUERY = 1_000;

/** What a person or a program asks for. */
export interface SearchRequest {
  readonly query: string;
  /** Only documents of this collection; of all where it is empty. */
  readonly collection: string;
  readonly offset: number;
  readonly limit: number;
}

/** Which words of a text a query found. */
export interface Highlights {
  readonly isEmpty: boolean;
  /** @param word folded as in `words.ts` */
  has(word: string): boolean;
}

export interface SearchResult {
  /** At most MOST_COUNTED. */
  readonly total: number;
  /** False where there are more than `total`; then the newest come first, unranked. */
  readonly totalIsExact: boolean;
  /** Those from `offset` on, best first. */
  readonly found: readonly Document[];
  readonly highlights: Highlights;
}

/** Documents by their words, best first; the newest first where no words are given or more than MOST_COUNTED have them. */
export function findDocuments(
  { query, collection, limit, offset }: SearchRequest,
  database: Database,
  documents: DocumentStore,
): SearchResult {
  const { match, highlights } = parseQuery(query);
  const isWithin = collection !== '';
  let [total, totalIsExact, ids] = [0, true, [] as number[]];
  if (match !== undefined) {
    const within = 'EXISTS (SELECT 1 FROM memberships WHERE collection = ? AND document = words.rowid)';
    const where = `words MATCH ?${isWithin ? ` AND ${within}` : ''}`;
    const values = isWithin ? [match, collection] : [match];
    const counting = `SELECT count(*) AS total FROM (SELECT 1 FROM words WHERE ${where} LIMIT ${MOST_COUNTED + 1})`;
    const counted = int(database.row(counting, ...values), 'total');
    totalIsExact = counted <= MOST_COUNTED;
    total = Math.min(counted, MOST_COUNTED);
    const order = totalIsExact ? 'rank' : 'rowid DESC';
    const sql = `SELECT rowid FROM words WHERE ${where} ORDER BY ${order} LIMIT ? OFFSET ?`;
    ids = database.rows(sql, ...values, limit, offset).map((row) => int(row, 'rowid'));
  } else if (query.trim() === '') {
    total = documents.count(isWithin ? { collection } : 'documents');
    const from = isWithin
      ? 'document FROM memberships WHERE collection = ?'
      : 'id AS document FROM documents';
    const sql = `SELECT ${from} ORDER BY document DESC LIMIT ? OFFSET ?`;
    const rows = database.rows(sql, ...(isWithin ? [collection] : []), limit, offset);
    ids = rows.map((row) => int(row, 'document'));
  }
  const found = ids.map((id) => documents.find('id', id)).filter((document) => document !== undefined);
  return { total, totalIsExact, found, highlights };
}

/** A query as it is put to the index. */
export interface ParsedQuery {
  /** In FTS5's language; undefined where there is no word to look for. */
  readonly match: string | undefined;
  readonly highlights: Highlights;
}

/**
 * Reads a person's words: every word has to be there; "words in quotes" stand together. Only letters and digits reach FTS5,
 * each term in quotes, so no words can break or steer its language. Beginnings of words cannot be asked for: over
 * 200,000 documents `w1*` held everybody up for 17 s, where a word takes at most half of one.
 */
export function parseQuery(asked: string): ParsedQuery {
  const match: string[] = [];
  const highlights = new Set<string>();
  for (const [, phrase, word] of asked.slice(0, LONGEST_QUERY).matchAll(/"([^"]*)"|([^\s"]+)/g)) {
    const words = wordsOf(phrase ?? word ?? '');
    if (words.length === 0 || match.length >= MOST_TERMS) continue;
    match.push(`"${words.join(' ')}"`);
    for (const each of words) highlights.add(each);
  }
  const has = (word: string) => highlights.has(word);
  return {
    match: match.length > 0 ? match.join(' ') : undefined,
    highlights: { isEmpty: highlights.size === 0, has },
  };
}
