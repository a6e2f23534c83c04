import type { Term } from './parsed-query.js';

/**
 * The words that nearly every text has, in English and German. They tell no documents apart, so a
 * question is also found without them.
 */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about am an and any are as at be by can could did do does for from had has have how i if in is
  it its long many me much my of often on or our please should so that the their them there
  these they this to us was we were what when where which who whom whose why will with would you
  your
  aber als am an auf aus bei bin bis da das dass dem den der des die dies diese dieser dieses
  durch ein eine einem einen einer eines er es fur hat habe haben hoch ich ihr im in ist kann
  lange mein meine meinem meinen meiner mich mir mit nach nicht oder oft sein seine sich sie
  sind so uber um und uns unser unsere unter viel viele vom von vor wann war waren warum was
  welche welchem welchen welcher welches wenn wer werden wie wieviel wir wird wo wofur zu zum
  zur`.split(/\s+/),
);

/** The words with which a question begins. */
const QUESTION_WORDS: ReadonlySet<string> = new Set(
  `are can could did do does how is should was were what when where which who whom whose why will
  would
  darf hat ist kann muss sind wann war warum was welche welchem welchen welcher welches wenn wer
  wie wieviel wird wo wofur`.split(/\s+/),
);

/** A shorter query is neither a sentence nor a question. */
const MIN_SENTENCE_TERMS = 4;

/**
 * Whether a query may be a sentence. If it finds nothing, words that nearly every text has are left
 * out without a word about it.
 */
export function isSentence(terms: readonly Term[]): boolean {
  return terms.length >= MIN_SENTENCE_TERMS;
}

/**
 * Whether a query is a question, which is answered by its other words: it begins as one, and has
 * another word that nearly every text has. "Will Smith movies 2020" is none.
 */
export function isQuestion(terms: readonly Term[]): boolean {
  const [first] = terms;
  const common = terms.filter((term) => !tellsApart(term));
  return (
    isSentence(terms) &&
    first !== undefined &&
    common.length > 1 &&
    common[0] === first &&
    QUESTION_WORDS.has(first.words[0] ?? '')
  );
}

/** Whether a term is more than a word that nearly every text has. */
export function tellsApart({ isInTitle, isPrefix, isQuoted, words }: Term): boolean {
  const isPlain = !isInTitle && !isQuoted && !isPrefix;
  return !(isPlain && words.length === 1 && STOP_WORDS.has(words[0] ?? ''));
}
