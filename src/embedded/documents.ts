import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type NormalUrl, pathText, readContent, urlHash } from './content.js';
import { bytes, type Database, int, type Row, text } from './database.js';
import { countWords, indexable, PREFIX_MARK, prefixes } from './words.js';

/** An indexed document. Times are milliseconds since the epoch. */
export interface Document {
  readonly id: number;
  readonly url: NormalUrl;
  readonly urlhash: string;
  readonly title: string;
  readonly collections: readonly string[];
  /** Bytes of the data as pushed. */
  readonly size: number;
  readonly words: number;
  /** sha256 of the data as pushed, hexadecimal. */
  readonly digest: string;
  /** When its file was changed, or, where nobody told, when this content came first. */
  readonly lastModified: number;
  /** When it was last pushed. */
  readonly loadDate: number;
  /** What it tells of itself, null where it tells nothing. */
  readonly author: string | null;
  readonly date: number | null;
  /** As in BCP 47. */
  readonly language: string | null;
}

/** What a document tells of itself, as answers show it; nothing where it tells nothing. */
export function metadataOf({
  author,
  date,
  language,
}: Pick<Document, 'author' | 'date' | 'language'>): Record<string, string> {
  return {
    ...(author === null ? {} : { author }),
    ...(date === null ? {} : { date: new Date(date).toISOString() }),
    ...(language === null ? {} : { language }),
  };
}

/** A document as it was pushed. */
export interface Pushed {
  readonly url: NormalUrl;
  readonly collections: readonly string[];
  /** Milliseconds since the epoch. */
  readonly loadDate: number;
  /** When its file was changed, where that was told. */
  readonly lastModified?: number | undefined;
  /** UTF-8, as it came. */
  readonly data: Buffer;
}

const DOCUMENT =
  'SELECT id, url, urlhash, title, collections, size, words, digest, last_modified AS lastModified, load_date AS loadDate, author, date, language FROM documents';

/** The tables that hold a document, and the column with its number. */
const HOLDERS = [
  ['words', 'rowid'],
  ['prefixes', 'rowid'],
  ['texts', 'document'],
  ['documents', 'id'],
] as const;

/**
 * Pages of about 4 kB; with 10 for each millisecond 100,000 documents of 2 kB stay in some 12
 * pieces.
 */
const MERGED_PER_MS = 10;
const MERGED_AT_LEAST = 32;
const MERGED_AT_MOST = 480;

const BLANK = Buffer.from(' ');

/**
 * Texts are kept in parts of at most so many bytes, so that the start of a long one is read without
 * the rest.
 */
export const TEXT_PART = 65_536;

/**
 * The documents with their texts and words. Counts are kept in the transactions that change what is
 * counted, so that no request has to count.
 */
export class DocumentStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** An indexed document; a `url` has to be a NormalUrl. */
  find(by: 'id' | 'url' | 'urlhash', value: number | string): Document | undefined {
    return toDocument(this.#database.row(`${DOCUMENT} WHERE ${by} = ? LIMIT 1`, value));
  }

  /** One part of a document's text, the first being 0; undefined past the end. */
  textPart(id: number, part: number): string | undefined {
    const sql = 'SELECT deflated FROM texts WHERE document = ? AND part = ?';
    const row = this.#database.row(sql, id, part);
    return row && inflateRawSync(bytes(row, 'deflated')).toString();
  }

  /** How many documents there are, in all or in a collection. */
  count(of: 'documents' | { readonly collection: string }): number {
    const name = typeof of === 'string' ? of : `in ${of.collection}`;
    const row = this.#database.row('SELECT value FROM counts WHERE name = ?', name);
    return row ? int(row, 'value') : 0;
  }

  /** The collections with the most documents. */
  collections(limit: number): string[] {
    const sql = `SELECT substr(name, 4) AS name FROM counts
      WHERE name >= 'in ' AND name < 'in!' AND value > 0 ORDER BY value DESC, name LIMIT ?`;
    return this.#database.rows(sql, limit).map((row) => text(row, 'name'));
  }

  /** Puts a document in the place of the one with its URL, within the caller's transaction. */
  index(pushed: Pushed): void {
    const before = this.#database.row('SELECT * FROM documents WHERE url = ?', pushed.url);
    const digest = createHash('sha256').update(pushed.data).digest('hex');
    if (before && text(before, 'digest') === digest) this.#touch(before, pushed);
    else this.#replace(before, pushed, digest);
  }

  /** Removes documents, all of them or none. @returns whether each was there */
  remove(urls: readonly NormalUrl[]): boolean[] {
    return this.#database.transaction(() => {
      const removed = urls.map((url) => this.#remove(url));
      this.merge(0);
      return removed;
    });
  }

  /**
   * Merges some of what earlier transactions wrote. Each transaction that changes documents does
   * so: FTS5 itself merges now and then, for 50 ms.
   *
   * @param ms that the transaction has taken so far, in milliseconds; merging takes about as long
   */
  merge(ms: number): void {
    const pages = Math.min(
      Math.max(MERGED_AT_LEAST, Math.ceil(ms * MERGED_PER_MS)),
      MERGED_AT_MOST,
    );
    for (const table of ['words', 'prefixes'])
      this.#database.run(`INSERT INTO ${table} (${table}, rank) VALUES ('merge', ?)`, pages);
  }

  #remove(url: NormalUrl): boolean {
    const document = this.find('url', url);
    if (document === undefined) return false;
    const { collections, id } = document;
    this.#regroup(id, collections, []);
    for (const [table, column] of HOLDERS)
      this.#database.run(`DELETE FROM ${table} WHERE ${column} = ?`, id);
    this.#count('documents', -1);
    return true;
  }

  #touch(before: Row, { collections, lastModified, loadDate }: Pushed): void {
    const id = int(before, 'id');
    const sql =
      'UPDATE documents SET load_date = ?, collections = ?, last_modified = coalesce(?, last_modified) WHERE id = ?';
    this.#database.run(sql, loadDate, JSON.stringify(collections), lastModified ?? null, id);
    this.#regroup(id, collectionsOf(before), collections);
  }

  #replace(
    before: Row | undefined,
    { url, data, lastModified, loadDate, collections }: Pushed,
    digest: string,
  ): void {
    const content = readContent(url, data);
    const body = indexable(content.text);
    const id = this.#database.run(
      `INSERT INTO documents (url, urlhash, title, collections, size, words, digest, last_modified, load_date,
      author, date, language, id)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title,
      collections = excluded.collections, size = excluded.size, words = excluded.words, digest = excluded.digest,
      last_modified = excluded.last_modified, load_date = excluded.load_date,
      author = excluded.author, date = excluded.date, language = excluded.language`,
      url,
      urlHash(url),
      content.title,
      JSON.stringify(collections),
      data.byteLength,
      countWords(body),
      digest,
      lastModified ?? loadDate,
      loadDate,
      content.author ?? null,
      content.date ?? null,
      content.language ?? null,
      before ? int(before, 'id') : null,
    );
    const document = before ? int(before, 'id') : id;
    if (!before) this.#count('documents', 1);
    this.#regroup(document, before ? collectionsOf(before) : [], collections);
    const text = Buffer.isBuffer(content.text) ? content.text : Buffer.from(content.text);
    this.#keepText(document, text, before !== undefined);
    this.#keepWords(document, content.title, url, body, before !== undefined);
  }

  #regroup(id: number, before: readonly string[], after: readonly string[]): void {
    for (const collection of before.filter((c) => !after.includes(c))) {
      this.#database.run(
        'DELETE FROM memberships WHERE collection = ? AND document = ?',
        collection,
        id,
      );
      this.#count(`in ${collection}`, -1);
    }
    for (const collection of after.filter((c) => !before.includes(c))) {
      this.#database.run('INSERT INTO memberships VALUES (?, ?)', collection, id);
      this.#count(`in ${collection}`, 1);
    }
  }

  #keepText(id: number, body: Buffer, isKnown: boolean): void {
    if (isKnown) this.#database.run('DELETE FROM texts WHERE document = ?', id);
    for (let start = 0, part = 0; start < body.length; part += 1) {
      let end = Math.min(start + TEXT_PART, body.length);
      while (end < body.length && ((body[end] ?? 0) & 0xc0) === 0x80) end -= 1;
      const deflated = deflateRawSync(body.subarray(start, end), { level: 1 });
      const sql = 'INSERT INTO texts (document, part, deflated) VALUES (?, ?, ?)';
      this.#database.run(sql, id, part, deflated);
      start = end;
    }
  }

  /**
   * Indexes the words of a document. In the columns title and name, the prefixes of the words
   * follow them: a prefix is ranked by these columns.
   */
  #keepWords(id: number, title: string, url: NormalUrl, body: Buffer, isKnown: boolean): void {
    const insert = isKnown ? 'REPLACE' : 'INSERT';
    const heads = [title, pathText(url)].map((text) => indexable(text));
    const marked = heads.map((head) => Buffer.concat([head, prefixes(head, PREFIX_MARK)]));
    this.#database.run(
      `${insert} INTO words (rowid, title, name, body) VALUES (?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))`,
      id,
      ...marked,
      body,
    );
    const letters = prefixes(Buffer.concat([...heads.flatMap((head) => [head, BLANK]), body]));
    this.#database.run(
      `${insert} INTO prefixes (rowid, letters) VALUES (?, CAST(? AS TEXT))`,
      id,
      letters,
    );
  }

  #count(name: string, change: number): void {
    const sql =
      'INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value';
    this.#database.run(sql, name, change);
  }
}

function collectionsOf(row: Row): string[] {
  return JSON.parse(text(row, 'collections')) as string[];
}

/** The columns are of the types that the interfaces say: the database checks them (STRICT). */
function toDocument(row: Row | undefined): Document | undefined {
  return row && ({ ...row, collections: collectionsOf(row) } as unknown as Document);
}
