import { type Database, int } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import {
  type Highlights,
  type ParsedQuery,
  parseQuery,
  prefixSearchOf,
  type Term,
} from './query.js';
import {
  BY_RANK,
  byDate,
  type Condition,
  conditionOf,
  newestFirst,
  type Scope,
  selectOf,
  without,
} from './query-sql.js';
import { corrected, isInVocabulary, isTooWide } from './vocabulary.js';

/**
 * The most documents that are counted and ranked. For words that occur nearly everywhere, more
 * would take too long.
 */
export const MAX_COUNTED = 10_000;

export interface SearchRequest {
  readonly query: string;
  /** Restricts the search to one collection; empty for all. */
  readonly collection: string;
  readonly offset: number;
  readonly limit: number;
  /**
   * `date` orders the newest first, by the date of the document itself, or else by the last change
   * of its content. @default 'rank'
   */
  readonly sort?: 'rank' | 'date';
}

export interface SearchResult {
  /** At most MAX_COUNTED. */
  readonly total: number;
  /**
   * False if there are more than `total`. The documents with the words in title or name then come
   * first, and the newest of the others follow.
   */
  readonly totalIsExact: boolean;
  /** The documents from `offset` on, best first. */
  readonly found: readonly Document[];
  readonly highlights: Highlights;
  /** The query that was answered instead, because nothing was found for a misspelt one. */
  readonly corrected?: string;
}

export interface SearchDeps {
  readonly database: Database;
  readonly documents: DocumentStore;
}

/**
 * Finds documents.
 *
 * - Up to MAX_COUNTED results of whole words are ranked.
 * - Of more results, or with a short prefix, those with the words in title or name are ranked
 *   first. The others follow, newest first.
 * - A query without words lists the newest documents.
 * - If nothing is found, words that no document has are replaced by the most similar ones.
 */
export function findDocuments(request: SearchRequest, deps: SearchDeps): SearchResult {
  const query = narrowed(parseQuery(request.query), deps.database);
  const result = run(query, request, deps);
  if (result.total > 0 || query.terms.length === 0) return result;
  const instead = corrected(request.query, query, deps.database);
  if (instead === undefined) return result;
  const second = run(narrowed(parseQuery(instead), deps.database), request, deps);
  return second.total > 0 ? { ...second, corrected: instead } : result;
}

/**
 * Returns the query without the spellings that no document has, and with prefixes that are too wide
 * as whole words.
 */
function narrowed(query: ParsedQuery, database: Database): ParsedQuery {
  const narrowedTerm = (term: Term): Term => {
    const [word = '', ...others] = term.variants;
    const known = others.filter((other) => isInVocabulary(other, term.isPrefix, database));
    const spelt = { ...term, variants: term.words.length === 1 ? [word, ...known] : term.variants };
    const isExpanded = prefixSearchOf(spelt) === 'expanded';
    const isNarrow = !isExpanded || !isTooWide(term.words.at(-1) ?? '', database);
    return isNarrow ? spelt : { ...spelt, isPrefix: false };
  };
  return {
    ...query,
    terms: query.terms.map(narrowedTerm),
    excluded: query.excluded.map(narrowedTerm),
  };
}

function run(parsed: ParsedQuery, request: SearchRequest, deps: SearchDeps): SearchResult {
  const { database, documents } = deps;
  const { excluded, highlights, terms, urls } = parsed;
  const collections = [request.collection, ...parsed.collections].filter((name) => name !== '');
  const query: ParsedQuery = { ...parsed, collections };
  const hasWords = terms.length + excluded.length > 0;
  const isEmpty = !hasWords && urls.length + collections.length === 0;
  // Punctuation alone finds nothing. A query of spaces lists all documents.
  if (isEmpty && request.query.trim() !== '')
    return { total: 0, totalIsExact: true, found: [], highlights };

  const all = conditionOf(query, 'all');
  const hasStoredCount = !hasWords && urls.length === 0 && collections.length < 2;
  const [collection] = collections;
  const stored = collection === undefined ? 'documents' : ({ collection } as const);
  const total = hasStoredCount ? documents.count(stored) : countOf(all, database);
  const isFew = total <= MAX_COUNTED;
  return {
    total: hasStoredCount ? total : Math.min(total, MAX_COUNTED),
    totalIsExact: hasStoredCount || isFew,
    found: pageOf(query, request, isFew, database)
      .map((id) => documents.find('id', id))
      .filter((document) => document !== undefined),
    highlights,
  };
}

/** Returns the ids of the documents of one page, in order. */
function pageOf(
  query: ParsedQuery,
  { limit, offset, sort = 'rank' }: SearchRequest,
  isFew: boolean,
  database: Database,
): number[] {
  const all = conditionOf(query, 'all');
  const newest = (): number[] => pick(all, newestFirst(all), { limit, offset }, database);
  if (sort === 'date' && isFew) return pick(all, byDate(all), { limit, offset }, database);
  if (sort === 'date' || query.terms.length === 0) return newest();
  if (isFew && all.source === 'words') return pick(all, BY_RANK, { limit, offset }, database);

  const hasPrefix = query.terms.some((term) => term.isPrefix);
  const scopes: readonly Scope[] = hasPrefix ? ['prefixes in heads', 'heads'] : ['heads'];
  for (const scope of scopes) {
    const first = conditionOf(query, scope);
    const count = countOf(first, database);
    if (count === 0 || count > MAX_COUNTED) continue;
    const ranked = offset < count ? pick(first, BY_RANK, { limit, offset }, database) : [];
    const missing = limit - ranked.length;
    if (missing === 0) return ranked;
    const others = without(all, first);
    const rest = { limit: missing, offset: Math.max(0, offset - count) };
    return [...ranked, ...pick(others, newestFirst(others), rest, database)];
  }
  return newest();
}

/** Returns the number of documents, at most MAX_COUNTED + 1. */
function countOf(condition: Condition, database: Database): number {
  const limited = `${selectOf(condition)} LIMIT ${MAX_COUNTED + 1}`;
  const row = database.row(`SELECT count(*) AS total FROM (${limited})`, ...condition.values);
  return int(row, 'total');
}

function pick(
  condition: Condition,
  order: string,
  { limit, offset }: Pick<SearchRequest, 'limit' | 'offset'>,
  database: Database,
): number[] {
  const sql = `${selectOf(condition)} ORDER BY ${order} LIMIT ? OFFSET ?`;
  return database.rows(sql, ...condition.values, limit, offset).map((row) => int(row, 'document'));
}
