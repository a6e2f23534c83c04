import { type Database, int } from './database.js';
import type { Document, Library } from './library.js';
import { type Question, readQuestion } from './question.js';
import { beginningOf, type SnippetPiece, snippetOf } from './snippet.js';
import type { Tally } from './tally.js';

export interface SearchRequest {
  readonly query: string;
  /** Only documents of this collection; empty for all. */
  readonly collection: string;
  readonly offset: number;
  readonly limit: number;
}

export interface SearchHit {
  readonly document: Document;
  readonly snippet: readonly SnippetPiece[];
}

export interface SearchResult {
  /** Counted up to MOST_COUNTED. */
  readonly total: number;
  readonly totalIsExact: boolean;
  readonly hits: readonly SearchHit[];
}

/** A page of documents, by their numbers. */
type Found = Pick<SearchResult, 'total' | 'totalIsExact'> & { readonly ids: readonly number[] };

/** More documents than these are not counted and not ranked: for words that are nearly everywhere it would take too long. */
export const MOST_COUNTED = 10_000;
/** Parts of a text in which a snippet is looked for. */
const SNIPPET_PARTS = 4;

/** Finds documents by their words, best first; the newest first where no words are given or too many have them. */
export class Search {
  readonly #database: Database;
  readonly #library: Library;
  readonly #tally: Tally;

  constructor(database: Database, library: Library, tally: Tally) {
    this.#database = database;
    this.#library = library;
    this.#tally = tally;
  }

  find(request: SearchRequest): SearchResult {
    const question = readQuestion(request.query);
    if (question.match === undefined && request.query.trim() !== '')
      return { total: 0, totalIsExact: true, hits: [] };
    const { ids, ...found } =
      question.match === undefined ? this.#newest(request) : this.#matching(question.match, request);
    const documents = ids.map((id) => this.#library.byId(id)).filter((d) => d !== undefined);
    return {
      ...found,
      hits: documents.map((document) => ({ document, snippet: this.#snippet(document, question) })),
    };
  }

  #newest({ collection, limit, offset }: SearchRequest): Found {
    const page = [limit, offset];
    if (collection === '') {
      const sql = 'SELECT id FROM documents ORDER BY id DESC LIMIT ? OFFSET ?';
      return {
        total: this.#tally.of('documents'),
        totalIsExact: true,
        ids: this.#database.rows(sql, ...page).map((row) => int(row, 'id')),
      };
    }
    const sql =
      'SELECT document FROM memberships WHERE collection = ? ORDER BY document DESC LIMIT ? OFFSET ?';
    return {
      total: this.#tally.ofCollection(collection),
      totalIsExact: true,
      ids: this.#database.rows(sql, collection, ...page).map((row) => int(row, 'document')),
    };
  }

  #matching(match: string, { collection, limit, offset }: SearchRequest): Found {
    const within = 'EXISTS (SELECT 1 FROM memberships WHERE collection = ? AND document = words.rowid)';
    const where = collection === '' ? 'words MATCH ?' : `words MATCH ? AND ${within}`;
    const values = collection === '' ? [match] : [match, collection];
    const upTo = MOST_COUNTED + 1;
    const counting = `SELECT count(*) AS total FROM (SELECT 1 FROM words WHERE ${where} LIMIT ${upTo})`;
    const counted = int(this.#database.row(counting, ...values), 'total');
    const order = counted > MOST_COUNTED ? 'rowid DESC' : 'rank';
    const sql = `SELECT rowid FROM words WHERE ${where} ORDER BY ${order} LIMIT ? OFFSET ?`;
    const rows = this.#database.rows(sql, ...values, limit, offset);
    return {
      total: Math.min(counted, MOST_COUNTED),
      totalIsExact: counted <= MOST_COUNTED,
      ids: rows.map((row) => int(row, 'rowid')),
    };
  }

  #snippet(document: Document, question: Question): readonly SnippetPiece[] {
    const first = this.#library.textPart(document.id, 0) ?? '';
    let part: string | undefined = first;
    for (let i = 0; part !== undefined && i < SNIPPET_PARTS && question.match !== undefined; i += 1) {
      const found = snippetOf(part, question.highlights);
      if (found) return found;
      part = this.#library.textPart(document.id, i + 1);
    }
    return beginningOf(first);
  }
}
