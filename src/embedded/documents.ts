import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Clock } from '../lib/clock.js';
import { type NormalUrl, readContent, urlHash } from './content.js';
import { bytes, type Database, int, MIGRATION, text } from './database.js';
import type { Row } from './driver.js';
import { columnsWithSymbols, type IndexedColumns, indexedText } from './indexed-text.js';
import { WordList } from './word-list.js';
import { countWords, indexable } from './words.js';

/** An indexed document. Times are in ms since the epoch. */
export interface Document {
  readonly id: number;
  readonly url: NormalUrl;
  readonly urlhash: string;
  readonly title: string;
  readonly collections: readonly string[];
  /** The size of the pushed data, in bytes. */
  readonly size: number;
  readonly words: number;
  /** The sha256 of the pushed data, in hexadecimal. */
  readonly digest: string;
  /** The last change of its file; if that is unknown, the first push of this content. */
  readonly lastModified: number;
  /** The time of the last push. */
  readonly loadDate: number;
  /** Metadata of the document itself; null if it has none. */
  readonly author: string | null;
  readonly date: number | null;
  /** A BCP 47 tag. */
  readonly language: string | null;
}

/** Returns the metadata of a document for an answer, without missing fields. */
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

/** A pushed document. */
export interface Pushed {
  readonly url: NormalUrl;
  readonly collections: readonly string[];
  /** Milliseconds since the epoch. */
  readonly loadDate: number;
  /** The last change of its file, in ms since the epoch, if known. */
  readonly lastModified?: number | undefined;
  /** The data as received, in UTF-8. */
  readonly data: Buffer;
}

const DOCUMENT =
  'SELECT id, url, urlhash, title, collections, size, words, digest, last_modified AS lastModified, load_date AS loadDate, author, date, language FROM documents';

/** The tables with a row for each document, and the column with its id. */
const DOCUMENT_TABLES = [
  ['words', 'rowid'],
  ['prefixes', 'rowid'],
  ['texts', 'document'],
  ['documents', 'id'],
] as const;

/**
 * The pages of about 4 kB that a merge handles for each ms of its transaction. With 10, an index of
 * 100,000 documents of 2 kB has about 12 segments.
 */
const MERGED_PAGES_PER_MS = 10;
const MIN_MERGED_PAGES = 32;
const MAX_MERGED_PAGES = 480;

/** The size of a part of a text, in bytes. The start of a long text is read without the rest. */
export const TEXT_PART_BYTES = 65_536;

/**
 * Returns a part of a text.
 *
 * @param row with `deflated`
 * @throws Error if it is longer than a part
 */
export function inflatedPart(row: Row): Buffer {
  return inflateRawSync(bytes(row, 'deflated'), { maxOutputLength: TEXT_PART_BYTES });
}

/**
 * The documents with their texts and words. Counts are updated in the transactions that change
 * them, so that no request counts rows.
 */
export class DocumentStore {
  /** The words of all documents. */
  readonly words: WordList;
  readonly #database: Database;
  #isMigrated = false;

  constructor(database: Database, clock?: Pick<Clock, 'now'>) {
    this.#database = database;
    this.words = new WordList(database, clock);
  }

  /** Finds a document. @param value a NormalUrl if `by` is `url` */
  find(by: 'id' | 'url' | 'urlhash', value: number | string): Document | undefined {
    return toDocument(this.#database.row(`${DOCUMENT} WHERE ${by} = ? LIMIT 1`, value));
  }

  /** Returns a part of a document's text, from 0; undefined beyond its end. */
  textPart(id: number, part: number): string | undefined {
    const sql = 'SELECT deflated FROM texts WHERE document = ? AND part = ?';
    const row = this.#database.row(sql, id, part);
    return row && inflatedPart(row).toString();
  }

  /** Returns the number of documents, in all or in a collection. */
  count(of: 'documents' | { readonly collection: string }): number {
    const name = typeof of === 'string' ? of : `in ${of.collection}`;
    const row = this.#database.row('SELECT value FROM counts WHERE name = ?', name);
    return row ? int(row, 'value') : 0;
  }

  /** Returns the collections with the most documents. */
  collections(limit: number): string[] {
    const sql = `SELECT substr(name, 4) AS name FROM counts
      WHERE name >= 'in ' AND name < 'in!' AND value > 0 ORDER BY value DESC, name LIMIT ?`;
    return this.#database.rows(sql, limit).map((row) => text(row, 'name'));
  }

  /** Whether the symbol words of all documents are indexed: no migration is under way. */
  get isMigrated(): boolean {
    this.#isMigrated ||= this.#migratedFrom() === undefined;
    return this.#isMigrated;
  }

  /** Indexes a document, which replaces the one with its URL. Runs in the caller's transaction. */
  index(pushed: Pushed): void {
    const before = this.#database.row(
      'SELECT id, digest, collections FROM documents WHERE url = ?',
      pushed.url,
    );
    const digest = createHash('sha256').update(pushed.data).digest('hex');
    if (before && text(before, 'digest') === digest) this.#update(before, pushed);
    else this.#replace(before, pushed, digest);
  }

  /** Returns the id of the newest document that is still to be migrated. */
  nextToMigrate(): number | undefined {
    const sql = 'SELECT id FROM documents WHERE id < ? ORDER BY id DESC LIMIT 1';
    const row = this.#database.row(sql, this.#migratedFrom() ?? 0);
    return row && int(row, 'id');
  }

  /** Records that the documents with this id or a higher one are migrated. */
  setMigratedFrom(id: number): void {
    this.#database.run('UPDATE counts SET value = ? WHERE name = ?', id, MIGRATION);
  }

  endMigration(): void {
    this.#database.run('DELETE FROM counts WHERE name = ?', MIGRATION);
  }

  #migratedFrom(): number | undefined {
    const row = this.#database.row('SELECT value FROM counts WHERE name = ?', MIGRATION);
    return row && int(row, 'value');
  }

  /** Indexes the words of a document again if it has symbol words. */
  addSymbolWords(id: number): void {
    const document = this.find('id', id);
    if (document === undefined) return;
    const columns = columnsWithSymbols(document, indexable(this.#wholeText(id)));
    if (columns !== undefined) this.#indexColumns('REPLACE', id, columns);
  }

  /** Removes documents, all or none. @returns whether each existed */
  remove(urls: readonly NormalUrl[]): boolean[] {
    return this.#database.transaction(() => {
      const removed = urls.map((url) => this.#remove(url));
      this.merge(0);
      return removed;
    });
  }

  /**
   * Merges some segments of the index. Every transaction that changes documents does this. FTS5
   * would merge on its own for 50 ms now and then.
   *
   * @param ms the duration of the transaction so far. Merging takes about as long.
   */
  merge(ms: number): void {
    const pages = Math.min(
      Math.max(MIN_MERGED_PAGES, Math.ceil(ms * MERGED_PAGES_PER_MS)),
      MAX_MERGED_PAGES,
    );
    for (const table of ['words', 'prefixes'])
      this.#database.run(`INSERT INTO ${table} (${table}, rank) VALUES ('merge', ?)`, pages);
  }

  #remove(url: NormalUrl): boolean {
    const document = this.find('url', url);
    if (document === undefined) return false;
    const { collections, id } = document;
    this.words.onChange();
    this.#regroup(id, collections, []);
    for (const [table, column] of DOCUMENT_TABLES)
      this.#database.run(`DELETE FROM ${table} WHERE ${column} = ?`, id);
    this.#count('documents', -1);
    return true;
  }

  #update(before: Row, { collections, lastModified, loadDate }: Pushed): void {
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
    this.words.onChange();
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
    this.#storeText(document, text, before !== undefined);
    this.#indexWords(document, content.title, url, body, before !== undefined);
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

  #storeText(id: number, body: Buffer, isKnown: boolean): void {
    if (isKnown) this.#database.run('DELETE FROM texts WHERE document = ?', id);
    for (let start = 0, part = 0; start < body.length; part += 1) {
      let end = Math.min(start + TEXT_PART_BYTES, body.length);
      while (end < body.length && ((body[end] ?? 0) & 0xc0) === 0x80) end -= 1;
      const piece = deflated(body.subarray(start, end));
      const sql = 'INSERT INTO texts (document, part, deflated) VALUES (?, ?, ?)';
      this.#database.run(sql, id, part, piece);
      start = end;
    }
  }

  #indexWords(id: number, title: string, url: NormalUrl, body: Buffer, isKnown: boolean): void {
    const insert = isKnown ? 'REPLACE' : 'INSERT';
    const indexed = indexedText({ title, url }, body);
    this.#indexColumns(insert, id, indexed);
    this.#database.run(
      `${insert} INTO prefixes (rowid, letters) VALUES (?, CAST(? AS TEXT))`,
      id,
      indexed.letters,
    );
  }

  #indexColumns(
    insert: 'INSERT' | 'REPLACE',
    id: number,
    { body, name, title }: IndexedColumns,
  ): void {
    this.#database.run(
      `${insert} INTO words (rowid, title, name, body) VALUES (?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))`,
      id,
      title,
      name,
      body,
    );
  }

  #wholeText(id: number): Buffer {
    const sql = 'SELECT deflated FROM texts WHERE document = ? ORDER BY part';
    return Buffer.concat(this.#database.rows(sql, id).map(inflatedPart));
  }

  #count(name: string, change: number): void {
    const sql =
      'INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value';
    this.#database.run(sql, name, change);
  }
}

/**
 * Deflates a part of a text. Node would give each part a buffer of 16 kB. With one that fits, 2 kB
 * take 34 µs instead of 61 µs on Node 24.
 */
function deflated(part: Buffer): Buffer {
  return deflateRawSync(part, { level: 1, chunkSize: part.length + 64 });
}

function collectionsOf(row: Row): string[] {
  return JSON.parse(text(row, 'collections')) as string[];
}

/** Converts a row. The database checks the types of its columns (STRICT). */
function toDocument(row: Row | undefined): Document | undefined {
  return row && ({ ...row, collections: collectionsOf(row) } as unknown as Document);
}
