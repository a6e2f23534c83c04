import { stemmer as english } from '@orama/stemmers/english';
import { stemmer as german } from '@orama/stemmers/german';
import { type Database, int, text } from './database.js';
import { type ParsedQuery, type Term, withVariants } from './parsed-query.js';
import { isSymbolTerm, SYMBOL_TERMS } from './symbol-words.js';
import { rangeOf, TERMS } from './vocabulary.js';

/** A longer query is searched as it is. Each term is looked up in several places. */
const MAX_TERMS_WITH_FORMS = 16;
/** The most other forms of a word. The most frequent ones are taken. */
const MAX_FORMS = 12;
/** The most terms of the index that are looked at for one word. */
const MAX_TERMS = 3_000;
/** A shorter word has too many terms that begin as it does. */
const MIN_LETTERS = 3;
/** German endings are short: words with a shorter stem in common are different ones. */
const MIN_GERMAN_STEM = 5;

/**
 * Returns the query with other forms of its words that the index has: inflected ones (`lease` for
 * `leases`, `vertrag` for `vertrage`), and two words written as one (`zahnreinigung` for
 * `zahn reinigung`); undefined if there are none.
 */
export function withOtherForms(query: ParsedQuery, database: Database): ParsedQuery | undefined {
  if (query.terms.length > MAX_TERMS_WITH_FORMS) return undefined;
  const forms = new Map<Term, readonly string[]>();
  for (const [i, term] of query.terms.entries()) {
    if (!hasForms(term)) continue;
    const neighbours = [
      [query.terms[i - 1], term],
      [term, query.terms[i + 1]],
    ] as const;
    const found = [
      ...inflectionsOf(term.words[0] ?? '', database),
      ...neighbours.flatMap(([first, second]) => compoundsOf(first, second, database)),
    ];
    if (found.length > 0) forms.set(term, found);
  }
  return withForms(query, forms);
}

/**
 * Returns the query with the terms of the index that contain one of its words (`mietvertrag` for
 * `vertrag`); undefined if there are none. Reads the whole vocabulary once: about 1 µs a term.
 */
export function withCompounds(query: ParsedQuery, database: Database): ParsedQuery | undefined {
  const parts = query.terms.filter(
    (term) => hasForms(term) && (term.words[0] ?? '').length >= MIN_PART_LETTERS,
  );
  if (parts.length === 0) return undefined;
  const words = parts.map((term) => term.words[0] ?? '');
  const any = words.map(() => 'instr(term, ?)').join(' OR ');
  const sql = `SELECT term, doc FROM vocabulary
    WHERE length(term) >= ? AND (${any}) AND term NOT GLOB ? ORDER BY doc DESC LIMIT ?`;
  const shortest = Math.min(...words.map((word) => word.length)) + MIN_OTHER_LETTERS;
  const rows = database.rows(sql, shortest, ...words, SYMBOL_TERMS, MAX_CONTAINING);
  const terms = rows.map((row) => text(row, 'term'));
  const forms = new Map<Term, readonly string[]>();
  for (const part of parts) {
    const found = terms.filter((term) => isCompoundOf(term, part.words[0] ?? ''));
    if (found.length > 0) forms.set(part, found.slice(0, MAX_COMPOUND_FORMS));
  }
  return withForms(query, forms);
}

/** A shorter word is in too many others. */
const MIN_PART_LETTERS = 5;
/** The most terms with any of the words that are looked at, and that are taken of a word. */
const MAX_CONTAINING = 20_000;
const MAX_COMPOUND_FORMS = 40;
/** The other parts are not shorter: "invoice" is no compound of "voice". */
const MIN_OTHER_LETTERS = 3;

function isCompoundOf(term: string, part: string): boolean {
  const at = term.indexOf(part, MIN_OTHER_LETTERS);
  const behind = at === -1 ? 0 : term.length - at - part.length;
  if (at !== -1 && (behind === 0 || behind >= MIN_OTHER_LETTERS)) return true;
  return term.startsWith(part) && term.length >= part.length + MIN_OTHER_LETTERS;
}

function withForms(
  query: ParsedQuery,
  forms: ReadonlyMap<Term, readonly string[]>,
): ParsedQuery | undefined {
  if (forms.size === 0) return undefined;
  return withVariants(query, (term) => forms.get(term) ?? []);
}

/** Whether other forms of a term are looked for: of a word that was not written as it must be. */
function hasForms({ isPrefix, isQuoted, words }: Term): boolean {
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

/** Returns the terms of the index with the stem of a word, the most frequent first. */
function inflectionsOf(word: string, database: Database): string[] {
  const stems = { english: english(word), german: german(word) };
  const shortest = Math.min(stems.english.length, stems.german.length);
  // The last letter of a stem may differ from that of a word: battery, batteri-.
  const prefix = word.slice(0, Math.max(MIN_LETTERS, shortest - 1));
  const found: { readonly term: string; readonly documents: number }[] = [];
  let looked = 0;
  database.scan(TERMS, rangeOf(prefix), (row) => {
    const term = text(row, 'term');
    const isSame =
      english(term) === stems.english ||
      (stems.german.length >= MIN_GERMAN_STEM && german(term) === stems.german);
    if (isSame && term !== word) found.push({ term, documents: int(row, 'doc') });
    looked += 1;
    return looked < MAX_TERMS;
  });
  return found
    .sort((a, b) => b.documents - a.documents)
    .slice(0, MAX_FORMS)
    .map(({ term }) => term);
}

/** Letters that German puts between the parts of a compound. */
const LINKS = ['', 's', 'n', 'en', 'es'];
const MAX_COMPOUNDS = 4;

/** Returns the terms of the index that begin with two words written as one. */
function compoundsOf(first: Term | undefined, second: Term | undefined, database: Database) {
  const compounds: string[] = [];
  if (first === undefined || second === undefined || !hasForms(first) || !hasForms(second))
    return compounds;
  for (const link of LINKS) {
    const joined = `${first.words[0]}${link}${second.words[0]}`;
    let count = 0;
    database.scan(TERMS, rangeOf(joined), (row) => {
      compounds.push(text(row, 'term'));
      count += 1;
      return count < MAX_COMPOUNDS;
    });
  }
  return compounds;
}
