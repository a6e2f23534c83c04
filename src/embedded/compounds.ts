import { hasForms, LINKS, MAX_TERMS_WITH_FORMS, withForms } from './forms.js';
import type { ParsedQuery, Term } from './parsed-query.js';
import { MIN_LISTED_LETTERS, type Words } from './word-list.js';

/** A shorter word is in too many others. */
const MIN_PART_LETTERS = 5;
/** The most compounds of a word. The most frequent ones are taken. */
const MAX_COMPOUNDS = 40;
/** The other parts are not shorter: "invoice" is no compound of "voice". */
const MIN_OTHER_LETTERS = 3;

/**
 * The other parts that a compound may have:
 *
 * - `words`: words of the index, so that "suitable" is no compound of "table".
 * - `any`: also others, for a query that finds nothing else.
 */
export type OtherParts = 'words' | 'any';

/**
 * Returns the query with the words of the index that contain one of its words, or another form of
 * it (`mietvertrag` for `vertrage`, `vertrag`); undefined if there are none.
 *
 * @param query with other forms of its words as variants
 */
export function withCompounds(
  query: ParsedQuery,
  words: Words,
  others: OtherParts,
): ParsedQuery | undefined {
  if (query.terms.length > MAX_TERMS_WITH_FORMS) return undefined;
  const forms = new Map<Term, readonly string[]>();
  for (const term of query.terms) {
    const compounds = hasForms(term) ? compoundsOf(term, words, others) : [];
    if (compounds.length > 0) forms.set(term, compounds);
  }
  return withForms(query, forms);
}

function compoundsOf({ variants }: Term, words: Words, others: OtherParts): readonly string[] {
  const long = variants.filter((variant) => variant.length >= MIN_PART_LETTERS);
  // The compounds of a word are also those of a word that begins with it.
  const parts = long.filter((part) => !long.some((each) => each !== part && part.startsWith(each)));
  const found = new Set<string>();
  for (const part of parts)
    for (const word of words.containing(part)) {
      if (found.size >= MAX_COMPOUNDS) break;
      if (!variants.includes(word) && isCompound(word, part, words, others)) found.add(word);
    }
  return [...found];
}

function isCompound(word: string, part: string, words: Words, others: OtherParts): boolean {
  for (let at = word.indexOf(part); at !== -1; at = word.indexOf(part, at + 1)) {
    const before = word.slice(0, at);
    const behind = word.slice(at + part.length);
    if (ENDINGS.has(behind) && before === '') continue;
    const isKnown = isBefore(before, words) && isBehind(behind, words);
    if (isKnown && (!isEnglishEnding(part + behind) || isFrequent(before, word, words)))
      return true;
    if (others === 'any' && isLikely(before, part, behind)) return true;
  }
  return false;
}

/** The endings of inflected words: "mietvertragen". */
const ENDINGS: ReadonlySet<string> = new Set(['', 'e', 'em', 'en', 'er', 'ern', 'es', 'n', 's']);

/** Whether the first part of a compound is a word, or nothing: `verlags`, `miet` for `miete`. */
function isBefore(before: string, words: Words): boolean {
  if (before === '') return true;
  if (before.length < MIN_LISTED_LETTERS) return false;
  return (
    ['e', 'en'].some((end) => words.documentsOf(before + end) > 0) ||
    LINKS.some(
      (link) =>
        before.endsWith(link) && isListed(before.slice(0, before.length - link.length), words),
    )
  );
}

/** Whether the last part of a compound is a word, or an ending: `sstrafen`, `en`. */
function isBehind(behind: string, words: Words): boolean {
  if (ENDINGS.has(behind)) return true;
  if (behind.length < MIN_LISTED_LETTERS || isEnglishEnding(behind)) return false;
  return LINKS.some(
    (link) =>
      behind.startsWith(link) &&
      [...ENDINGS].some(
        (ending) =>
          behind.endsWith(ending) &&
          isListed(behind.slice(link.length, behind.length - ending.length), words),
      ),
  );
}

function isListed(word: string, words: Words): boolean {
  return word.length >= MIN_LISTED_LETTERS && words.documentsOf(word) > 0;
}

/** Matches the endings that make English words of others: "suitable", "important", "normalized". */
const ENGLISH_ENDING =
  /(?:[ai]bl[ey]|ally|fully|ance|ant|ence|ent|[a-z]?ing|ition|(?:at|i[sz])(?:ed|ing|ion|or)|ization|ment|ness|ship)(?:ly|s)?$/;
/** A part that has so many letters before such an ending is probably none: t-able, st-ation. */
const MAX_BEFORE_ENDING = 2;

/** Whether the last part of a word is little more than an ending. */
function isEnglishEnding(part: string): boolean {
  const ending = ENGLISH_ENDING.exec(part)?.index;
  return ending !== undefined && ending <= MAX_BEFORE_ENDING;
}

/** Whether the first part is a frequent word, such as that of "timetable". "execu" is none. */
function isFrequent(before: string, word: string, words: Words): boolean {
  return before === '' || words.documentsOf(before) > words.documentsOf(word);
}

/** Whether a word is probably a compound, although its other parts are no words of the index. */
function isLikely(before: string, part: string, behind: string): boolean {
  const isLongBefore = before === '' || before.length >= MIN_OTHER_LETTERS;
  const isLongBehind = behind === '' || behind.length >= MIN_OTHER_LETTERS;
  if (!isLongBefore || !isLongBehind) return false;
  return !(before !== '' && isEnglishEnding(part + behind)) && !isEnglishEnding(behind);
}
