import { domainToASCII } from 'node:url';
import { type Database, int, text } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import { fold, LONGEST_BEGINNING, PREFIX_MARK, wordsOf } from './words.js';

/**
 * More documents than these are not counted, and not ranked: for words that are nearly everywhere
 * it would take too long.
 */
export const MOST_COUNTED = 10_000;
/** A query with more of them is understood up to here. */
const MOST_WORDS = 32;
const LONGEST_QUERY = 1_000;

/** What a person or a program asks for. */
export interface SearchRequest {
  readonly query: string;
  /** Only documents of this collection; of all where it is empty. */
  readonly collection: string;
  readonly offset: number;
  readonly limit: number;
  /**
   * `date`: the newest first, by the date that a document tells, else by when its content last
   * changed. @default 'rank'
   */
  readonly sort?: 'rank' | 'date';
}

/** Which words of a text a query found. */
export interface Highlights {
  readonly isEmpty: boolean;
  /** @param word folded as in `words.ts` */
  has(word: string): boolean;
}

export interface SearchResult {
  /** At most MOST_COUNTED. */
  readonly total: number;
  /**
   * False where there are more than `total`: then those whose title or name has the words come
   * first, then the newest.
   */
  readonly totalIsExact: boolean;
  /** Those from `offset` on, best first. */
  readonly found: readonly Document[];
  readonly highlights: Highlights;
  /**
   * The query that was answered instead, where nothing was found for one with words that no
   * document has.
   */
  readonly corrected?: string;
}

/** What a search needs. */
export interface SearchDeps {
  readonly database: Database;
  readonly documents: DocumentStore;
}

/** A word or a phrase of a query. */
interface Term {
  /** Folded; several stand together. */
  readonly words: readonly string[];
  /** Other spellings of a single word: Brücke, bruecke, brucke. */
  readonly variants: readonly string[];
  /** Whether its last word may go on. */
  readonly isBeginning: boolean;
  /** Whether the beginnings of all documents are indexed. */
  readonly isIndexed: boolean;
  readonly isInTitle: boolean;
  readonly isQuoted: boolean;
  /** Where it stands in the query. */
  readonly start: number;
  readonly end: number;
}

/** A query as it was understood. */
export interface ParsedQuery {
  readonly terms: readonly Term[];
  readonly excluded: readonly Term[];
  readonly collections: readonly string[];
  /** Beginnings of URLs, with or without a scheme. */
  readonly urls: readonly string[];
  readonly highlights: Highlights;
}

const TERM = /(-(?!-)|)(?:(title|collection|site|url):)?(?:"([^"]*)"?|([^\s"]+))/gi;

/**
 * Reads a person's words: every word has to be there, "words in quotes" together, `-word` not; the
 * last word and `word*` may go on. `title:`, `collection:`, `site:` and `url:` (both the beginning
 * of a URL) take a word or a text in quotes.
 */
export function parseQuery(asked: string): ParsedQuery {
  const query = asked.slice(0, LONGEST_QUERY);
  const terms: Term[] = [];
  const excluded: Term[] = [];
  const filters = { collection: [] as string[], url: [] as string[] };
  const seen = new Set<string>();
  let count = 0;
  for (const match of query.matchAll(TERM)) {
    const [whole, minus, field = '', phrase, word = ''] = match;
    const content = phrase ?? word;
    const name = field.toLowerCase();
    if (minus === '' && name !== '' && name !== 'title') {
      const filter = filters[name === 'collection' ? 'collection' : 'url'];
      if (filter.length < 2) filter.push(content);
      continue;
    }
    const words = wordsOf(content).slice(0, MOST_WORDS - count);
    if (words.length === 0 || seen.has(whole)) continue;
    seen.add(whole);
    count += words.length;
    const end = match.index + whole.length;
    const isTyped = phrase === undefined && end === asked.length && minus === '';
    (minus === '' ? terms : excluded).push({
      words,
      variants:
        words.length === 1 && phrase === undefined ? variantsOf(content, words[0] ?? '') : words,
      isBeginning: content.endsWith('*') || isTyped,
      isIndexed: true,
      isInTitle: name === 'title',
      isQuoted: phrase !== undefined,
      start: match.index,
      end,
    });
  }
  return {
    terms,
    excluded,
    collections: filters.collection,
    urls: filters.url,
    highlights: highlightsOf(terms),
  };
}

function highlightsOf(terms: readonly Term[]): Highlights {
  const words = new Set(terms.flatMap((term) => [...term.words, ...term.variants]));
  const open = terms.filter((term) => term.isBeginning);
  const begun = open.flatMap((term) =>
    term.words.length === 1 ? term.variants : term.words.slice(-1),
  );
  const beginnings = begun.filter((word) => word.length > 1);
  const has = (word: string): boolean =>
    words.has(word) || beginnings.some((beginning) => word.startsWith(beginning));
  return { isEmpty: words.size === 0, has };
}

/**
 * Letters from which on a word is looked for in the other spelling of an umlaut, too: "does" is not
 * "dos".
 */
const LONG_FOR_UMLAUTS = 5;
const MOST_VARIANTS = 8;

/**
 * How a word is written where umlauts are not: `ae` for ä and the other way. The first one is the
 * word itself.
 */
function variantsOf(content: string, word: string): string[] {
  const variants = new Set([word]);
  const spelt = content.normalize('NFC').replace(/[äöü]/gi, (umlaut) => `${fold(umlaut)}e`);
  const [written] = wordsOf(spelt);
  if (written !== undefined) variants.add(written);
  if (word.length >= LONG_FOR_UMLAUTS) {
    variants.add(word.replace(/(?<=[aou])e/g, ''));
    for (const { index } of word.matchAll(/[aou](?!e)/g))
      if (variants.size < MOST_VARIANTS)
        variants.add(`${word.slice(0, index + 1)}e${word.slice(index + 1)}`);
  }
  return [...variants];
}

/**
 * Documents by their words. Where more than MOST_COUNTED have them, or two to four letters were
 * given as a beginning, those with them in their title or name come first, best first, then the
 * others, newest first. The newest come first where no words are given. Where nothing is found,
 * words that no document has are taken for the most similar ones.
 */
export function findDocuments(request: SearchRequest, deps: SearchDeps): SearchResult {
  const parsed = withKnownVariants(parseQuery(request.query), deps);
  const result = find(parsed, request, deps);
  if (result.total > 0 || parsed.terms.length === 0) return result;
  const corrected = correct(request.query, parsed, deps);
  if (corrected === undefined) return result;
  const instead = find(withKnownVariants(parseQuery(corrected), deps), request, deps);
  return instead.total > 0 ? { ...instead, corrected } : result;
}

/**
 * The query without other spellings that no document has, and with beginnings that are too wide as
 * whole words.
 */
function withKnownVariants(parsed: ParsedQuery, { database, documents }: SearchDeps): ParsedQuery {
  const isIndexed = documents.nextToRenew() === undefined;
  const known = (term: Term): Term => {
    const [word = '', ...others] = term.variants;
    const isSaid = (other: string) => isKnown(other, term.isBeginning, database);
    const variants = term.words.length === 1 ? [word, ...others.filter(isSaid)] : term.variants;
    const spelt = { ...term, isIndexed, variants };
    return isJoined(spelt) && isTooWide(term.words.at(-1) ?? '', database)
      ? { ...spelt, isBeginning: false }
      : spelt;
  };
  return { ...parsed, terms: parsed.terms.map(known), excluded: parsed.excluded.map(known) };
}

function find(
  parsed: ParsedQuery,
  request: SearchRequest,
  { database, documents }: SearchDeps,
): SearchResult {
  const { limit, offset } = request;
  const { highlights, terms, excluded, urls } = parsed;
  const collections = [request.collection, ...parsed.collections].filter((name) => name !== '');
  const asked = { ...parsed, collections };
  const isOpen = terms.length + excluded.length + urls.length + collections.length === 0;
  if (isOpen && request.query.trim() !== '')
    return { total: 0, totalIsExact: true, found: [], highlights };
  const scopeOf = (scope: Scope): Condition => conditionOf(asked, scope);
  const countOf = ({ values, ...condition }: Condition): number => {
    const sql = `SELECT count(*) AS total FROM (${select(condition)} LIMIT ${MOST_COUNTED + 1})`;
    return int(database.row(sql, ...values), 'total');
  };
  const pick = (
    { values, ...condition }: Condition,
    order: string,
    most: number,
    from: number,
  ): number[] => {
    const sql = `${select(condition)} ORDER BY ${order} LIMIT ? OFFSET ?`;
    return database.rows(sql, ...values, most, from).map((row) => int(row, 'document'));
  };
  const all = scopeOf('everywhere');
  const scopes: Scope[] = terms.some((term) => term.isBeginning) ? ['near', 'heads'] : ['heads'];
  const isCounted = terms.length + excluded.length + urls.length === 0 && collections.length < 2;
  const [collection] = collections;
  const total = isCounted
    ? documents.count(collection === undefined ? 'documents' : { collection })
    : countOf(all);
  const isFew = total <= MOST_COUNTED;
  const ids = (): number[] => {
    if (request.sort === 'date' && isFew) return pick(all, byDate(all), limit, offset);
    if (request.sort === 'date' || terms.length === 0) return pick(all, newest(all), limit, offset);
    if (isFew && all.from === 'words') return pick(all, BEST, limit, offset);
    for (const scope of scopes) {
      const first = scopeOf(scope);
      const count = countOf(first);
      if (count === 0 || count > MOST_COUNTED) continue;
      const found = offset < count ? pick(first, BEST, limit, offset) : [];
      const rest = limit - found.length;
      if (rest > 0)
        found.push(...pick(without(all, first), newest(all), rest, Math.max(0, offset - count)));
      return found;
    }
    return pick(all, newest(all), limit, offset);
  };
  return {
    total: isCounted ? total : Math.min(total, MOST_COUNTED),
    highlights,
    totalIsExact: isCounted || isFew,
    found: ids()
      .map((id) => documents.find('id', id))
      .filter((document) => document !== undefined),
  };
}

/**
 * Where words are looked for: `near` takes whole words everywhere, but beginnings in titles and
 * names alone.
 */
type Scope = 'everywhere' | 'near' | 'heads';

/** The plus has documents ranked that match the whole condition, not all that have the words. */
const BEST = '+rank';

/** Documents as SQL finds them. */
interface Condition {
  readonly from: keyof typeof SOURCES;
  readonly where: string;
  readonly values: readonly string[];
}

/**
 * Two tables of words are merged: with `ORDER BY`, SQLite goes through both side by side, and
 * collects neither.
 */
const BOTH = `(SELECT rowid AS document FROM words WHERE words MATCH ?
  INTERSECT SELECT rowid FROM beginnings WHERE beginnings MATCH ? ORDER BY 1 DESC) AS merged`;

const SOURCES = {
  words: { table: 'words', key: 'words.rowid' },
  beginnings: { table: 'beginnings', key: 'beginnings.rowid' },
  both: { table: BOTH, key: 'merged.document' },
  memberships: { table: 'memberships', key: 'memberships.document' },
  documents: { table: 'documents', key: 'documents.id' },
} as const;

function select({ from, where }: Pick<Condition, 'from' | 'where'>): string {
  return `SELECT ${SOURCES[from].key} AS document FROM ${SOURCES[from].table} WHERE ${where}`;
}

function newest({ from }: Pick<Condition, 'from'>): string {
  return `${SOURCES[from].key} DESC`;
}

function byDate({ from }: Pick<Condition, 'from'>): string {
  return `(SELECT coalesce(d.date, d.last_modified) FROM documents AS d WHERE d.id = ${SOURCES[from].key}) DESC, ${newest({ from })}`;
}

function without(all: Condition, first: Condition): Condition {
  const where = `${all.where} AND ${SOURCES[all.from].key} NOT IN (${select(first)})`;
  return { ...all, where, values: [...all.values, ...first.values] };
}

/**
 * What is more than words is checked for each document that has the words: FTS5 would begin anew
 * for each `rowid` without the plus.
 */
function conditionOf({ terms, excluded, collections, urls }: ParsedQuery, scope: Scope): Condition {
  const { match, beginnings } = matchOf(terms, scope);
  const within = [...collections];
  const where: string[] = [];
  const values: string[] = [];
  const add = (sql: string, ...more: readonly string[]): void => {
    where.push(sql);
    values.push(...more);
  };
  let from: Condition['from'] = 'documents';
  if (match !== '' && beginnings !== '') {
    from = 'both';
    add('true', match, beginnings);
  } else if (match !== '') {
    from = 'words';
    add('words MATCH ?', match);
  } else if (beginnings !== '') {
    from = 'beginnings';
    add('beginnings MATCH ?', beginnings);
  } else if (within[0] !== undefined) {
    from = 'memberships';
    add('collection = ?', within.shift() ?? '');
  } else add('true');
  const { key } = SOURCES[from];
  for (const collection of within)
    add(
      `EXISTS (SELECT 1 FROM memberships AS m WHERE m.collection = ? AND m.document = ${key})`,
      collection,
    );
  for (const url of urls) {
    const ranges = rangesOf(url);
    const either = ranges.map(() => 'url >= ? AND url < ?').join(' OR ');
    add(`+${key} IN (SELECT id FROM documents WHERE ${either})`, ...ranges.flat());
  }
  const isShort = (term: Term): boolean => isShortBeginning(term) && !term.isInTitle;
  const short = excluded.filter(isShort).flatMap(({ variants }) => variants.map(quoted));
  if (short.length > 0)
    add(
      `${key} NOT IN (SELECT rowid FROM beginnings WHERE beginnings MATCH ?)`,
      short.join(' OR '),
    );
  const others = excluded
    .filter((term) => !isShort(term))
    .map((term) => termMatch(term, 'everywhere'));
  if (others.length > 0)
    add(`${key} NOT IN (SELECT rowid FROM words WHERE words MATCH ?)`, others.join(' OR '));
  return { from, where: where.join(' AND '), values };
}

const SCHEMES = ['https', 'http', 'file', 'smb', 'sftp', 'ftp'];

/** From where to where URLs begin like this. */
function rangesOf(url: string): [from: string, to: string][] {
  const named = url.replace(
    /^([a-z]+:\/\/)?([^/:]*[^\x21-\x7e][^/:]*)/i,
    (_, scheme = '', host) => scheme + (domainToASCII(host) || host),
  );
  const written = named.replace(/[^\x21-\x7e]+/g, (other) =>
    encodeURIComponent(other.toWellFormed()),
  );
  const begins = /^[a-z]+:\/\//i.test(written)
    ? [written]
    : SCHEMES.map((scheme) => `${scheme}://${written}`);
  return begins.map((begin) => {
    const lower = begin.replace(/^[^/]*\/\/[^/]*/, (host) => host.toLowerCase());
    return [lower, `${lower}\u{10ffff}`];
  });
}

/**
 * What FTS5 is asked for. Only letters, digits and the mark reach it, in quotes, so that no words
 * can steer its language.
 */
function matchOf(terms: readonly Term[], scope: Scope): Record<'match' | 'beginnings', string> {
  const matches: string[] = [];
  const beginnings: string[] = [];
  for (const term of terms) {
    const isShort = isShortBeginning(term) && !term.isInTitle;
    if (scope !== 'everywhere' || !(isShort || isTakenApart(term)))
      matches.push(termMatch(term, scope));
    else {
      const spelt = isShort ? term.variants : term.words.slice(-1);
      beginnings.push(`(${spelt.map(quoted).join(' OR ')})`);
      if (!isShort) matches.push(quoted(term.words.slice(0, -1).join(' ')));
    }
  }
  return { match: matches.join(' AND '), beginnings: beginnings.join(' AND ') };
}

function termMatch(term: Term, scope: Scope): string {
  const phrase = term.words.join(' ');
  const exact = (term.words.length === 1 ? term.variants : [phrase]).map(quoted);
  const open = exact.flatMap((word) => openings(word, term));
  const heads = term.isInTitle ? 'title' : '{title name}';
  const either = (words: readonly string[]): string => `(${words.join(' OR ')})`;
  if (scope === 'heads' || term.isInTitle) return `(${heads} : ${either([...exact, ...open])})`;
  if (scope === 'everywhere' || open.length === 0) return either([...exact, ...open]);
  return either([...exact, `(${heads} : ${either(open)})`]);
}

/** What words that begin like this one, which is in quotes, are asked for by. */
function openings(word: string, term: Term): string[] {
  if (isShortBeginning(term)) return [`"${PREFIX_MARK}${word.slice(1)}`];
  return isJoined(term) ? [`${word}*`] : [];
}

/** Whether it is a beginning of which all spellings are indexed. */
function isShortBeginning({ isBeginning, isIndexed, variants, words }: Term): boolean {
  const isShort = (word: string): boolean => hasLetters(word, 2, LONGEST_BEGINNING);
  return isBeginning && isIndexed && words.length === 1 && variants.every(isShort);
}

/** Letters of the end of a phrase that is taken apart: all that begin so take too long to join. */
const LONGEST_APART = 3;

/**
 * Whether its last word is looked for as a beginning anywhere in a document that has the words
 * before it.
 */
function isTakenApart({ isBeginning, isIndexed, isInTitle, words }: Term): boolean {
  return (
    isBeginning &&
    isIndexed &&
    !isInTitle &&
    words.length > 1 &&
    hasLetters(words.at(-1), 2, LONGEST_APART)
  );
}

/** Whether all words that begin so are joined. */
function isJoined(term: Term): boolean {
  return (
    term.isBeginning &&
    hasLetters(term.words.at(-1), 2) &&
    !isShortBeginning(term) &&
    !isTakenApart(term)
  );
}

function hasLetters(word = '', least: number, most = Number.POSITIVE_INFINITY): boolean {
  const { length } = [...word];
  return length >= least && length <= most;
}

function quoted(words: string): string {
  return `"${words}"`;
}

/**
 * With more words than these, all that begin alike take too long to join: such a beginning is taken
 * for a whole word.
 */
const MOST_JOINED = 10_000;
/**
 * Where so many documents have only a few words, these are frequent ones, which are joined as
 * quickly as they are counted.
 */
const MANY_DOCUMENTS = 50_000;
const FEW = 1_000;

function isTooWide(beginning: string, database: Database): boolean {
  let [seen, had] = [0, 0];
  database.scan(VOCABULARY_RANGE, range(beginning), (row) => {
    seen += 1;
    had += int(row, 'doc');
    return seen <= MOST_JOINED && (seen > FEW || had < MANY_DOCUMENTS);
  });
  return seen > MOST_JOINED;
}

const VOCABULARY_RANGE = 'SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ?';

function range(beginning: string): [from: string, to: string] {
  return [beginning, `${beginning}\u{10ffff}`];
}

/** Shorter words are like too many others. */
const SHORTEST_CORRECTED = 5;
const SHORTEST_WITH_TWO = 8;
/** What a word costs beside the documents that have it. */
const WORD_COST = 30;
/** What is looked through for similar words, in words and documents that have them: some 100 ms. */
const MOST_LOOKED_THROUGH = 1_500_000;

/**
 * The query with the words that no document has replaced by the most similar ones; undefined where
 * there are none.
 */
function correct(
  query: string,
  { terms }: ParsedQuery,
  { database }: SearchDeps,
): string | undefined {
  let corrected = query;
  for (const term of [...terms].reverse()) {
    const [word = ''] = term.words;
    if (term.isQuoted || term.words.length > 1 || [...word].length < SHORTEST_CORRECTED) continue;
    if (term.variants.some((variant) => isKnown(variant, false, database))) continue;
    const similar = mostSimilar(word, database);
    if (similar === undefined) return undefined;
    const was = query.slice(term.start, term.end);
    const field = /^title:/i.exec(was)?.[0] ?? '';
    corrected = `${corrected.slice(0, term.start)}${field}${similar}${was.endsWith('*') ? '*' : ''}${corrected.slice(term.end)}`;
  }
  return corrected === query ? undefined : corrected;
}

function isKnown(word: string, isBeginning: boolean, database: Database): boolean {
  const [from, to] = isBeginning ? range(word) : [word, word];
  const sql = 'SELECT 1 AS found FROM vocabulary WHERE term >= ? AND term <= ? LIMIT 1';
  return database.row(sql, from, to) !== undefined;
}

/**
 * The word of the index with the fewest changes, of several the most frequent one; the first letter
 * is taken to be right.
 */
function mostSimilar(word: string, database: Database): string | undefined {
  const letters = [...word];
  let most = letters.length < SHORTEST_WITH_TWO ? 1 : 2;
  let looked = 0;
  let best: { term: string; documents: number } | undefined;
  for (const beginning of [letters.slice(0, 2).join(''), letters[0] ?? '']) {
    database.scan(VOCABULARY_RANGE, range(beginning), (row) => {
      const term = text(row, 'term');
      const documents = int(row, 'doc');
      const distance = changes(letters, [...term], most);
      if (distance < most || (distance === most && documents > (best?.documents ?? 0))) {
        most = distance;
        best = { term, documents };
      }
      looked += WORD_COST + documents;
      return looked < MOST_LOOKED_THROUGH;
    });
    if (best) break;
  }
  return best?.term;
}

/**
 * How many letters are other, more, less or swapped with the next one; more than `most` where there
 * are more.
 */
function changes(a: readonly string[], b: readonly string[], most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      let least = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    if (Math.min(...next) > most) return most + 1;
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}
