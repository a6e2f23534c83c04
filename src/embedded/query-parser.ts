import { FILTER_NAMES, type Filter, type FilterName, parseFilter } from './filters.js';
import { type Clause, highlightsOf, type ParsedQuery, type Term, termsOf } from './parsed-query.js';
import { plainWord, symbolTermsOf } from './symbol-words.js';
import { fold, wordsOf } from './words.js';

/** A query with more words is read up to this one. */
const MAX_WORDS = 32;
const MAX_QUERY_CHARS = 1_000;
/** Further filters are words. */
const MAX_FILTERS = 16;

/**
 * Parses a query for people.
 *
 * - A document must have every term. A phrase in quotes must occur as written.
 * - `-word` and `NOT word` exclude documents with that word.
 * - `OR` and `AND` in capitals stand between terms. `AND` binds more strongly than `OR`, and `OR`
 *   more strongly than a space: `a b OR c` is `a (b OR c)`. Parentheses group.
 * - `word*` is a prefix. So is the last word while it is typed, that is, without a space behind it.
 * - `title:` restricts a term to titles. `collection:`, `site:` and `url:` are filters. The latter
 *   two take the prefix of a URL. `parseFilter` has the others.
 *
 * @param isTyping whether the query is not finished yet
 */
export function parseQuery(asked: string, isTyping = false): ParsedQuery {
  const { tokens, ...filters } = tokensOf(asked, isTyping);
  const { excluded, parts } = new Parser(tokens).query();
  const terms = unique(parts.filter((part) => part.kind === 'term'));
  const groups = parts.filter((part) => part.kind !== 'term');
  return {
    terms,
    common: [],
    excluded: unique(excluded.filter((part) => part.kind === 'term')),
    groups,
    excludedGroups: excluded.filter((part) => part.kind !== 'term'),
    ...filters,
    highlights: highlightsOf([...terms, ...groups.flatMap(termsOf)]),
  };
}

/** Returns the terms without those that ask for the same as an earlier one. */
function unique(terms: readonly Term[]): readonly Term[] {
  const keyOf = ({ words, symbols, isInTitle, isPrefix, isQuoted }: Term) =>
    JSON.stringify([words, symbols, isInTitle, isPrefix, isQuoted]);
  return [...new Map(terms.toReversed().map((term) => [keyOf(term), term])).values()].reverse();
}

type Token =
  | { readonly kind: 'term'; readonly term: Term; readonly isExcluded: boolean }
  | { readonly kind: 'open'; readonly isExcluded: boolean }
  | { readonly kind: 'close' }
  | { readonly kind: 'operator'; readonly name: 'AND' | 'OR' | 'NOT' };

/** Groups that are deeper are not grouped. FTS5 reads about 20 levels of parentheses. */
const MAX_DEPTH = 6;

/**
 * Matches a parenthesis, an operator, `word`, `"a phrase"`, `-word`, `title:word` and the filters.
 */
const TOKEN =
  /(?<operator>(?:AND|OR|NOT)(?=[\s(]|$))|(?<open>-?\()|(?<close>\)+)|(?<minus>-(?!-)|)(?:(?<field>[a-zA-Z]+):(?=\S))?(?:"(?<phrase>[^"]*)"?|(?<word>[^\s"]+?(?=\)*(?:[\s"]|$))))/g;

const OPERATORS = ['AND', 'OR', 'NOT'] as const;

interface Tokens {
  readonly tokens: readonly Token[];
  readonly collections: readonly string[];
  readonly urls: readonly string[];
  readonly filters: readonly Filter[];
  readonly misread: readonly string[];
}

function tokensOf(asked: string, isTyping: boolean): Tokens {
  const query = asked.slice(0, MAX_QUERY_CHARS);
  const tokens: Token[] = [];
  const filters = new FilterList();
  const misread: string[] = [];
  let wordCount = 0;
  /** Number of parentheses that were opened inside the last word, as in `f(x)`. */
  let openInWord = 0;
  /** Number of groups that are open. */
  let depth = 0;
  for (const match of query.matchAll(TOKEN)) {
    const [source] = match;
    const { close = '', field = '', minus = '', open, phrase, word = '' } = match.groups ?? {};
    const operator = OPERATORS.find((name) => source === name);
    if (operator !== undefined) {
      tokens.push({ kind: 'operator', name: operator });
      continue;
    }
    if (open !== undefined || close !== '') filters.end(tokens);
    if (open !== undefined && depth < MAX_DEPTH) {
      depth += 1;
      tokens.push({ kind: 'open', isExcluded: open !== '(' });
    }
    for (const _ of close.slice(openInWord, openInWord + depth)) {
      depth -= 1;
      tokens.push({ kind: 'close' });
    }
    const isQuoted = phrase !== undefined;
    const value = phrase ?? word;
    openInWord = isQuoted ? 0 : Math.max(0, value.split('(').length - value.split(')').length);
    if (value === '') continue;
    const name = field.toLowerCase();
    const place = { start: match.index, end: match.index + source.length };
    const isExcluded = minus !== '';
    if (isFilterName(name)) {
      const filter = parseFilter(name, value);
      const isTaken =
        filter !== undefined &&
        filters.add(name, value, { ...filter, ...place, isExcluded }, tokens);
      if (isTaken) continue;
      misread.push(source);
    }
    filters.end(tokens);
    const isInTitle = name === 'title';
    // Something else than a filter may have a colon, such as `node:fs`.
    const content = field === '' || isInTitle ? value : `${field}:${value}`;
    const plain = wordsOf(content).slice(0, MAX_WORDS - wordCount);
    if (plain.length === 0) continue;
    wordCount += plain.length;
    const { symbols, words } = withSymbols(content, plain);
    const hasStar = content.endsWith('*');
    const isBeingTyped =
      isTyping && !isQuoted && !isExcluded && !hasStar && place.end === asked.length;
    const term: Term = {
      kind: 'term',
      words,
      symbols,
      variants: words.length === 1 && !isQuoted ? spellingsOf(content, words) : words,
      joined: !isQuoted && HYPHENATED.test(content) ? words.join('') : undefined,
      isPrefix: hasStar || isBeingTyped,
      isBeingTyped,
      isInTitle,
      isQuoted,
      ...place,
    };
    tokens.push({ kind: 'term', term, isExcluded });
  }
  filters.end(tokens);
  return { tokens, misread, ...filters.lists };
}

/** Returns the words of a term with its symbol words. @param plain all of its words */
function withSymbols(content: string, plain: readonly string[]): Pick<Term, 'symbols' | 'words'> {
  // `*.pdf` is a pattern for names of files.
  const symbols = content.startsWith('*') ? [] : symbolTermsOf(content).slice(0, plain.length);
  const [first] = symbols;
  const isOne = plain.length === 1 && first !== undefined && plainWord(first) === plain[0];
  return isOne ? { words: [first], symbols: [] } : { words: plain, symbols };
}

function isFilterName(name: string): name is FilterName {
  return FILTER_NAMES.some((known) => known === name);
}

/**
 * The filters of a query. All of them apply, whatever stands between them and the words: only `NOT`
 * before a filter, and `OR` between two filters, are read.
 */
class FilterList {
  readonly #filters: (Filter & { readonly name: FilterName; readonly value: string })[] = [];
  /** The filters that were taken, with those that are alternatives to others. */
  readonly #taken = new Set<string>();
  /** Whether a filter was the last thing that was read, but for operators after it. */
  #isLast = false;
  /** Number of tokens before the operators that follow the last filter. */
  #tokensBefore = 0;

  /** @returns false if there are too many filters already */
  add(name: FilterName, value: string, filter: Filter, tokens: Token[]): boolean {
    if (this.#taken.size === MAX_FILTERS) return false;
    const from = this.#isLast ? this.#tokensBefore : tokens.length - operatorsAtEnd(tokens);
    const operators = tokens.splice(from).map((token) => token.kind === 'operator' && token.name);
    const isNegated = operators.filter((operator) => operator === 'NOT').length % 2 === 1;
    const isExcluded = filter.isExcluded !== isNegated;
    const key = JSON.stringify([isExcluded, name, value]);
    const isKnown = this.#taken.has(key);
    this.#taken.add(key);
    const before = this.#filters.at(-1);
    const isAlternative = this.#isLast && operators.includes('OR');
    if (!isKnown && isAlternative && before !== undefined && !isExcluded && !before.isExcluded)
      this.#filters.splice(-1, 1, {
        ...before,
        name: 'type',
        where: `(${before.where}) OR (${filter.where})`,
        values: [...before.values, ...filter.values],
        end: filter.end,
      });
    else if (!isKnown) this.#filters.push({ ...filter, isExcluded, name, value });
    this.#isLast = true;
    this.#tokensBefore = tokens.length;
    return true;
  }

  /** Called before anything else is read than a filter or an operator, and at the end. */
  end(tokens: Token[]): void {
    if (this.#isLast) {
      const operators = tokens.splice(this.#tokensBefore);
      // The words after a filter are not alternatives to those before it.
      tokens.push(
        ...operators.filter((token) => token.kind !== 'operator' || token.name === 'NOT'),
      );
    }
    this.#isLast = false;
  }

  /** The filters; those that select documents quickly apart from the others. */
  get lists(): Pick<Tokens, 'collections' | 'filters' | 'urls'> {
    const isQuick = (name: FilterName): boolean => ['collection', 'site', 'url'].includes(name);
    const quick = this.#filters.filter(({ isExcluded, name }) => !isExcluded && isQuick(name));
    const valuesOf = (isOfCollection: boolean): readonly string[] =>
      quick
        .filter(({ name }) => (name === 'collection') === isOfCollection)
        .map(({ value }) => value);
    return {
      collections: valuesOf(true),
      urls: valuesOf(false),
      filters: this.#filters.filter((filter) => !quick.includes(filter)),
    };
  }
}

function operatorsAtEnd(tokens: readonly Token[]): number {
  return tokens.length - (tokens.findLastIndex((token) => token.kind !== 'operator') + 1);
}

/** Words with hyphens between them, which are also written as one. */
const HYPHENATED = /^\p{L}+(?:-\p{L}+)+\*?$/u;

/** A clause, and whether a document must not meet it. */
interface Operand {
  readonly clause: Clause;
  readonly isExcluded: boolean;
}

/**
 * Parses tokens by recursive descent. Every sequence of tokens is a query: an operator without an
 * operand is left out, and a missing parenthesis is added.
 */
class Parser {
  #at = 0;

  constructor(private readonly tokens: readonly Token[]) {}

  query(): { readonly parts: readonly Clause[]; readonly excluded: readonly Clause[] } {
    const operands = this.#sequence();
    // A parenthesis that closes nothing ends no query.
    for (; this.#at < this.tokens.length; operands.push(...this.#sequence())) this.#at += 1;
    return separated(operands);
  }

  /** Parses operands with spaces between them, up to a parenthesis that closes. */
  #sequence(): Operand[] {
    const operands: Operand[] = [];
    while (this.#at < this.tokens.length && this.tokens[this.#at]?.kind !== 'close') {
      const operand = this.#alternatives();
      if (operand !== undefined) operands.push(operand);
    }
    return operands;
  }

  #alternatives(): Operand | undefined {
    const operands = this.#chain('OR', () => this.#conjunction());
    if (operands.length < 2) return operands[0];
    // "Everything but this word" is no alternative that the index could answer.
    const parts = operands.filter(({ isExcluded }) => !isExcluded).map(({ clause }) => clause);
    if (parts.length === 0) return operands[0];
    return { clause: { kind: 'any', parts, excluded: [] }, isExcluded: false };
  }

  #conjunction(): Operand | undefined {
    const operands = this.#chain('AND', () => this.#operand());
    return operands.length < 2 ? operands[0] : requiredTogether(operands);
  }

  /** Parses operands with an operator between them. */
  #chain(name: 'AND' | 'OR', parse: () => Operand | undefined): Operand[] {
    const operands: Operand[] = [];
    do {
      const operand = parse();
      if (operand !== undefined) operands.push(operand);
    } while (this.#takeOperator(name));
    return operands;
  }

  #operand(): Operand | undefined {
    const isNegated = this.#takeOperator('NOT');
    const token = this.tokens[this.#at];
    if (token === undefined || token.kind === 'close') return undefined;
    if (token.kind === 'operator') {
      // Between spaces, an operator without a left operand says nothing.
      if (!isNegated) this.#at += 1;
      return undefined;
    }
    this.#at += 1;
    const operand =
      token.kind === 'term' ? { clause: token.term, isExcluded: false } : this.#parenthesis();
    if (operand === undefined) return undefined;
    return { ...operand, isExcluded: operand.isExcluded !== (token.isExcluded || isNegated) };
  }

  /** Parses what follows an opening parenthesis. */
  #parenthesis(): Operand | undefined {
    const operands = this.#sequence();
    if (this.tokens[this.#at]?.kind === 'close') this.#at += 1;
    return operands.length < 2 ? operands[0] : requiredTogether(operands);
  }

  #takeOperator(name: string): boolean {
    const token = this.tokens[this.#at];
    const isThere = token?.kind === 'operator' && token.name === name;
    if (isThere) this.#at += 1;
    return isThere;
  }
}

/** Returns the group whose members are all required, or excluded. */
function requiredTogether(operands: readonly Operand[]): Operand {
  const { excluded, parts } = separated(operands);
  // Without anything that is required, the group excludes what has any of these.
  if (parts.length === 0)
    return { clause: { kind: 'any', parts: excluded, excluded: [] }, isExcluded: true };
  return { clause: { kind: 'all', parts, excluded }, isExcluded: false };
}

function separated(operands: readonly Operand[]): {
  readonly parts: readonly Clause[];
  readonly excluded: readonly Clause[];
} {
  return {
    parts: operands.filter(({ isExcluded }) => !isExcluded).map(({ clause }) => clause),
    excluded: operands.filter(({ isExcluded }) => isExcluded).map(({ clause }) => clause),
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
 * @param words the same as the only word of a term
 */
function spellingsOf(content: string, [term = '']: readonly string[]): string[] {
  const word = plainWord(term);
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
  return [...spellings].map((spelling) => term.replace(word, spelling));
}
