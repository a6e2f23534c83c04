import { editDistance } from '../lib/text.js';
import { type Database, int, text } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import {
  BY_RANK,
  byDate,
  type Condition,
  conditionOf,
  type Highlights,
  newestFirst,
  type ParsedQuery,
  parseQuery,
  prefixSearchOf,
  type Scope,
  selectOf,
  type Term,
  without,
} from './query.js';

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
   * of its content. Above MAX_COUNTED results the order is that of indexing. @default 'rank'
   */
  readonly sort?: 'rank' | 'date';
}

interface SearchResult {
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

interface SearchDeps {
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

/** Terms of the index with the number of documents that have them, in order. */
const TERMS = 'SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ?';

/** Returns the bounds of the terms that begin with a prefix, for `>=` and `<`. */
function rangeOf(prefix: string): [from: string, to: string] {
  return [prefix, `${prefix}\u{10ffff}`];
}

/** Whether a document has this term, or a term with this prefix. */
function isInVocabulary(word: string, isPrefix: boolean, database: Database): boolean {
  const [from, to] = isPrefix ? rangeOf(word) : [word, word];
  const sql = 'SELECT 1 AS found FROM vocabulary WHERE term >= ? AND term <= ? LIMIT 1';
  return database.row(sql, from, to) !== undefined;
}

/** More terms take too long to expand. */
const MAX_EXPANDED_TERMS = 10_000;
/**
 * If so many documents have only a few terms with a prefix, these are frequent words. They are
 * expanded as quickly as they are counted, so the count may stop.
 */
const MANY_DOCUMENTS = 50_000;
const FEW_TERMS = 1_000;

/** Whether too many terms have a prefix to expand it. */
function isTooWide(prefix: string, database: Database): boolean {
  let terms = 0;
  let documents = 0;
  database.scan(TERMS, rangeOf(prefix), (row) => {
    terms += 1;
    documents += int(row, 'doc');
    return terms <= MAX_EXPANDED_TERMS && (terms > FEW_TERMS || documents < MANY_DOCUMENTS);
  });
  return terms > MAX_EXPANDED_TERMS;
}

/** A shorter word resembles too many others. */
const MIN_CORRECTED_LETTERS = 5;

/**
 * Returns the query with each word that no document has replaced by the most similar term;
 * undefined if nothing can be corrected. Phrases and words in quotes stay.
 */
function corrected(query: string, { terms }: ParsedQuery, database: Database): string | undefined {
  let text = query;
  // From the end, so that the positions before it stay valid.
  for (const term of terms.toReversed()) {
    if (!isMisspelt(term, database)) continue;
    const similar = mostSimilarTerm(term.words[0] ?? '', database);
    if (similar === undefined) return undefined;
    const source = query.slice(term.start, term.end);
    const field = /^title:/i.exec(source)?.[0] ?? '';
    const star = source.endsWith('*') ? '*' : '';
    text = `${text.slice(0, term.start)}${field}${similar}${star}${text.slice(term.end)}`;
  }
  return text === query ? undefined : text;
}

function isMisspelt({ isQuoted, variants, words }: Term, database: Database): boolean {
  const [word = ''] = words;
  if (isQuoted || words.length > 1 || [...word].length < MIN_CORRECTED_LETTERS) return false;
  return !variants.some((variant) => isInVocabulary(variant, false, database));
}

/** A shorter word is corrected by one edit, a longer one by two. */
const MIN_LETTERS_FOR_TWO_EDITS = 8;
/**
 * The work to look for similar terms, about 100 ms. A term costs TERM_COST and one for each
 * document that has it.
 */
const MAX_COST = 1_500_000;
const TERM_COST = 30;

/**
 * Returns the term with the smallest edit distance; of several, the most frequent one. The first
 * letter is taken to be right. Terms with the same first two letters are tried first.
 */
function mostSimilarTerm(word: string, database: Database): string | undefined {
  const letters = [...word];
  let limit = letters.length < MIN_LETTERS_FOR_TWO_EDITS ? 1 : 2;
  let cost = 0;
  let best: { readonly term: string; readonly documents: number } | undefined;
  for (const prefix of [letters.slice(0, 2).join(''), letters[0] ?? '']) {
    database.scan(TERMS, rangeOf(prefix), (row) => {
      const term = text(row, 'term');
      const documents = int(row, 'doc');
      const distance = editDistance(letters, [...term], limit);
      if (distance < limit || (distance === limit && documents > (best?.documents ?? 0))) {
        limit = distance;
        best = { term, documents };
      }
      cost += TERM_COST + documents;
      return cost < MAX_COST;
    });
    if (best !== undefined) break;
  }
  return best?.term;
}
