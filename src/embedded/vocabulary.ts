import { editDistance } from '../lib/edit-distance.js';
import { type Database, int, text } from './database.js';
import type { ParsedQuery, Term } from './query.js';

/** Terms of the index with the number of documents that have them, in order. */
const TERMS = 'SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ?';

/** Returns the bounds of the terms that begin with a prefix, for `>=` and `<`. */
function rangeOf(prefix: string): [from: string, to: string] {
  return [prefix, `${prefix}\u{10ffff}`];
}

/** Whether a document has this term, or a term with this prefix. */
export function isInVocabulary(word: string, isPrefix: boolean, database: Database): boolean {
  const [from, to] = isPrefix ? rangeOf(word) : [word, word];
  const sql = 'SELECT 1 AS found FROM vocabulary WHERE term >= ? AND term <= ? LIMIT 1';
  return database.row(sql, from, to) !== undefined;
}

/** More terms take too long to expand. */
const MAX_EXPANDED_TERMS = 10_000;
/**
 * If so many documents have only a few terms with a prefix, these are frequent words. They are
 * expanded as quickly as they are counted, so the count may stop.
 */
const MANY_DOCUMENTS = 50_000;
const FEW_TERMS = 1_000;

/** Whether too many terms have a prefix to expand it. */
export function isTooWide(prefix: string, database: Database): boolean {
  let terms = 0;
  let documents = 0;
  database.scan(TERMS, rangeOf(prefix), (row) => {
    terms += 1;
    documents += int(row, 'doc');
    return terms <= MAX_EXPANDED_TERMS && (terms > FEW_TERMS || documents < MANY_DOCUMENTS);
  });
  return terms > MAX_EXPANDED_TERMS;
}

/** A shorter word resembles too many others. */
const MIN_CORRECTED_LETTERS = 5;

/**
 * Returns the query with each word that no document has replaced by the most similar term;
 * undefined if nothing can be corrected. Phrases and words in quotes stay.
 */
export function corrected(
  query: string,
  { terms }: ParsedQuery,
  database: Database,
): string | undefined {
  let text = query;
  // From the end, so that the positions before it stay valid.
  for (const term of terms.toReversed()) {
    if (!isMisspelt(term, database)) continue;
    const similar = mostSimilarTerm(term.words[0] ?? '', database);
    if (similar === undefined) return undefined;
    const source = query.slice(term.start, term.end);
    const field = /^title:/i.exec(source)?.[0] ?? '';
    const star = source.endsWith('*') ? '*' : '';
    text = `${text.slice(0, term.start)}${field}${similar}${star}${text.slice(term.end)}`;
  }
  return text === query ? undefined : text;
}

function isMisspelt({ isQuoted, variants, words }: Term, database: Database): boolean {
  const [word = ''] = words;
  if (isQuoted || words.length > 1 || [...word].length < MIN_CORRECTED_LETTERS) return false;
  return !variants.some((variant) => isInVocabulary(variant, false, database));
}

/** A shorter word is corrected by one edit, a longer one by two. */
const MIN_LETTERS_FOR_TWO_EDITS = 8;
/**
 * The work to look for similar terms, about 100 ms. A term costs TERM_COST and one for each
 * document that has it.
 */
const MAX_COST = 1_500_000;
const TERM_COST = 30;

/**
 * Returns the term with the smallest edit distance; of several, the most frequent one. The first
 * letter is taken to be right. Terms with the same first two letters are tried first.
 */
function mostSimilarTerm(word: string, database: Database): string | undefined {
  const letters = [...word];
  let limit = letters.length < MIN_LETTERS_FOR_TWO_EDITS ? 1 : 2;
  let cost = 0;
  let best: { readonly term: string; readonly documents: number } | undefined;
  for (const prefix of [letters.slice(0, 2).join(''), letters[0] ?? '']) {
    database.scan(TERMS, rangeOf(prefix), (row) => {
      const term = text(row, 'term');
      const documents = int(row, 'doc');
      const distance = editDistance(letters, [...term], limit);
      if (distance < limit || (distance === limit && documents > (best?.documents ?? 0))) {
        limit = distance;
        best = { term, documents };
      }
      cost += TERM_COST + documents;
      return cost < MAX_COST;
    });
    if (best !== undefined) break;
  }
  return best?.term;
}
