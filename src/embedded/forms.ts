import { stemmer as english } from '@orama/stemmers/english';
import { stemmer as german } from '@orama/stemmers/german';
import { type Database, int, text } from './database.js';
import { type ParsedQuery, type Term, withVariants } from './parsed-query.js';
import { isSymbolTerm } from './symbol-words.js';
import { rangeOf, TERMS } from './vocabulary.js';

/** A longer query is searched as it is. Each term is looked up in several places. */
export const MAX_TERMS_WITH_FORMS = 16;
/** The most other forms of a word. The most frequent ones are taken. */
const MAX_FORMS = 12;
/** The most terms of the index that are looked at for one word. */
const MAX_TERMS = 3_000;
/** A shorter word has too many terms that begin as it does. */
const MIN_LETTERS = 3;
/** German endings are short: words with a shorter stem in common are different ones. */
const MIN_GERMAN_STEM = 5;
/** Matches words with the stem of others that mean something else: "important", "news". */
const FALSE_FRIENDS =
  /^(?:authori|communit|general|generat|generic|importan|news$|organi|universit)/;

/**
 * Returns the query with other forms of its words that the index has: inflected ones (`lease` for
 * `leases`, `vertrag` for `vertrage`), and two words written as one (`zahnreinigung` for
 * `zahn reinigung`); undefined if there are none.
 */
export function withOtherForms(query: ParsedQuery, database: Database): ParsedQuery | undefined {
  if (query.terms.length > MAX_TERMS_WITH_FORMS) return undefined;
  const forms = new Map<Term, string[]>();
  const add = (term: Term, found: readonly string[]): void => {
    if (found.length > 0) forms.set(term, [...(forms.get(term) ?? []), ...found]);
  };
  for (const [i, term] of query.terms.entries()) {
    if (!hasForms(term)) continue;
    const [word = ''] = term.words;
    const similar = similarTerms(word, database);
    add(term, inflectionsOf(word, similar.terms));
    const next = query.terms[i + 1];
    if (next === undefined || !hasForms(next)) continue;
    const joined = joinedWords(word, next.words[0] ?? '', similar, database);
    add(term, joined);
    add(next, joined);
  }
  return withForms(query, forms);
}

/** Returns the query with other forms of some terms; undefined if there are none. */
export function withForms(
  query: ParsedQuery,
  forms: ReadonlyMap<Term, readonly string[]>,
): ParsedQuery | undefined {
  if (forms.size === 0) return undefined;
  return withVariants(query, (term) => forms.get(term) ?? []);
}

/** Whether other forms of a term are looked for: of a word that was not written as it must be. */
export function hasForms({ isPrefix, isQuoted, words }: Term): boolean {
  const [word = ''] = words;
  return (
    !isPrefix &&
    !isQuoted &&
    words.length === 1 &&
    word.length >= MIN_LETTERS &&
    !isSymbolTerm(word) &&
    !/\p{N}/u.test(word)
  );
}

/** A term of the index with the number of documents that have it. */
interface CountedTerm {
  readonly term: string;
  readonly documents: number;
}

/** Terms that begin as a word does. */
interface SimilarTerms {
  readonly terms: readonly CountedTerm[];
  /** False if there are more. */
  readonly isComplete: boolean;
}

/** Returns the terms of the index that begin with the stem of a word, without its last letter. */
function similarTerms(word: string, database: Database): SimilarTerms {
  const shortest = Math.min(english(word).length, german(word).length);
  // The last letter of a stem may differ from that of a word: battery, batteri-.
  const prefix = word.slice(0, Math.max(MIN_LETTERS, shortest - 1));
  const terms: CountedTerm[] = [];
  database.scan(TERMS, rangeOf(prefix), (row) => {
    terms.push({ term: text(row, 'term'), documents: int(row, 'doc') });
    return terms.length < MAX_TERMS;
  });
  return { terms, isComplete: terms.length < MAX_TERMS };
}

/** Returns the terms with the stem of a word, the most frequent first. */
function inflectionsOf(word: string, terms: readonly CountedTerm[]): string[] {
  const stems = { english: english(word), german: german(word) };
  const isStem = (term: string): boolean =>
    english(term) === stems.english ||
    (stems.german.length >= MIN_GERMAN_STEM && german(term) === stems.german);
  const meaningOf = (term: string) => FALSE_FRIENDS.exec(term)?.[0];
  const isSame = (term: string): boolean => isStem(term) && meaningOf(term) === meaningOf(word);
  return terms
    .filter(({ term }) => term !== word && isSame(term))
    .sort((a, b) => b.documents - a.documents)
    .slice(0, MAX_FORMS)
    .map(({ term }) => term);
}

/** Letters that German puts between the parts of a compound. */
export const LINKS = ['', 's', 'n', 'en', 'es'];
const MAX_JOINED = 4;

/** Returns the terms of the index that begin with two words written as one. */
function joinedWords(
  first: string,
  second: string,
  { isComplete, terms }: SimilarTerms,
  database: Database,
): readonly string[] {
  return LINKS.flatMap((link) => {
    const joined = `${first}${link}${second}`;
    const found = isComplete
      ? terms.filter(({ term }) => term.startsWith(joined)).map(({ term }) => term)
      : database
          .rows(`${TERMS} LIMIT ${MAX_JOINED}`, ...rangeOf(joined))
          .map((row) => text(row, 'term'));
    return found.slice(0, MAX_JOINED);
  });
}
