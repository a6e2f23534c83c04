import type { JudgedQuery } from './relevance.js';

/** The most documents that are looked at. */
export const SHOWN = 10;

/** Answer of an engine: names of documents, the best first. */
export interface Answer {
  readonly files: readonly string[];
  /**
   * The engine says that these are not documents with all that was asked for: it left words out, or
   * corrected some.
   */
  readonly isAnnounced: boolean;
}

/** An engine that indexed the corpus. */
export interface Engine {
  readonly name: string;
  ask(query: JudgedQuery): Answer | Promise<Answer>;
  end(): void | Promise<void>;
}

/** A part of a query. Those of FTS5 and Xapian have quotes, operators and parentheses, too. */
export type QueryPart =
  | { readonly type: 'word' | 'phrase' | 'excluded'; readonly text: string }
  | { readonly type: 'operator'; readonly text: 'AND' | 'OR' | 'NOT' | '(' | ')' };

/** Splits a query as people write one. */
export function partsOf(query: string): QueryPart[] {
  return [...query.matchAll(/"([^"]*)"?|([()])|(-?)([^\s()"]+)/g)].map(
    ([, phrase, parenthesis, minus, word = '']): QueryPart => {
      if (phrase !== undefined) return { type: 'phrase', text: phrase };
      if (parenthesis === '(' || parenthesis === ')')
        return { type: 'operator', text: parenthesis };
      if (word === 'AND' || word === 'OR' || word === 'NOT')
        return { type: 'operator', text: word };
      return { type: minus === '-' ? 'excluded' : 'word', text: word };
    },
  );
}
