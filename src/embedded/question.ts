import { wordsOf } from './words.js';

/** What a person asks the index for. */
export interface Question {
  /** In FTS5's language; undefined where there is no word to look for. */
  readonly match: string | undefined;
  /** Folded words to highlight; a prefix ends in `*`. */
  readonly highlights: ReadonlySet<string>;
}

const MOST_TERMS = 32;
const LONGEST_QUESTION = 1_000;

/**
 * Reads a person's words: every word has to be there; "words in quotes" stand together; `begin*` asks for a beginning.
 * Only letters and digits reach FTS5, each term in quotes, so no words can break or steer its language.
 */
export function readQuestion(asked: string): Question {
  const match: string[] = [];
  const highlights = new Set<string>();
  for (const [, phrase, word] of asked.slice(0, LONGEST_QUESTION).matchAll(/"([^"]*)"|([^\s"]+)/g)) {
    const words = wordsOf(phrase ?? word ?? '');
    if (words.length === 0 || match.length >= MOST_TERMS) continue;
    const prefix = word?.endsWith('*') ?? false;
    match.push(`"${words.join(' ')}"${prefix ? '*' : ''}`);
    for (const [i, each] of words.entries())
      highlights.add(prefix && i === words.length - 1 ? `${each}*` : each);
  }
  return { match: match.length > 0 ? match.join(' ') : undefined, highlights };
}
