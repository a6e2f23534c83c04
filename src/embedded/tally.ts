import { type Database, int, text } from './database.js';

/** What is counted, besides the documents of each collection. */
export type Counted = 'documents' | 'waiting';

export interface CollectionCount {
  readonly collection: string;
  readonly documents: number;
}

const ADD = 'INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value';

/** Counts that are kept while things change, in the same transaction, so that no request has to count. */
export class Tally {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  of(name: Counted): number {
    const row = this.#database.row('SELECT value FROM tally WHERE name = ?', name);
    return row ? int(row, 'value') : 0;
  }

  add(name: Counted, change: number): void {
    this.#database.run(ADD, name, change);
  }

  addToCollection(collection: string, change: number): void {
    this.#database.run(ADD, `in ${collection}`, change);
  }

  ofCollection(collection: string): number {
    const row = this.#database.row('SELECT value FROM tally WHERE name = ?', `in ${collection}`);
    return row ? int(row, 'value') : 0;
  }

  /** The collections with the most documents. */
  collections(limit: number): CollectionCount[] {
    const sql = `SELECT substr(name, 4) AS name, value FROM tally
      WHERE name >= 'in ' AND name < 'in!' AND value > 0 ORDER BY value DESC, name LIMIT ?`;
    return this.#database
      .rows(sql, limit)
      .map((row) => ({ collection: text(row, 'name'), documents: int(row, 'value') }));
  }
}
