import { fold, MAX_PREFIX_LETTERS, wordsOf } from './words.js';

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
export type PrefixSearch = 'none' | 'indexed' | 'split' | 'expanded';

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
