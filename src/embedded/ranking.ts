import type { ParsedQuery, Term } from './parsed-query.js';
import { BY_RANK, conditionOf, type Order, selectOf } from './query.js';
import { plainWord } from './symbol-words.js';

/** More results are ranked by BM25 alone, because each of them would be looked up twice more. */
export const MAX_BOOSTED = 1_000;

/** Factor for documents that have all of the words in title or name, and for near words. */
const BOOST = 1.5;

/** The most words between the first and the last word of a query that are near each other. */
const MAX_BETWEEN = 10;

/**
 * Orders documents by BM25. Those that have the whole query in title or name, those that have its
 * words near each other, and those that have all words of a question are ranked higher.
 */
export function byRank(query: ParsedQuery): Order {
  const heads = conditionOf(query, 'heads');
  const boosts = [`words.rowid IN (${selectOf(heads)})`];
  const values = [...heads.values];
  // The terms of symbol words follow the text, so their plain words tell where they are.
  const words = query.terms.filter(isPlain).flatMap((term) => term.words.map(plainWord));
  if (words.length > 1) {
    boosts.push('words.rowid IN (SELECT rowid FROM words WHERE words MATCH ?)');
    values.push(`NEAR(${words.map((word) => `"${word}"`).join(' ')}, ${MAX_BETWEEN})`);
  }
  if (query.common.length > 0) {
    const whole = conditionOf({ ...query, terms: [...query.terms, ...query.common] }, 'all');
    boosts.push(`words.rowid IN (${selectOf(whole)})`);
    values.push(...whole.values);
  }
  const factors = boosts.map((boost) => `CASE WHEN ${boost} THEN ${BOOST} ELSE 1 END`);
  return { sql: [BY_RANK.sql, ...factors].join(' * '), values };
}

function isPlain({ isInTitle, isPrefix, words }: Term): boolean {
  return words.length === 1 && !isPrefix && !isInTitle;
}
