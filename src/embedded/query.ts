import { DATE, urlRangesOf } from './filters.js';
import type { Clause, ParsedQuery, Term } from './parsed-query.js';
import { isSymbolTerm } from './symbol-words.js';
import { MAX_PREFIX_LETTERS, PREFIX_MARK } from './words.js';

/**
 * The search for the prefix at the end of a term:
 *
 * - `none`: the term has none, or its last word is a single letter. Whole words are searched.
 * - `indexed`: the term is one short prefix, which the table `prefixes` has as a term of its own.
 *   Symbol words have none there.
 * - `expanded`: FTS5 merges the postings of all terms with this prefix (`word*`).
 */
type PrefixSearch = 'none' | 'indexed' | 'expanded';

export function prefixSearchOf({ isPrefix, variants, words }: Term): PrefixSearch {
  if (!isPrefix) return 'none';
  const isIndexed = (word: string): boolean =>
    hasLetters(word, 2, MAX_PREFIX_LETTERS) && !isSymbolTerm(word);
  if (words.length === 1 && variants.every(isIndexed)) return 'indexed';
  return hasLetters(words.at(-1) ?? '', 2) ? 'expanded' : 'none';
}

function hasLetters(word: string, least: number, most = Number.POSITIVE_INFINITY): boolean {
  const { length } = [...word];
  return length >= least && length <= most;
}

/**
 * The columns in which terms are searched:
 *
 * - `all`: everything in title, name and body.
 * - `prefixes in heads`: whole words in all columns, prefixes only in title and name.
 * - `heads`: everything only in title and name.
 *
 * The narrow ones rank a query with too many results quickly.
 */
export type Scope = 'all' | 'prefixes in heads' | 'heads';

/** A condition on documents in SQL. */
export interface Condition {
  readonly source: Source;
  readonly where: string;
  readonly values: readonly (number | string)[];
}

type Source = keyof typeof SOURCES;

/** With `ORDER BY`, SQLite merges the two tables side by side, and collects neither. */
const INTERSECTION = `(SELECT rowid AS document FROM words WHERE words MATCH ?
  INTERSECT SELECT rowid FROM prefixes WHERE prefixes MATCH ? ORDER BY 1 DESC) AS merged`;

/** The tables from which documents are selected, and the column with the id of the document. */
const SOURCES = {
  words: { table: 'words', key: 'words.rowid' },
  prefixes: { table: 'prefixes', key: 'prefixes.rowid' },
  intersection: { table: INTERSECTION, key: 'merged.document' },
  memberships: { table: 'memberships', key: 'memberships.document' },
  documents: { table: 'documents', key: 'documents.id' },
} as const;

/** Selects the ids of documents as `document`. */
export function selectOf({ source, where }: Condition): string {
  const { key, table } = SOURCES[source];
  return `SELECT ${key} AS document FROM ${table} WHERE ${where}`;
}

/** An order of documents in SQL. */
export interface Order {
  readonly sql: string;
  readonly values: readonly (number | string)[];
}

/**
 * Orders by rank (BM25, from the source `words` only). The plus makes FTS5 rank the documents that
 * meet the whole condition, instead of all that have the words.
 */
export const BY_RANK: Order = { sql: '+rank', values: [] };

/** Orders the newest document first, by its position in the index. */
export function newestFirst({ source }: Condition): Order {
  return { sql: `${SOURCES[source].key} DESC`, values: [] };
}

/** Orders by the date of the document itself, or else by the last change of its content. */
export function byDate(condition: Condition): Order {
  const { key } = SOURCES[condition.source];
  const date = `(SELECT ${DATE} FROM documents AS d WHERE d.id = ${key})`;
  return { sql: `${date} DESC, ${newestFirst(condition).sql}`, values: [] };
}

/** Returns the condition `all` without the documents of `first`. */
export function without(all: Condition, first: Condition): Condition {
  return {
    ...all,
    where: `${all.where} AND ${SOURCES[all.source].key} NOT IN (${selectOf(first)})`,
    values: [...all.values, ...first.values],
  };
}

/**
 * Returns the condition of a query. The words select the documents, and the filters are checked for
 * each of them.
 */
export function conditionOf(query: ParsedQuery, scope: Scope): Condition {
  const { collections, excluded, excludedGroups, filters, urls } = query;
  const matches = matchesOf(query, scope);
  const source = sourceOf(matches, collections);
  const { key } = SOURCES[source];
  const where: string[] = [];
  const values: (number | string)[] = [];
  const add = (sql: string, ...more: readonly (number | string)[]): void => {
    where.push(sql);
    values.push(...more);
  };
  switch (source) {
    case 'intersection':
      add('true', matches.words, matches.prefixes);
      break;
    case 'words':
      add('words MATCH ?', matches.words);
      break;
    case 'prefixes':
      add('prefixes MATCH ?', matches.prefixes);
      break;
    case 'memberships':
      add('collection = ?', collections[0] ?? '');
      break;
    case 'documents':
      add('true');
  }
  const others = source === 'memberships' ? collections.slice(1) : collections;
  for (const collection of others)
    add(
      `EXISTS (SELECT 1 FROM memberships AS m WHERE m.collection = ? AND m.document = ${key})`,
      collection,
    );
  for (const url of urls) {
    const ranges = urlRangesOf(url);
    const either = ranges.map(() => 'url >= ? AND url < ?').join(' OR ');
    // Without the plus, FTS5 would start again for each row number.
    add(`+${key} IN (SELECT id FROM documents WHERE ${either})`, ...ranges.flat());
  }
  for (const filter of filters)
    add(
      `${filter.isExcluded ? 'NOT ' : ''}EXISTS (SELECT 1 FROM documents AS d WHERE d.id = ${key} AND (${filter.where}))`,
      ...filter.values,
    );
  const prefixes = excluded.filter(isInPrefixTable).flatMap(({ variants }) => variants.map(quoted));
  if (prefixes.length > 0)
    add(`${key} NOT IN (SELECT rowid FROM prefixes WHERE prefixes MATCH ?)`, prefixes.join(' OR '));
  const words = [...excluded.filter((term) => !isInPrefixTable(term)), ...excludedGroups].map(
    (clause) => matchOf(clause, 'all'),
  );
  if (words.length > 0)
    add(`${key} NOT IN (SELECT rowid FROM words WHERE words MATCH ?)`, words.join(' OR '));
  return { source, where: where.join(' AND '), values };
}

function sourceOf(matches: Matches, collections: readonly string[]): Source {
  if (matches.words !== '' && matches.prefixes !== '') return 'intersection';
  if (matches.words !== '') return 'words';
  if (matches.prefixes !== '') return 'prefixes';
  return collections.length > 0 ? 'memberships' : 'documents';
}

/**
 * The queries to FTS5, one for each table; empty if none is needed. They contain letters, digits,
 * PREFIX_MARK and symbol words in quotes, so no word can be read as an operator.
 */
interface Matches {
  readonly words: string;
  readonly prefixes: string;
}

function matchesOf({ groups, terms }: ParsedQuery, scope: Scope): Matches {
  const words: string[] = groups.map((group) => matchOf(group, scope));
  const prefixes: string[] = [];
  for (const term of terms) {
    if (scope === 'all' && isInPrefixTable(term)) prefixes.push(anyOf(term.variants.map(quoted)));
    else words.push(termMatch(term, scope));
  }
  return { words: words.join(' AND '), prefixes: prefixes.join(' AND ') };
}

/** Returns the query for a clause to the table `words`. */
function matchOf(clause: Clause, scope: Scope): string {
  if (clause.kind === 'term') return termMatch(clause, scope);
  const parts = clause.parts.map((part) => matchOf(part, scope));
  const match = `(${parts.join(clause.kind === 'any' ? ' OR ' : ' AND ')})`;
  if (clause.excluded.length === 0) return match;
  return `(${match} NOT ${anyOf(clause.excluded.map((part) => matchOf(part, 'all')))})`;
}

/** Whether a term is searched in `prefixes` alone. That table does not distinguish titles. */
function isInPrefixTable(term: Term): boolean {
  return prefixSearchOf(term) === 'indexed' && !term.isInTitle;
}

/** Returns the query for a term to the table `words`. */
function termMatch(term: Term, scope: Scope): string {
  const match = wordsMatch(term, scope);
  if (term.symbols.length === 0) return match;
  const symbols = term.symbols.map((symbol) => `${quoted(symbol)}${term.isPrefix ? '*' : ''}`);
  const all = symbols.join(' AND ');
  return term.isInTitle ? `(${match} AND (title : (${all})))` : `(${match} AND ${all})`;
}

/** Returns the query for the words of a term to the table `words`. */
function wordsMatch(term: Term, scope: Scope): string {
  const spellings = spellingsOf(term);
  const whole = spellings.map(quoted);
  const prefixes = spellings.flatMap((spelling) => prefixMatch(spelling, term, scope));
  const heads = term.isInTitle ? 'title' : '{title name}';
  if (scope === 'heads' || term.isInTitle) return `(${heads} : ${anyOf([...whole, ...prefixes])})`;
  if (scope === 'all' || prefixes.length === 0) return anyOf([...whole, ...prefixes]);
  return anyOf([...whole, `(${heads} : ${anyOf(prefixes)})`]);
}

/** Returns the query for words with a prefix; none if the term is not searched by its prefix. */
function prefixMatch(spelling: string, term: Term, scope: Scope): string[] {
  const search = prefixSearchOf(term);
  if (search === 'none') return [];
  // Only title and name have prefixes as terms in this table.
  const isMarked = search === 'indexed' && (term.isInTitle || scope !== 'all');
  return [isMarked ? quoted(`${PREFIX_MARK}${spelling}`) : `${quoted(spelling)}*`];
}

/** Returns the words or phrases, any of which a document must have. */
function spellingsOf({ joined, variants, words }: Term): readonly string[] {
  if (words.length === 1) return variants;
  return [words.join(' '), ...(joined === undefined ? [] : [joined])];
}

function anyOf(matches: readonly string[]): string {
  return `(${matches.join(' OR ')})`;
}

function quoted(words: string): string {
  return `"${words}"`;
}
