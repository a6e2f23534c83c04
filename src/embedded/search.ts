import { type Database, int } from './database.js';
import type { Document, DocumentStore } from './documents.js';
import { placedWords, wordsOf } from './words.js';

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
  readonly #documents: DocumentStore;

  constructor(database: Database, documents: DocumentStore) {
    this.#database = database;
    this.#documents = documents;
  }

  find(request: SearchRequest): SearchResult {
    const question = readQuestion(request.query);
    if (question.match === undefined && request.query.trim() !== '')
      return { total: 0, totalIsExact: true, hits: [] };
    const { ids, ...found } =
      question.match === undefined ? this.#newest(request) : this.#matching(question.match, request);
    const documents = ids.map((id) => this.#documents.byId(id)).filter((d) => d !== undefined);
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
        total: this.#documents.count('documents'),
        totalIsExact: true,
        ids: this.#database.rows(sql, ...page).map((row) => int(row, 'id')),
      };
    }
    const sql =
      'SELECT document FROM memberships WHERE collection = ? ORDER BY document DESC LIMIT ? OFFSET ?';
    return {
      total: this.#documents.count({ collection }),
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
    const first = this.#documents.textPart(document.id, 0) ?? '';
    let part: string | undefined = first;
    for (let i = 0; part !== undefined && i < SNIPPET_PARTS && question.match !== undefined; i += 1) {
      const found = snippetOf(part, question.highlights);
      if (found) return found;
      part = this.#documents.textPart(document.id, i + 1);
    }
    return beginningOf(first);
  }
}

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

/** A piece of a snippet; `hit` where it is one of the words that were asked for. */
export interface SnippetPiece {
  readonly text: string;
  readonly hit: boolean;
}

const LENGTH = 240;
/** Characters shown before the first word that was asked for. */
const LEAD = 60;

/** The place in `text` around the first of the `asked` words; undefined where none is in it. */
export function snippetOf(text: string, asked: ReadonlySet<string>): SnippetPiece[] | undefined {
  const hits: { start: number; end: number }[] = [];
  for (const placed of placedWords(text)) {
    const first = hits[0];
    if (first && placed.end > first.start - LEAD + LENGTH) break;
    if (asked.has(placed.word)) hits.push(placed);
  }
  const [first] = hits;
  if (!first) return undefined;
  const start = blankBefore(text, first.start - LEAD, first.start);
  return pieces(text, start, endOf(text, start), hits);
}

/** The beginning of `text`, for where no word was asked for or found. */
export function beginningOf(text: string): SnippetPiece[] {
  return pieces(text, 0, endOf(text, 0), []);
}

function blankBefore(text: string, from: number, to: number): number {
  if (from <= 0) return 0;
  const blank = /\s/.exec(text.slice(from, to));
  if (blank) return from + blank.index + 1;
  return (text.charCodeAt(from) & 0xfc00) === 0xdc00 ? from + 1 : from;
}

function endOf(text: string, start: number): number {
  const end = start + LENGTH;
  if (end >= text.length) return text.length;
  const blank = text.slice(start, end).search(/\s\S*$/);
  if (blank > LENGTH / 2) return start + blank;
  return (text.charCodeAt(end) & 0xfc00) === 0xdc00 ? end + 1 : end;
}

function pieces(
  text: string,
  start: number,
  end: number,
  hits: readonly { start: number; end: number }[],
): SnippetPiece[] {
  const result: SnippetPiece[] = [];
  const add = (from: number, to: number, hit: boolean): void => {
    const piece = text.slice(from, to).replace(/[\s\p{Cc}]+/gu, ' ');
    if (piece !== '') result.push({ text: piece, hit });
  };
  if (start > 0) result.push({ text: '… ', hit: false });
  let at = start;
  for (const hit of hits) {
    if (hit.end > end) break;
    add(at, hit.start, false);
    add(hit.start, hit.end, true);
    at = hit.end;
  }
  add(at, end, false);
  if (end < text.length) result.push({ text: ' …', hit: false });
  return result;
}
