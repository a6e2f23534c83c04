import { type Database, int } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import { withCompounds, withOtherForms } from './forms.js';
import {
  type Clause,
  type Group,
  type Highlights,
  type ParsedQuery,
  type Term,
  termsOf,
  withPlainWords,
  withTerms,
} from './parsed-query.js';
import {
  BY_RANK,
  byDate,
  type Condition,
  conditionOf,
  newestFirst,
  type Order,
  prefixSearchOf,
  type Scope,
  selectOf,
  without,
} from './query.js';
import { parseQuery } from './query-parser.js';
import { byRank, MAX_BOOSTED } from './ranking.js';
import { relaxed } from './relax.js';
import { bySimilarity, repaired, withoutSymbols } from './repair.js';
import { isQuestion, isSentence, tellsApart } from './stop-words.js';
import { writtenWord } from './symbol-words.js';
import { isInVocabulary, rangeOf, TERMS } from './vocabulary.js';

/**
 * The most documents that are counted and ranked. For words that occur nearly everywhere, more
 * would take too long.
 */
export const MAX_COUNTED = 10_000;

/** Compounds are looked for in an index of up to so many documents. It takes 100 ms there. */
export const MAX_DOCUMENTS_FOR_COMPOUNDS = 50_000;

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
 * - Few results are followed by those with other forms of the words, which are ranked below them.
 * - A question is answered by its words that tell documents apart. Documents with all of its words
 *   are ranked higher.
 * - Nothing is left out of another query that finds something. If it finds nothing, symbol words
 *   are taken as plain words. Then words that no document has are replaced by the most similar
 *   ones, and those without a similar one are left out. If no document has all of the others, the
 *   most frequent words are left out. Of that, a word that documents have is not left out for one
 *   that is only similar.
 */
export function findDocuments(request: SearchRequest, deps: SearchDeps): SearchResult {
  const { database } = deps;
  const asked = parsed(request.query, request.isTyping === true, deps);
  const query = narrowed(asQuestion(asked), database);
  const result = asTyped(query, request.query, request, deps);
  if (result.total > 0 || query.terms.length + query.groups.length === 0) return result;
  const plain = asPlainWords(query, request, deps);
  if (plain !== undefined) return plain;
  const isSmall = deps.documents.count('documents') <= MAX_DOCUMENTS_FOR_COMPOUNDS;
  const compounds = isSmall ? withCompounds(query, database) : undefined;
  const inCompounds = compounds && asOtherForms(run(compounds, request, deps));
  if (inCompounds !== undefined && inCompounds.total > 0) return inCompounds;
  const corrected = repairedAnswer(query, bySimilarity(database), asked, request, deps);
  if (corrected !== undefined && corrected.left === 0) return corrected.result;
  // A word that documents have is worth more than one that is only similar to a word of the query.
  const known = repairedAnswer(query, () => undefined, asked, request, deps);
  const isBetter = known !== undefined && known.left < (corrected?.left ?? Infinity);
  return (isBetter ? known : corrected)?.result ?? result;
}

/**
 * Answers a query that finds nothing as it is.
 *
 * @returns the answer, and the number of terms with known words that were left out; undefined if
 *   nothing is found
 */
function repairedAnswer(
  query: ParsedQuery,
  correct: Parameters<typeof repaired>[3],
  asked: ParsedQuery,
  request: SearchRequest,
  deps: SearchDeps,
): { readonly result: SearchResult; readonly left: number } | undefined {
  const meant = repaired(request.query, query, deps.database, correct);
  if (meant === undefined) return undefined;
  const { isCorrected, isLastKept, text, without } = meant;
  const second = narrowed(
    parsed(text, request.isTyping === true && isLastKept, deps),
    deps.database,
  );
  if (!second.terms.some(tellsApart) && query.terms.some(tellsApart)) return undefined;
  const answer = relaxedResult(second, { isAsked: isSentence(asked.terms), text }, request, deps);
  if (answer === undefined) return undefined;
  const left = [...without, ...answer.without];
  const result = {
    ...answer.result,
    ...(isCorrected && { corrected: text }),
    ...(left.length > 0 && { without: left }),
  };
  return { result, left: answer.without.length };
}

/** Returns a question by its words that tell documents apart, and another query as it is. */
function asQuestion(query: ParsedQuery): ParsedQuery {
  return isQuestion(query.terms) ? withoutCommonWords(query) : query;
}

/** Returns a query by its words that tell documents apart, if it has any. */
function withoutCommonWords(query: ParsedQuery): ParsedQuery {
  const telling = query.terms.filter(tellsApart);
  if (telling.length === 0) return query;
  const common = query.terms.filter((term) => !tellsApart(term));
  return { ...withTerms(query, telling), common: [...query.common, ...common] };
}

/**
 * Returns a query with the words that the page of a result marks: those with which the search finds
 * it.
 */
export function markedQuery(query: string, deps: SearchDeps): ParsedQuery {
  return asQuestion(parsed(query, false, deps));
}

/**
 * Parses a query. While a database is migrated, the index does not have all symbol words, so their
 * signs are ignored.
 */
function parsed(query: string, isTyping: boolean, { documents }: SearchDeps): ParsedQuery {
  const read = parseQuery(query, isTyping);
  return documents.isMigrated ? read : withPlainWords(read);
}

/**
 * Answers a query with plain words in place of the symbol words that it asks for; undefined if it
 * has none, or if nothing is found.
 */
function asPlainWords(
  query: ParsedQuery,
  request: SearchRequest,
  deps: SearchDeps,
): SearchResult | undefined {
  const text = withoutSymbols(request.query, query);
  if (text === request.query) return undefined;
  const plain = asQuestion(parsed(text, request.isTyping === true, deps));
  const result = asTyped(narrowed(plain, deps.database), text, request, deps);
  return result.total > 0 ? { ...result, corrected: text } : undefined;
}

/**
 * Answers a query whose last term may still be being typed. A phrase such as `log-in` is taken as a
 * prefix only if no document has it as it is.
 */
function asTyped(
  query: ParsedQuery,
  text: string,
  request: SearchRequest,
  deps: SearchDeps,
): SearchResult {
  const typed = query.terms.find((term) => term.isBeingTyped && term.words.length > 1);
  if (typed === undefined) return followedByForms(query, request, deps);
  const whole = query.terms.map((term) => (term === typed ? { ...term, isPrefix: false } : term));
  const exact = run({ ...query, terms: whole }, request, deps);
  if (exact.total > 0 || !typed.isPrefix) return exact;
  const result = run(query, request, deps);
  const prefix = text.slice(typed.start, typed.end);
  return result.total > 0 ? { ...result, prefix } : result;
}

/** The most results that are followed by those with other forms of the words. */
const FEW_RESULTS = 100;

/** Answers a query. Few results are followed by those with other forms of the words. */
function followedByForms(
  query: ParsedQuery,
  request: SearchRequest,
  deps: SearchDeps,
): SearchResult {
  const exact = run(query, request, deps);
  const { condition, highlights, total } = exact;
  if (total > FEW_RESULTS || condition === undefined || query.terms.length === 0) return exact;
  const wider = withOtherForms(query, deps.database);
  if (wider === undefined) return exact;
  const all = conditionOf(inCollections(wider, request), 'all');
  if (total === 0) return asOtherForms(run(wider, request, deps));
  const others = without(all, condition);
  const otherForms = countOf(others, deps.database);
  if (otherForms === 0) return exact;
  const { limit, offset } = request;
  const rest = {
    limit: limit - exact.found.length,
    offset: Math.max(0, offset - total),
  };
  const byWords = others.source === 'words' ? BY_RANK : newestFirst(others);
  const order = request.sort === 'date' ? byDate(others) : byWords;
  const ids = rest.limit === 0 ? [] : pick(others, order, rest, deps.database);
  const more = ids.flatMap((id) => deps.documents.find('id', id) ?? []);
  return {
    ...exact,
    total: Math.min(MAX_COUNTED, total + otherForms),
    totalIsExact: total + otherForms <= MAX_COUNTED,
    found: [...exact.found, ...more],
    highlights: total > offset + limit ? highlights : wider.highlights,
    condition: all,
    otherForms,
  };
}

function asOtherForms(result: SearchResult): SearchResult {
  return result.total === 0 ? result : { ...result, otherForms: result.total };
}

/** Answers a query without the terms that keep it from finding anything. */
function relaxedResult(
  query: ParsedQuery,
  { isAsked, text }: { readonly isAsked: boolean; readonly text: string },
  request: SearchRequest,
  deps: SearchDeps,
): { readonly result: SearchResult; readonly without: readonly string[] } | undefined {
  const asked = isAsked ? withoutCommonWords(query) : query;
  const found = relaxed(inCollections(asked, request), deps.database);
  if (found === undefined) return undefined;
  const result = asTyped({ ...asked, terms: found.query.terms }, text, request, deps);
  if (result.total === 0) return undefined;
  return { result, without: found.removed.map(({ end, start }) => text.slice(start, end)) };
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
  // In a group, short prefixes are expanded, too.
  const narrowedMember = (term: Term): Term => {
    const isWide = term.isPrefix && isTooWide(term.words.at(-1) ?? '', database);
    return narrowedTerm(isWide ? { ...term, isPrefix: false } : term);
  };
  const narrowedClause = (clause: Clause): Clause =>
    clause.kind === 'term' ? narrowedMember(clause) : narrowedGroup(clause);
  const narrowedGroup = (group: Group): Group => ({
    ...group,
    parts: group.parts.map(narrowedClause),
    excluded: group.excluded.map(narrowedClause),
  });
  return {
    ...query,
    terms: query.terms.map(narrowedTerm),
    excluded: query.excluded.map(narrowedTerm),
    groups: query.groups.map(narrowedGroup),
    excludedGroups: query.excludedGroups.map(narrowedGroup),
  };
}

function run(parsed: ParsedQuery, request: SearchRequest, deps: SearchDeps): SearchResult {
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
function inCollections(query: ParsedQuery, { collection }: SearchRequest): ParsedQuery {
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
function countOf(condition: Condition, database: Database): number {
  const limited = `${selectOf(condition)} LIMIT ${MAX_COUNTED + 1}`;
  const row = database.row(`SELECT count(*) AS total FROM (${limited})`, ...condition.values);
  return int(row, 'total');
}

function pick(
  condition: Condition,
  order: Order,
  { limit, offset }: Pick<SearchRequest, 'limit' | 'offset'>,
  database: Database,
): number[] {
  const sql = `${selectOf(condition)} ORDER BY ${order.sql} LIMIT ? OFFSET ?`;
  const values = [...condition.values, ...order.values, limit, offset];
  return database.rows(sql, ...values).map((row) => int(row, 'document'));
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
