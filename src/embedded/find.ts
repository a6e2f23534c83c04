import { type OtherParts, withCompounds } from './compounds.js';
import { type Database, int } from './database.js';
import { withOtherForms } from './forms.js';
import {
  type Clause,
  type Group,
  type ParsedQuery,
  type Term,
  withPlainWords,
  withTerms,
} from './parsed-query.js';
import { BY_RANK, byDate, conditionOf, newestFirst, prefixSearchOf, without } from './query.js';
import { parseQuery } from './query-parser.js';
import { relaxed } from './relax.js';
import { bySimilarity, repaired, withoutSymbols } from './repair.js';
import {
  countOf,
  inCollections,
  MAX_COUNTED,
  pick,
  run,
  type SearchDeps,
  type SearchRequest,
  type SearchResult,
} from './results.js';
import { isQuestion, isSentence, tellsApart } from './stop-words.js';
import { isInVocabulary, rangeOf, TERMS } from './vocabulary.js';

/**
 * Compounds are looked for in an index of up to so many documents. To read the words of 22,000
 * generated ones takes 1.6 s of processor with the WebAssembly build, half of it in SQLite.
 */
const MAX_DOCUMENTS_FOR_COMPOUNDS = 50_000;

/**
 * Finds documents.
 *
 * - Up to MAX_COUNTED results of whole words are ranked.
 * - Of more results, or with a short prefix, those with the words in title or name are ranked
 *   first. The others follow, newest first.
 * - A query without words lists the newest documents.
 * - Few results are followed by those with inflected forms of the words, and then by those with
 *   compounds of them.
 * - A question is answered by its words that tell documents apart. Documents with all of its words
 *   are ranked higher.
 * - Nothing is left out of another query that finds something. If it finds nothing, symbol words
 *   are taken as plain words. Then words that no document has are replaced by the most similar
 *   ones, and those without a similar one are left out. If no document has all of the others, the
 *   most frequent words are left out. Of that, a word that documents have is not left out for one
 *   that is only similar.
 *
 * Called by `WordList.provide`, it does not go without compounds while the words are being read.
 */
export function findDocuments(request: SearchRequest, deps: SearchDeps): SearchResult {
  const { database } = deps;
  const asked = parsed(request.query, request.isTyping === true, deps);
  const query = narrowed(asQuestion(asked), database);
  const result = asTyped(query, request.query, request, deps);
  if (result.total > 0 || query.terms.length + query.groups.length === 0) return result;
  const plain = asPlainWords(query, request, deps);
  if (plain !== undefined) return plain;
  const compounds = compoundQuery(withOtherForms(query, database) ?? query, 'any', deps);
  const inCompounds = compounds && asOtherForms(run(compounds, request, deps));
  if (inCompounds !== undefined && inCompounds.total > 0) return inCompounds;
  const corrected = repairedAnswer(query, bySimilarity(database), asked, request, deps);
  if (corrected !== undefined && corrected.left === 0) return corrected.result;
  if (corrected !== undefined && corrected.result.corrected === undefined) return corrected.result;
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

/**
 * Answers a query. Few results are followed by those with inflected forms of the words, and these
 * by those with compounds of them.
 */
function followedByForms(
  query: ParsedQuery,
  request: SearchRequest,
  deps: SearchDeps,
): SearchResult {
  const exact = run(query, request, deps);
  if (query.terms.length === 0 || exact.total > FEW_RESULTS) return exact;
  const inflected = withOtherForms(query, deps.database) ?? query;
  const first = inflected === query ? exact : followed(exact, inflected, request, deps);
  if (first.total === 0 || first.total > FEW_RESULTS) return first;
  const compounds = compoundQuery(inflected, 'words', deps);
  return compounds === undefined ? first : followed(first, compounds, request, deps);
}

/** Adds the results of a wider query behind others. */
function followed(
  first: SearchResult,
  wider: ParsedQuery,
  request: SearchRequest,
  deps: SearchDeps,
): SearchResult {
  const { condition, highlights, otherForms = 0, total } = first;
  if (total === 0 || condition === undefined) return asOtherForms(run(wider, request, deps));
  const all = conditionOf(inCollections(wider, request), 'all');
  const others = without(all, condition);
  const count = countOf(others, deps.database);
  if (count === 0) return first;
  const { limit, offset } = request;
  const rest = {
    limit: limit - first.found.length,
    offset: Math.max(0, offset - total),
  };
  const byWords = others.source === 'words' ? BY_RANK : newestFirst(others);
  const order = request.sort === 'date' ? byDate(others) : byWords;
  const ids = rest.limit === 0 ? [] : pick(others, order, rest, deps.database);
  const more = ids.flatMap((id) => deps.documents.find('id', id) ?? []);
  return {
    ...first,
    total: Math.min(MAX_COUNTED, total + count),
    totalIsExact: total + count <= MAX_COUNTED,
    found: [...first.found, ...more],
    highlights: total > offset + limit ? highlights : wider.highlights,
    condition: all,
    otherForms: otherForms + count,
  };
}

/** Returns a query with compounds of its words; undefined if none are found or looked for. */
export function compoundQuery(
  query: ParsedQuery,
  others: OtherParts,
  { documents }: SearchDeps,
): ParsedQuery | undefined {
  if (documents.count('documents') > MAX_DOCUMENTS_FOR_COMPOUNDS) return undefined;
  const words = documents.words.current();
  return words && withCompounds(query, words, others);
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
