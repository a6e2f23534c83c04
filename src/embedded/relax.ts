import { type Database, int } from './database.js';
import { withOtherForms } from './forms.js';
import type { ParsedQuery, Term } from './parsed-query.js';
import { conditionOf, selectOf } from './query.js';
import { mayBeLeftOut } from './repair.js';
import { tellsApart } from './stop-words.js';

/** A query without some of its terms. */
export interface Relaxed {
  readonly query: ParsedQuery;
  /** The terms that were left out, in the order of the query. */
  readonly removed: readonly Term[];
}

/** Only so many terms may be left out. The documents of each are looked up. */
const MAX_OPTIONAL = 16;
/** The most documents of a term that are looked at. */
const MAX_DOCUMENTS = 10_000;

/**
 * Leaves out terms, so that a document has all of the others: as few as possible, and of as few the
 * most frequent ones. At least half of the terms that tell documents apart stay. Phrases in quotes,
 * titles and numbers are never left out.
 *
 * Reads the documents of each term once, and takes the terms that a document has together.
 *
 * @returns undefined if no document has enough of the terms
 */
export function relaxed(query: ParsedQuery, database: Database): Relaxed | undefined {
  // A document with another form of a word has the word.
  const wide = withOtherForms(query, database) ?? query;
  const isOptional = (term: Term, place: number): boolean =>
    mayBeLeftOut(term) && place < MAX_OPTIONAL;
  const required = wide.terms.filter((term, place) => !isOptional(term, place));
  const documentsOf = (terms: readonly Term[], limit: number): number[] => {
    const condition = conditionOf({ ...wide, terms: [...required, ...terms] }, 'all');
    const sql = `${selectOf(condition)} LIMIT ?`;
    return database.rows(sql, ...condition.values, limit).map((row) => int(row, 'document'));
  };
  if (documentsOf([], 1).length === 0) return undefined;
  // The highest bit of a mask is the most frequent term.
  const optional = wide.terms
    .flatMap((term, place) => (isOptional(term, place) ? [{ place, term }] : []))
    .map((each) => ({ ...each, documents: documentsOf([each.term], MAX_DOCUMENTS) }))
    .sort((a, b) => a.documents.length - b.documents.length || b.place - a.place);
  const masks = new Map<number, number>();
  for (const [bit, { documents }] of optional.entries())
    for (const id of documents) masks.set(id, ((masks.get(id) ?? 0) | (1 << bit)) >>> 0);
  const telling = optional.flatMap(({ term }, bit) => (tellsApart(term) ? [bit] : []));
  const requiredTelling = required.filter(tellsApart).length;
  const least = Math.ceil((telling.length + requiredTelling) / 2) - requiredTelling;
  const has = (mask: number, bit: number): boolean => ((mask >>> bit) & 1) === 1;
  let best: { readonly mask: number; readonly count: number } | undefined;
  for (const mask of new Set(masks.values())) {
    if (telling.filter((bit) => has(mask, bit)).length < least) continue;
    const count = bitsOf(mask);
    const isBetter =
      best === undefined || count > best.count || (count === best.count && mask < best.mask);
    if (isBetter) best = { mask, count };
  }
  // Without a mask, the required terms alone may be enough.
  const isEnough = least <= 0 && required.length + query.groups.length > 0;
  if (best === undefined && !isEnough) return undefined;
  const kept = optional.filter((_, bit) => has(best?.mask ?? 0, bit));
  // Not all documents of a frequent term were looked at.
  for (const each of optional.filter(({ documents }) => documents.length === MAX_DOCUMENTS)) {
    const terms = [...kept, each].map(({ term }) => term);
    if (!kept.includes(each) && documentsOf(terms, 1).length > 0) kept.push(each);
  }
  const places = kept.map(({ place }) => place);
  const stays = (term: Term, place: number): boolean =>
    !isOptional(term, place) || places.includes(place);
  return {
    query: { ...query, terms: query.terms.filter(stays) },
    removed: query.terms.filter((term, place) => !stays(term, place)),
  };
}

function bitsOf(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count += 1;
  return count;
}
