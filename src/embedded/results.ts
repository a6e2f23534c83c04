import { type Database, int } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import { type Highlights, type ParsedQuery, termsOf } from './parsed-query.js';
import {
  BY_RANK,
  byDate,
  type Condition,
  conditionOf,
  newestFirst,
  type Order,
  type Scope,
  selectOf,
  without,
} from './query.js';
import { byRank, MAX_BOOSTED } from './ranking.js';
import { writtenWord } from './symbol-words.js';

/**
 * The most documents that are counted and ranked. For words that occur nearly everywhere, more
 * would take too long.
 */
export const MAX_COUNTED = 10_000;

export interface SearchRequest {
  readonly query: string;
  /** Whether the query is still being typed: its last word may go on. @default false */
  readonly isTyping?: boolean;
  /** Restricts the search to one collection; empty for all. */
  readonly collection: string;
  readonly offset: number;
  readonly limit: number;
  /**
   * `date` orders the newest first, by the date of the document itself, or else by the last change
   * of its content. Above MAX_COUNTED results the order is that of indexing. @default 'rank'
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
  /** The condition that all results meet; undefined if nothing was asked for. */
  readonly condition?: Condition;
  /** The query that was answered instead, because nothing was found for a misspelt one. */
  readonly corrected?: string;
  /** The terms that were left out, as they were written, because no document has all. */
  readonly without?: readonly string[];
  /** The words by which a question was answered, folded. */
  readonly keywords?: readonly string[];
  /** The number of results that have only other forms of some words. */
  readonly otherForms?: number;
  /** The last term, if it was taken as a prefix because nothing has it as it is. */
  readonly prefix?: string;
  /** Set if the signs of words such as C++ were ignored, because the index does not have all. */
  readonly signsIgnored?: true;
}

export interface SearchDeps {
  readonly database: Database;
  readonly documents: DocumentStore;
}

/** Answers a query as it is. */
export function run(parsed: ParsedQuery, request: SearchRequest, deps: SearchDeps): SearchResult {
  const { database, documents } = deps;
  const { excluded, excludedGroups, filters, groups, highlights, terms, urls } = parsed;
  const query = inCollections(parsed, request);
  const { collections } = query;
  const hasWords = [terms, excluded, groups, excludedGroups].some((list) => list.length > 0);
  const areSignsIgnored = parsed.areSignsIgnored === true;
  const hasFilters = urls.length + collections.length + filters.length > 0;
  const isEmpty = !hasWords && !hasFilters && !areSignsIgnored;
  // Punctuation alone finds nothing. A query of spaces lists all documents.
  if (isEmpty && request.query.trim() !== '')
    return { total: 0, totalIsExact: true, found: [], highlights };

  const all = conditionOf(query, 'all');
  const hasStoredCount = !hasWords && urls.length + filters.length === 0 && collections.length < 2;
  const [collection] = collections;
  const stored = collection === undefined ? 'documents' : ({ collection } as const);
  const total = hasStoredCount ? documents.count(stored) : countOf(all, database);
  const isFew = total <= MAX_COUNTED;
  return {
    total: hasStoredCount ? total : Math.min(total, MAX_COUNTED),
    totalIsExact: hasStoredCount || isFew,
    found: (total === 0 ? [] : pageOf(query, request, total, database))
      .map((id) => documents.find('id', id))
      .filter((document) => document !== undefined),
    highlights,
    condition: all,
    ...(parsed.common.length > 0 && { keywords: keywordsOf(parsed) }),
    ...(areSignsIgnored && { signsIgnored: true }),
  };
}

function keywordsOf({ groups, terms }: ParsedQuery): readonly string[] {
  return [...terms, ...groups.flatMap(termsOf)].map(({ words }) =>
    words.map(writtenWord).join(' '),
  );
}

/** Returns the query with the collection of the request as one more filter. */
export function inCollections(query: ParsedQuery, { collection }: SearchRequest): ParsedQuery {
  return {
    ...query,
    collections: [collection, ...query.collections].filter((name) => name !== ''),
  };
}

/** Returns the ids of the documents of one page, in order. */
function pageOf(
  query: ParsedQuery,
  { limit, offset, sort = 'rank' }: SearchRequest,
  total: number,
  database: Database,
): number[] {
  const isFew = total <= MAX_COUNTED;
  const all = conditionOf(query, 'all');
  const newest = (): number[] => pick(all, newestFirst(all), { limit, offset }, database);
  if (sort === 'date' && isFew) return pick(all, byDate(all), { limit, offset }, database);
  const required = [...query.terms, ...query.groups.flatMap(termsOf)];
  if (sort === 'date' || required.length === 0) return newest();
  if (isFew && all.source === 'words') {
    const order = total <= MAX_BOOSTED ? byRank(query) : BY_RANK;
    return pick(all, order, { limit, offset }, database);
  }

  const hasPrefix = required.some((term) => term.isPrefix);
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
export function countOf(condition: Condition, database: Database): number {
  const limited = `${selectOf(condition)} LIMIT ${MAX_COUNTED + 1}`;
  const row = database.row(`SELECT count(*) AS total FROM (${limited})`, ...condition.values);
  return int(row, 'total');
}

/** Returns the ids of documents in an order, from `offset` on. */
export function pick(
  condition: Condition,
  order: Order,
  { limit, offset }: Pick<SearchRequest, 'limit' | 'offset'>,
  database: Database,
): number[] {
  const sql = `${selectOf(condition)} ORDER BY ${order.sql} LIMIT ? OFFSET ?`;
  const values = [...condition.values, ...order.values, limit, offset];
  return database.rows(sql, ...values).map((row) => int(row, 'document'));
}
