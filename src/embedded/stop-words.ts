import type { Term } from './query-parser.js';

/**
 * The words that nearly every text has, in English and German. They tell no documents apart, so a
 * question is also found without them.
 */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about am an and any are as at be by can could did do does for from had has have how i if in is
  it its me my of on or our please should so that the their them there these they this to us was we
  were what when where which who whom whose why will with would you your
  aber als am an auf aus bei bin bis da das dass dem den der des die dies diese dieser dieses durch
  ein eine einem einen einer eines er es fur hat habe haben ich ihr im in ist kann mein meine meinem
  meinen meiner mich mir mit nach nicht oder sein seine sich sie sind so uber um und uns unser unsere
  unter vom von vor wann war waren warum was welche welchem welchen welcher welches wenn wer werden
  wie wieviel wir wird wo wofur zu zum zur`.split(/\s+/),
);

/** A sentence with fewer terms is no question. */
const MIN_QUESTION_TERMS = 4;

/** Whether words that nearly every text has are left out of a query without a word about it. */
export function isQuestion(terms: readonly Term[]): boolean {
  return terms.length >= MIN_QUESTION_TERMS;
}

/** Whether a term is more than a word that nearly every text has. */
export function tellsApart({ isInTitle, isPrefix, isQuoted, words }: Term): boolean {
  const isPlain = !isInTitle && !isQuoted && !isPrefix;
  return !(isPlain && words.length === 1 && STOP_WORDS.has(words[0] ?? ''));
}
