import { type Database, int } from './database.js';
import type { Slices } from './slices.js';

/** Documents of a word that are counted; for a word with more, the rest is estimated from how densely these lie. */
const COUNTED = 300;
/** Words whose rarity is remembered. */
const REMEMBERED = 20_000;

/**
 * Knows about how many documents hold a word. What it learned once it keeps for a while, however the library changes: it
 * only decides which words are asked for.
 */
export class WordRarity {
  readonly #database: Database;
  readonly #documents = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** The `most` rarest of `words`, each once. */
  async rarest(words: readonly string[], most: number, slices: Slices): Promise<string[]> {
    const counted: { readonly word: string; readonly documents: number }[] = [];
    for (const word of new Set(words)) {
      counted.push({ word, documents: this.#about(word) });
      await slices.pause();
    }
    return counted
      .sort((a, b) => a.documents - b.documents || b.word.length - a.word.length)
      .slice(0, most)
      .map(({ word }) => word);
  }

  #about(word: string): number {
    const known = this.#documents.get(word);
    if (known !== undefined) return known;
    const sql = `SELECT count(*) AS documents, max(rowid) AS reached FROM
      (SELECT rowid FROM words WHERE words MATCH ? LIMIT ${COUNTED})`;
    const row = this.#database.row(sql, `body : "${word}"`);
    const counted = int(row, 'documents');
    const about = counted < COUNTED ? counted : (counted * this.#last()) / int(row, 'reached');
    if (this.#documents.size >= REMEMBERED) this.#documents.clear();
    this.#documents.set(word, about);
    return about;
  }

  #last(): number {
    return int(this.#database.row('SELECT max(id) AS last FROM documents'), 'last');
  }
}
