import { createHash } from 'node:crypto';
import { readContent } from './content.js';
import { bytes, type Database, int, type Row, type Tally, text } from './database.js';
import { lastSegment, type NormalUrl, urlHash } from './urls.js';
import { countWords, indexable } from './words.js';

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
  /** When the content last changed. */
  readonly lastModified: number;
  /** When it was last pushed. */
  readonly loadDate: number;
}

/** Texts are kept in parts of at most so many bytes, so that the start of a long one is read without the rest. */
export const TEXT_PART = 65_536;

/** The indexed documents: their records, texts and words. */
export class Library {
  readonly #database: Database;
  readonly #tally: Tally;

  constructor(database: Database, tally: Tally) {
    this.#database = database;
    this.#tally = tally;
  }

  byUrl(url: NormalUrl): Document | undefined {
    return toDocument(this.#database.row('SELECT * FROM documents WHERE url = ?', url));
  }

  byUrlHash(hash: string): Document | undefined {
    return toDocument(this.#database.row('SELECT * FROM documents WHERE urlhash = ? LIMIT 1', hash));
  }

  byId(id: number): Document | undefined {
    return toDocument(this.#database.row('SELECT * FROM documents WHERE id = ?', id));
  }

  /** One part of a document's text, the first being 0; undefined past the end. */
  textPart(id: number, part: number): string | undefined {
    const row = this.#database.row('SELECT body FROM texts WHERE document = ? AND part = ?', id, part);
    return row && bytes(row, 'body').toString();
  }

  /**
   * Puts a pushed document in the place of the one with its URL, within the caller's transaction. One that was accepted
   * before the version that is here already changes nothing.
   */
  put(pushed: Queued): void {
    const before = this.#database.row('SELECT * FROM documents WHERE url = ?', pushed.url);
    if (before && int(before, 'seq') > pushed.seq) return;
    const digest = createHash('sha256').update(pushed.data).digest('hex');
    if (before && text(before, 'digest') === digest) this.#touch(before, pushed);
    else this.#replace(before, pushed, digest);
  }

  #touch(before: Row, pushed: Queued): void {
    const id = int(before, 'id');
    const sql = 'UPDATE documents SET load_date = ?, collections = ?, seq = ? WHERE id = ?';
    this.#database.run(sql, pushed.loadDate, JSON.stringify(pushed.collections), pushed.seq, id);
    this.#regroup(id, collectionsOf(before), pushed.collections);
  }

  #replace(before: Row | undefined, pushed: Queued, digest: string): void {
    const { url, data, loadDate, seq } = pushed;
    const content = readContent(url, data);
    const body = indexable(content.text);
    const record = [
      content.title,
      JSON.stringify(pushed.collections),
      data.byteLength,
      countWords(body),
      digest,
      loadDate,
      loadDate,
      seq,
    ];
    const id = before ? int(before, 'id') : this.#insert(url, record);
    if (before) {
      const sql = `UPDATE documents SET title = ?, collections = ?, size = ?, words = ?, digest = ?, last_modified = ?,
        load_date = ?, seq = ? WHERE id = ?`;
      this.#database.run(sql, ...record, id);
      this.#database.run('DELETE FROM texts WHERE document = ?', id);
    } else {
      this.#tally.add('documents', 1);
    }
    this.#regroup(id, before ? collectionsOf(before) : [], pushed.collections);
    this.#keepText(id, Buffer.isBuffer(content.text) ? content.text : Buffer.from(content.text));
    this.#database.run(
      `REPLACE INTO words (rowid, title, name, body) VALUES (?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))`,
      id,
      indexable(content.title),
      indexable(lastSegment(url)),
      body,
    );
  }

  #insert(url: NormalUrl, record: readonly (string | number)[]): number {
    const sql = `INSERT INTO documents (url, urlhash, title, collections, size, words, digest, last_modified, load_date, seq)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    return this.#database.run(sql, url, urlHash(url), ...record);
  }

  #regroup(id: number, before: readonly string[], after: readonly string[]): void {
    for (const collection of before.filter((c) => !after.includes(c))) {
      this.#database.run('DELETE FROM memberships WHERE collection = ? AND document = ?', collection, id);
      this.#tally.addToCollection(collection, -1);
    }
    for (const collection of after.filter((c) => !before.includes(c))) {
      this.#database.run('INSERT INTO memberships VALUES (?, ?)', collection, id);
      this.#tally.addToCollection(collection, 1);
    }
  }

  #keepText(id: number, body: Buffer): void {
    for (let start = 0, part = 0; start < body.length; part += 1) {
      let end = Math.min(start + TEXT_PART, body.length);
      while (end < body.length && ((body[end] ?? 0) & 0xc0) === 0x80) end -= 1;
      this.#database.run('INSERT INTO texts VALUES (?, ?, ?)', id, part, body.subarray(start, end));
      start = end;
    }
  }
}

function collectionsOf(row: Row): string[] {
  return JSON.parse(text(row, 'collections')) as string[];
}

function toDocument(row: Row | undefined): Document | undefined {
  if (!row) return undefined;
  return {
    id: int(row, 'id'),
    url: text(row, 'url') as NormalUrl,
    urlhash: text(row, 'urlhash'),
    title: text(row, 'title'),
    collections: collectionsOf(row),
    size: int(row, 'size'),
    words: int(row, 'words'),
    digest: text(row, 'digest'),
    lastModified: int(row, 'last_modified'),
    loadDate: int(row, 'load_date'),
  };
}

/** A document as it was pushed. */
export interface Pushed {
  readonly url: NormalUrl;
  readonly collections: readonly string[];
  /** Milliseconds since the epoch. */
  readonly loadDate: number;
  /** UTF-8, as it came. */
  readonly data: Buffer;
}

/** A pushed document with its place in the order of acceptance. */
export interface Queued extends Pushed {
  readonly seq: number;
}

interface Waiting {
  readonly pushed: readonly Pushed[];
  readonly resolve: (seqs: number[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Pushed documents that are not in the index yet.
 *
 * A document enters in a transaction that is on disk before the push is answered (pushes that come together share one), and
 * leaves in the transaction that puts it into the index: a crash finds it in exactly one of the two.
 */
export class Queue {
  readonly #database: Database;
  readonly #tally: Tally;
  #together: Waiting[] = [];

  constructor(database: Database, tally: Tally) {
    this.#database = database;
    this.#tally = tally;
  }

  /** Resolves with the sequence numbers when all of them are on disk; rejects when none is. */
  accept(pushed: readonly Pushed[]): Promise<number[]> {
    return new Promise((resolve, reject) => {
      this.#together.push({ pushed, resolve, reject });
      if (this.#together.length === 1) setImmediate(() => this.#commit());
    });
  }

  #commit(): void {
    const together = this.#together;
    this.#together = [];
    try {
      const seqs = this.#database.transaction(() => together.map((waiting) => this.#insert(waiting.pushed)));
      for (const [i, waiting] of together.entries()) waiting.resolve(seqs[i] ?? []);
    } catch (error) {
      for (const waiting of together) waiting.reject(error);
    }
  }

  #insert(pushed: readonly Pushed[]): number[] {
    this.#tally.add('waiting', pushed.length);
    const sql = 'INSERT INTO queue (url, collections, load_date, data) VALUES (?, ?, ?, ?)';
    return pushed.map((p) =>
      this.#database.run(sql, p.url, JSON.stringify(p.collections), p.loadDate, p.data),
    );
  }

  /** The first document after `seq` in the order of acceptance. */
  nextAfter(seq: number): Queued | undefined {
    const row = this.#database.row('SELECT * FROM queue WHERE seq > ? ORDER BY seq LIMIT 1', seq);
    return row && toQueued(row);
  }

  get(seq: number): Queued | undefined {
    const row = this.#database.row('SELECT * FROM queue WHERE seq = ?', seq);
    return row && toQueued(row);
  }

  /** Within the caller's transaction. */
  remove(seq: number): void {
    this.#database.run('DELETE FROM queue WHERE seq = ?', seq);
    this.#tally.add('waiting', -1);
  }
}

function toQueued(row: Parameters<typeof text>[0]): Queued {
  return {
    seq: int(row, 'seq'),
    url: text(row, 'url') as NormalUrl,
    collections: JSON.parse(text(row, 'collections')) as string[],
    loadDate: int(row, 'load_date'),
    data: bytes(row, 'data'),
  };
}
