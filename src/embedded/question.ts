import { wordsOf } from './words.js';

/** What a person asks the index for. */
export interface Question {
  /** In FTS5's language; undefined where there is no word to look for. */
  readonly match: string | undefined;
  /** Folded words to highlight. */
  readonly highlights: ReadonlySet<string>;
}

const MOST_TERMS = 32;
const LONGEST_QUESTION = 1_000;

/**
 * Reads a person's words: every word has to be there; "words in quotes" stand together. Only letters and digits reach FTS5,
 * each term in quotes, so no words can break or steer its language. Beginnings of words cannot be asked for: over
 * 200,000 documents `w1*` held everybody up for 17 s, where a word takes at most half of one.
 */
export function readQuestion(asked: string): Question {
  const match: string[] = [];
  const highlights = new Set<string>();
  for (const [, phrase, word] of asked.slice(0, LONGEST_QUESTION).matchAll(/"([^"]*)"|([^\s"]+)/g)) {
    const words = wordsOf(phrase ?? word ?? '');
    if (words.length === 0 || match.length >= MOST_TERMS) continue;
    match.push(`"${words.join(' ')}"`);
    for (const each of words) highlights.add(each);
  }
  return { match: match.length > 0 ? match.join(' ') : undefined, highlights };
}
