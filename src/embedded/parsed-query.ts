import type { Filter } from './filters.js';
import { isSymbolTerm, plainWord } from './symbol-words.js';

/** A word or a phrase of a query. */
export interface Term {
  readonly kind: 'term';
  /** The folded words. Several are a phrase. A single symbol word is its term in the index. */
  readonly words: readonly string[];
  /** The terms of the symbol words of a phrase. Its `words` do not have their signs. */
  readonly symbols: readonly string[];
  /**
   * The spellings of a single word, itself first: brücke, bruecke, brucke. Of a phrase, its words.
   */
  readonly variants: readonly string[];
  /** A phrase with hyphens as one word: wifi for wi-fi. */
  readonly joined: string | undefined;
  /** Whether the last word is a prefix. */
  readonly isPrefix: boolean;
  /** Whether it is a prefix only because the word is still being typed. */
  readonly isBeingTyped: boolean;
  readonly isInTitle: boolean;
  readonly isQuoted: boolean;
  /** The position of the term in the query, for corrections. */
  readonly start: number;
  readonly end: number;
}

/** Several clauses, of which a document must have all or any, and those that it must not have. */
export interface Group {
  readonly kind: 'all' | 'any';
  readonly parts: readonly Clause[];
  /** Empty in a group of kind `any`. */
  readonly excluded: readonly Clause[];
}

export type Clause = Term | Group;

/** The words of a text that a query highlights. */
export interface Highlights {
  readonly isEmpty: boolean;
  /** The spellings of each word, folded, and whether it may go on. */
  readonly words: readonly { readonly spellings: readonly string[]; readonly isPrefix: boolean }[];
  /** @param word folded as in `words.ts` */
  has(word: string): boolean;
}

export interface ParsedQuery {
  /** The terms that a document must have. */
  readonly terms: readonly Term[];
  /** The words of a question that nearly every text has. A document need not have them. */
  readonly common: readonly Term[];
  /** The terms that a document must not have. */
  readonly excluded: readonly Term[];
  /** The groups that a document must meet, and those that it must not meet. */
  readonly groups: readonly Group[];
  readonly excludedGroups: readonly Group[];
  readonly collections: readonly string[];
  /** Prefixes of URLs, with or without a scheme. */
  readonly urls: readonly string[];
  readonly filters: readonly Filter[];
  /** Filters with a value that cannot be understood, as they were written. They are words. */
  readonly misread: readonly string[];
  /** Set if the query had symbol words, whose signs are ignored. */
  readonly areSignsIgnored?: true;
  readonly highlights: Highlights;
}

/** Returns the query with more spellings of its terms. Their highlights follow. */
export function withVariants(
  query: ParsedQuery,
  more: (term: Term) => readonly string[],
): ParsedQuery {
  const wider = (term: Term): Term => ({
    ...term,
    variants: [...new Set([...term.variants, ...more(term)])],
  });
  return withTerms(query, query.terms.map(wider));
}

/** Returns the query with other terms. Its highlights follow. */
export function withTerms(query: ParsedQuery, terms: readonly Term[]): ParsedQuery {
  const highlights = highlightsOf([...terms, ...query.groups.flatMap(termsOf)]);
  return { ...query, terms, highlights };
}

/**
 * Returns the query with plain words in place of symbol words: `c` for `C++`. It finds all
 * documents that the query finds, and more: `-C++` excludes nothing, because `-c` would exclude
 * every C.
 */
export function withPlainWords(query: ParsedQuery): ParsedQuery {
  const { excluded, excludedGroups, groups, terms } = query;
  if (![...terms, ...groups, ...excluded, ...excludedGroups].some(hasSigns)) return query;
  const plainGroup = (group: Group): Group => ({
    ...group,
    parts: group.parts.map(plainClause),
    excluded: withoutSymbolWords(group.excluded),
  });
  const plainClause = (clause: Clause): Clause =>
    clause.kind === 'term' ? plainTerm(clause) : plainGroup(clause);
  const plain = {
    ...query,
    groups: groups.map(plainGroup),
    excluded: withoutSymbolWords(excluded),
    excludedGroups: withoutSymbolWords(excludedGroups),
    areSignsIgnored: true as const,
  };
  return withTerms(plain, terms.map(plainTerm));
}

/** Whether a clause has a symbol word. */
function hasSigns(clause: Clause): boolean {
  return clause.kind === 'term'
    ? clause.symbols.length > 0 || clause.words.some(isSymbolTerm)
    : [...clause.parts, ...clause.excluded].some(hasSigns);
}

/** Returns the clauses that have no symbol words. */
function withoutSymbolWords<Kind extends Clause>(clauses: readonly Kind[]): readonly Kind[] {
  return clauses.filter((clause) => !hasSigns(clause));
}

/** Returns a term with plain words in place of symbol words. */
export function plainTerm(term: Term): Term {
  const { variants, words } = term;
  return { ...term, words: words.map(plainWord), variants: variants.map(plainWord), symbols: [] };
}

/** Returns the terms of a clause, without those that it excludes. */
export function termsOf(clause: Clause): readonly Term[] {
  return clause.kind === 'term' ? [clause] : clause.parts.flatMap(termsOf);
}

/** Returns the words of a text that terms highlight. */
export function highlightsOf(terms: readonly Term[]): Highlights {
  const words = new Set(
    terms.flatMap((term) => [
      ...term.words,
      ...term.symbols,
      ...term.variants,
      ...(term.joined === undefined ? [] : [term.joined]),
    ]),
  );
  const prefixes = terms
    .filter((term) => term.isPrefix)
    .flatMap((term) => (term.words.length === 1 ? term.variants : term.words.slice(-1)))
    .filter((word) => word.length > 1);
  return {
    isEmpty: words.size === 0,
    words: differentWords(terms),
    has: (word) => words.has(word) || prefixes.some((prefix) => word.startsWith(prefix)),
  };
}

/** Returns the words of terms, each once. */
function differentWords(terms: readonly Term[]): Highlights['words'] {
  const words = new Map<string, Highlights['words'][number]>();
  for (const { isPrefix, joined, symbols, variants, words: all } of terms) {
    for (const [i, word] of all.entries()) {
      const isLast = i === all.length - 1;
      const spellings = all.length === 1 ? variants : [word, ...(joined ? [joined] : [])];
      if (!words.has(word)) words.set(word, { spellings, isPrefix: isPrefix && isLast });
    }
    for (const symbol of symbols)
      if (!words.has(symbol)) words.set(symbol, { spellings: [symbol], isPrefix });
  }
  return [...words.values()];
}
