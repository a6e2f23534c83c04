import { editDistance } from '../lib/text.js';
import { type Database, int, text } from './database.js';
import { type ParsedQuery, plainTerm, type Term, termsOf } from './parsed-query.js';
import { isSentence, tellsApart } from './stop-words.js';
import { isSymbolTerm, withoutSigns } from './symbol-words.js';
import { isInVocabulary, rangeOf, TERMS } from './vocabulary.js';
import { placedWords } from './words.js';

/** A query with the words that were probably meant. */
export interface Repaired {
  readonly text: string;
  /** Whether a word was replaced. */
  readonly isCorrected: boolean;
  /** Whether the word that is being typed was not removed. */
  readonly isLastKept: boolean;
  /** The terms that were removed, because no document has their words or similar ones. */
  readonly without: readonly string[];
}

/** Returns the word of the index that was probably meant by one that no document has. */
type Correction = (word: string, term: Term) => string | undefined;

/** Corrects words by the most similar terms of the index. */
export function bySimilarity(database: Database): Correction {
  const budget = { cost: 0 };
  return (word, term) =>
    twoWordsOf(word, term, database) ?? mostSimilarTerm(word, database, budget);
}

/**
 * Returns the query with each word that no document has corrected, and without the terms that have
 * such a word and no correction; undefined if nothing would be left.
 *
 * @param query as it was written
 */
export function repaired(
  query: string,
  { groups, terms }: ParsedQuery,
  database: Database,
  correct: Correction,
): Repaired | undefined {
  let repairedText = query;
  let isCorrected = false;
  let isLastKept = true;
  let removed = 0;
  const without: string[] = [];
  const inGroups = groups.flatMap(termsOf);
  const all = [...terms, ...inGroups].sort((a, b) => b.start - a.start);
  // The last term is replaced first. The positions of those before it stay valid.
  for (const term of all) {
    const source = query.slice(term.start, term.end);
    const correction = correctedTerm(source, term, database, correct);
    // An unknown alternative does no harm. Where all of a group are needed, nothing is found.
    if (correction === source || (correction === undefined && inGroups.includes(term))) continue;
    if (correction === undefined && !mayBeLeftOut(term)) return undefined;
    if (correction === undefined) {
      if (tellsApart(term) || !isSentence(terms)) without.unshift(source);
      removed += 1;
      isLastKept &&= !term.isBeingTyped;
    } else isCorrected = true;
    repairedText = `${repairedText.slice(0, term.start)}${correction ?? ''}${repairedText.slice(term.end)}`;
  }
  if (removed === all.length) return undefined;
  const isShorter = removed > 0;
  return {
    text: isShorter ? repairedText.replace(/ {2,}/g, ' ').trimStart() : repairedText,
    isCorrected,
    isLastKept,
    without,
  };
}

/** Returns a query with plain words in place of the symbol words that it asks for. */
export function withoutSymbols(query: string, { groups, terms }: ParsedQuery): string {
  let plain = query;
  // The last term is replaced first, as above.
  const all = [...terms, ...groups.flatMap(termsOf)].sort((a, b) => b.start - a.start);
  for (const term of all) {
    if (symbolsOf(term).length === 0) continue;
    const source = plainSource(query.slice(term.start, term.end));
    plain = `${plain.slice(0, term.start)}${source}${plain.slice(term.end)}`;
  }
  return plain;
}

/** Returns the terms of the index for the symbol words of a term. */
function symbolsOf({ symbols, words }: Term): readonly string[] {
  return [...words.filter(isSymbolTerm), ...symbols];
}

/** Returns the source of a term without the signs of its symbol words. */
function plainSource(source: string): string {
  return withoutSigns(source, placedWords(source));
}

/**
 * Whether others than the documents with a term may be an answer. A number or a date tells
 * documents apart.
 */
export function mayBeLeftOut({ isInTitle, isQuoted, words }: Term): boolean {
  return !isInTitle && !isQuoted && !words.some((word) => /\p{N}/u.test(word));
}

/**
 * Returns the source of a term with its unknown words replaced; undefined if one of them has no
 * similar term.
 */
function correctedTerm(
  source: string,
  term: Term,
  database: Database,
  correct: Correction,
): string | undefined {
  const isMissing = (symbol: string): boolean => !isInVocabulary(symbol, term.isPrefix, database);
  if (symbolsOf(term).some(isMissing)) {
    const plain = plainSource(source);
    return correctedTerm(plain, plainTerm(term), database, correct);
  }
  if (term.joined !== undefined && isInVocabulary(term.joined, term.isPrefix, database))
    return source;
  const isLast = (i: number) => i === term.words.length - 1;
  const isKnown = (word: string, i: number) =>
    (term.words.length === 1 ? term.variants : [word]).some((variant) =>
      isInVocabulary(variant, term.isPrefix && isLast(i), database),
    );
  const unknown = term.words.filter((word, i) => !isKnown(word, i));
  if (unknown.length === 0) return source;
  if (!tellsApart(term)) return undefined;
  const similar = new Map<string, string>();
  for (const word of unknown) {
    const found = correct(word, term);
    if (found === undefined) return undefined;
    similar.set(word, found);
  }
  let corrected = source;
  const field = /^title:/i.exec(source)?.[0].length ?? 0;
  for (const { end, start, word } of [...placedWords(source.slice(field))].reverse())
    corrected = `${corrected.slice(0, field + start)}${similar.get(word) ?? corrected.slice(field + start, field + end)}${corrected.slice(field + end)}`;
  return corrected;
}

/** A shorter part is a beginning or an ending, and no word. */
const MIN_PART_LETTERS = 2;

/**
 * Returns a word as two that documents have side by side, with a hyphen: `wi-fi` for `wifi`. Of
 * several ways, the one that most documents have.
 */
function twoWordsOf(word: string, { words }: Term, database: Database): string | undefined {
  if (words.length > 1 || /\p{N}/u.test(word)) return undefined;
  const letters = [...word];
  let best: { readonly words: string; readonly documents: number } | undefined;
  for (let end = MIN_PART_LETTERS; end <= letters.length - MIN_PART_LETTERS; end += 1) {
    const parts = [letters.slice(0, end), letters.slice(end)].map((part) => part.join(''));
    if (!parts.every((part) => isInVocabulary(part, false, database))) continue;
    const sql =
      'SELECT count(*) AS total FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT 1000)';
    const documents = int(database.row(sql, `"${parts.join(' ')}"`), 'total');
    if (documents > (best?.documents ?? 0)) best = { words: parts.join('-'), documents };
  }
  return best?.words;
}

/** A shorter word resembles too many others. */
const MIN_CORRECTED_LETTERS = 4;
/** A shorter word is corrected by one edit, a longer one by two. */
const MIN_LETTERS_FOR_TWO_EDITS = 7;
/** Of two edits, a shorter word keeps its length: "dentist" is not meant by "denis". */
const MIN_LETTERS_FOR_OTHER_LENGTH = 8;
/**
 * The work to look for terms similar to the words of a query, about 100 ms. A term costs TERM_COST
 * and one for each document that has it.
 */
const MAX_COST = 1_500_000;
const TERM_COST = 30;
/** The work that was done for a query. */
interface Budget {
  cost: number;
}

/**
 * Returns the term with the smallest edit distance; of several, the most frequent one. Terms with
 * the same first two letters are tried first, then those with the same first letter, then those
 * whose first letter is another one.
 */
function mostSimilarTerm(word: string, database: Database, budget: Budget): string | undefined {
  const letters = [...word];
  if (letters.length < MIN_CORRECTED_LETTERS || /\p{N}/u.test(word)) return undefined;
  let limit = letters.length < MIN_LETTERS_FOR_TWO_EDITS ? 1 : 2;
  let best: { readonly term: string; readonly documents: number } | undefined;
  for (const prefixes of prefixesOfSimilar(letters)) {
    for (const prefix of prefixes)
      database.scan(TERMS, rangeOf(prefix), (row) => {
        const term = text(row, 'term');
        const documents = int(row, 'doc');
        const distance = distanceTo(letters, term, limit);
        if (distance < limit || (distance === limit && documents > (best?.documents ?? 0))) {
          limit = distance;
          best = { term, documents };
        }
        budget.cost += TERM_COST + documents;
        return budget.cost < MAX_COST;
      });
    if (best !== undefined) break;
  }
  return best?.term;
}

/** Returns the edit distance of a word to a term that may replace it; above `limit` if none may. */
function distanceTo(letters: readonly string[], term: string, limit: number): number {
  if (/\p{N}/u.test(term)) return limit + 1;
  const others = [...term];
  const distance = editDistance(letters, others, limit);
  const isLong = letters.length >= MIN_LETTERS_FOR_OTHER_LENGTH;
  return distance > 1 && !isLong && others.length !== letters.length ? limit + 1 : distance;
}

const ALPHABET = [...'abcdefghijklmnopqrstuvwxyz'];

/** Returns the beginnings of terms that may be similar, the likely ones first. */
function prefixesOfSimilar(letters: readonly string[]): readonly (readonly string[])[] {
  const [first = '', second = '', third = ''] = letters;
  // The first letter is missing, wrong, one too many, or swapped with the second one.
  const others = ALPHABET.flatMap((letter) => [
    `${letter}${first}${second}`,
    `${letter}${second}${third}`,
  ]);
  return [[`${first}${second}`], [first], [`${second}${third}`, `${second}${first}`, ...others]];
}
