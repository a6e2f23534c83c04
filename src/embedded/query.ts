import { domainToASCII } from 'node:url';
import { fold, MAX_PREFIX_LETTERS, PREFIX_MARK, wordsOf } from './words.js';

/** A query with more words is read up to this one. */
const MAX_WORDS = 32;
const MAX_QUERY_CHARS = 1_000;
/** Filters of one kind, such as `site:`. Further ones are ignored. */
const MAX_FILTERS = 2;

/** A word or a phrase of a query. */
export interface Term {
  /** The folded words. Several are a phrase. */
  readonly words: readonly string[];
  /**
   * The spellings of a single word, itself first: brücke, bruecke, brucke. Of a phrase, its words.
   */
  readonly variants: readonly string[];
  /** Whether the last word is a prefix. */
  readonly isPrefix: boolean;
  readonly isInTitle: boolean;
  readonly isQuoted: boolean;
  /** The position of the term in the query, for corrections. */
  readonly start: number;
  readonly end: number;
}

/** The words of a text that a query highlights. */
export interface Highlights {
  readonly isEmpty: boolean;
  /** @param word folded as in `words.ts` */
  has(word: string): boolean;
}

export interface ParsedQuery {
  /** The terms that a document must have. */
  readonly terms: readonly Term[];
  /** The terms that a document must not have. */
  readonly excluded: readonly Term[];
  readonly collections: readonly string[];
  /** Prefixes of URLs, with or without a scheme. */
  readonly urls: readonly string[];
  readonly highlights: Highlights;
}

/** Matches `word`, `"a phrase"`, `-word`, `title:word` and the filters. */
const TERM = /(-(?!-)|)(?:(title|collection|site|url):)?(?:"([^"]*)"?|([^\s"]+))/gi;

/**
 * Parses a query for people.
 *
 * - A document must have every term. A phrase in quotes must occur as written.
 * - `-word` excludes documents with that word.
 * - `word*` is a prefix. So is the last word while it is typed, that is, without a space behind it.
 * - `title:` restricts a term to titles. `collection:`, `site:` and `url:` are filters. The latter
 *   two take the prefix of a URL.
 */
export function parseQuery(asked: string): ParsedQuery {
  const query = asked.slice(0, MAX_QUERY_CHARS);
  const terms: Term[] = [];
  const excluded: Term[] = [];
  const collections: string[] = [];
  const urls: string[] = [];
  const seen = new Set<string>();
  let wordCount = 0;
  for (const match of query.matchAll(TERM)) {
    const [source, minus, field = '', phrase, word = ''] = match;
    const content = phrase ?? word;
    const name = field.toLowerCase();
    const isExcluded = minus !== '';
    if (!isExcluded && name !== '' && name !== 'title') {
      const filters = name === 'collection' ? collections : urls;
      if (filters.length < MAX_FILTERS) filters.push(content);
      continue;
    }
    const words = wordsOf(content).slice(0, MAX_WORDS - wordCount);
    if (words.length === 0 || seen.has(source)) continue;
    seen.add(source);
    wordCount += words.length;
    const end = match.index + source.length;
    const isQuoted = phrase !== undefined;
    const isBeingTyped = !isQuoted && !isExcluded && end === asked.length;
    const [single = ''] = words;
    const term: Term = {
      words,
      variants: words.length === 1 && !isQuoted ? spellingsOf(content, single) : words,
      isPrefix: content.endsWith('*') || isBeingTyped,
      isInTitle: name === 'title',
      isQuoted,
      start: match.index,
      end,
    };
    if (isExcluded) excluded.push(term);
    else terms.push(term);
  }
  return { terms, excluded, collections, urls, highlights: highlightsOf(terms) };
}

/**
 * The search for the prefix at the end of a term:
 *
 * - `none`: the term has none, or its last word is a single letter. Whole words are searched.
 * - `indexed`: the term is one short prefix, which the table `prefixes` has as a term of its own.
 * - `split`: a phrase ends in a very short prefix. The phrase before it is searched in `words`, and
 *   the prefix anywhere in the same document, in `prefixes`.
 * - `expanded`: FTS5 merges the postings of all terms with this prefix (`word*`).
 */
type PrefixSearch = 'none' | 'indexed' | 'split' | 'expanded';

/** The longest last word of a phrase that is split. More than that is quick enough to expand. */
const MAX_SPLIT_LETTERS = 3;

export function prefixSearchOf({ isPrefix, isInTitle, variants, words }: Term): PrefixSearch {
  if (!isPrefix) return 'none';
  const isSingle = words.length === 1;
  const isIndexed = (word: string): boolean => hasLetters(word, 2, MAX_PREFIX_LETTERS);
  if (isSingle && variants.every(isIndexed)) return 'indexed';
  const last = words.at(-1) ?? '';
  if (!isSingle && !isInTitle && hasLetters(last, 2, MAX_SPLIT_LETTERS)) return 'split';
  return hasLetters(last, 2) ? 'expanded' : 'none';
}

function hasLetters(word: string, least: number, most = Number.POSITIVE_INFINITY): boolean {
  const { length } = [...word];
  return length >= least && length <= most;
}

function highlightsOf(terms: readonly Term[]): Highlights {
  const words = new Set(terms.flatMap((term) => [...term.words, ...term.variants]));
  const prefixes = terms
    .filter((term) => term.isPrefix)
    .flatMap((term) => (term.words.length === 1 ? term.variants : term.words.slice(-1)))
    .filter((word) => word.length > 1);
  return {
    isEmpty: words.size === 0,
    has: (word) => words.has(word) || prefixes.some((prefix) => word.startsWith(prefix)),
  };
}

/** A shorter word has no umlaut written with an e: "does" is not "dos". */
const MIN_UMLAUT_LETTERS = 5;
const MAX_SPELLINGS = 8;

/**
 * Returns the spellings of a word with and without umlauts (`ae` for ä, and the reverse), itself
 * first.
 *
 * @param content the word as it was typed
 * @param word the same, folded
 */
function spellingsOf(content: string, word: string): string[] {
  const spellings = new Set([word]);
  const withE = content.normalize('NFC').replace(/[äöü]/gi, (umlaut) => `${fold(umlaut)}e`);
  const [foldedWithE] = wordsOf(withE);
  if (foldedWithE !== undefined) spellings.add(foldedWithE);
  if (word.length >= MIN_UMLAUT_LETTERS) {
    spellings.add(word.replace(/(?<=[aou])e/g, ''));
    for (const { index } of word.matchAll(/[aou](?!e)/g))
      if (spellings.size < MAX_SPELLINGS)
        spellings.add(`${word.slice(0, index + 1)}e${word.slice(index + 1)}`);
  }
  return [...spellings];
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
  readonly values: readonly string[];
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

/**
 * Orders by rank (BM25, from the source `words` only). The plus makes FTS5 rank the documents that
 * meet the whole condition, instead of all that have the words.
 */
export const BY_RANK = '+rank';

/** Orders the newest document first, by its position in the index. */
export function newestFirst({ source }: Condition): string {
  return `${SOURCES[source].key} DESC`;
}

/** Orders by the date of the document itself, or else by the last change of its content. */
export function byDate(condition: Condition): string {
  const { key } = SOURCES[condition.source];
  const date = `(SELECT coalesce(d.date, d.last_modified) FROM documents AS d WHERE d.id = ${key})`;
  return `${date} DESC, ${newestFirst(condition)}`;
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
  const { collections, excluded, terms, urls } = query;
  const matches = matchesOf(terms, scope);
  const source = sourceOf(matches, collections);
  const { key } = SOURCES[source];
  const where: string[] = [];
  const values: string[] = [];
  const add = (sql: string, ...more: readonly string[]): void => {
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
  const prefixes = excluded.filter(isInPrefixTable).flatMap(({ variants }) => variants.map(quoted));
  if (prefixes.length > 0)
    add(`${key} NOT IN (SELECT rowid FROM prefixes WHERE prefixes MATCH ?)`, prefixes.join(' OR '));
  const words = excluded
    .filter((term) => !isInPrefixTable(term))
    .map((term) => termMatch(term, 'all'));
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
 * The queries to FTS5, one for each table; empty if none is needed. They contain letters, digits
 * and PREFIX_MARK in quotes, so no word can be read as an operator.
 */
interface Matches {
  readonly words: string;
  readonly prefixes: string;
}

function matchesOf(terms: readonly Term[], scope: Scope): Matches {
  const words: string[] = [];
  const prefixes: string[] = [];
  for (const term of terms) {
    if (scope === 'all' && isInPrefixTable(term)) prefixes.push(anyOf(term.variants.map(quoted)));
    else if (scope === 'all' && prefixSearchOf(term) === 'split') {
      words.push(quoted(term.words.slice(0, -1).join(' ')));
      prefixes.push(anyOf(term.words.slice(-1).map(quoted)));
    } else words.push(termMatch(term, scope));
  }
  return { words: words.join(' AND '), prefixes: prefixes.join(' AND ') };
}

/** Whether a term is searched in `prefixes` alone. That table does not distinguish titles. */
function isInPrefixTable(term: Term): boolean {
  return prefixSearchOf(term) === 'indexed' && !term.isInTitle;
}

/** Returns the query for a term to the table `words`. */
function termMatch(term: Term, scope: Scope): string {
  const spellings = term.words.length === 1 ? term.variants : [term.words.join(' ')];
  const whole = spellings.map(quoted);
  const prefixes = spellings.flatMap((spelling) => prefixMatch(spelling, term));
  const heads = term.isInTitle ? 'title' : '{title name}';
  if (scope === 'heads' || term.isInTitle) return `(${heads} : ${anyOf([...whole, ...prefixes])})`;
  if (scope === 'all' || prefixes.length === 0) return anyOf([...whole, ...prefixes]);
  return anyOf([...whole, `(${heads} : ${anyOf(prefixes)})`]);
}

/** Returns the query for words with a prefix; none if the term is not searched by its prefix. */
function prefixMatch(spelling: string, term: Term): string[] {
  const search = prefixSearchOf(term);
  if (search === 'indexed') return [quoted(`${PREFIX_MARK}${spelling}`)];
  return search === 'expanded' ? [`${quoted(spelling)}*`] : [];
}

function anyOf(matches: readonly string[]): string {
  return `(${matches.join(' OR ')})`;
}

function quoted(words: string): string {
  return `"${words}"`;
}

/** The schemes that are tried for a URL without one. */
const SCHEMES = ['https', 'http', 'file', 'smb', 'sftp', 'ftp'];

/** Returns the bounds of the URLs with a prefix, for `>=` and `<`. */
function urlRangesOf(prefix: string): [from: string, to: string][] {
  const asciiHost = prefix.replace(
    /^([a-z]+:\/\/)?([^/:]*[^\x21-\x7e][^/:]*)/i,
    (_, scheme = '', host) => scheme + (domainToASCII(host) || host),
  );
  const encoded = asciiHost.replace(/[^\x21-\x7e]+/g, (other) =>
    encodeURIComponent(other.toWellFormed()),
  );
  const hasScheme = /^[a-z]+:\/\//i.test(encoded);
  const candidates = hasScheme ? [encoded] : SCHEMES.map((scheme) => `${scheme}://${encoded}`);
  return candidates.map((url) => {
    const from = url.replace(/^[^/]*\/\/[^/]*/, (origin) => origin.toLowerCase());
    return [from, `${from}\u{10ffff}`];
  });
}
