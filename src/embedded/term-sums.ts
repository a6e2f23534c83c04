import { type Database, int, text } from './database.js';
import type { IndexedText } from './indexed-text.js';
import { forEachWord } from './words.js';

/** The columns of `words`, numbered from 1. The one of `prefixes` is 0. */
const COLUMNS = ['title', 'name', 'body'] as const;

/** FTS5 cuts longer terms, in bytes. */
const MAX_TERM_BYTES = 32_768;

/**
 * A sum of hashes for each document, in which the order of what is added does not matter. Takes two
 * numbers of 32 bits a document.
 *
 * It compares what the index holds with what it should hold: the index lists its terms in their own
 * order, and a document in that of its text. Two different lists have the same sum by chance, once
 * in 2^64 times.
 */
export class Sums {
  readonly #places = new Map<number, number>();
  #low = new Int32Array(1_024);
  #high = new Int32Array(1_024);

  /** Adds the hash of a term at a place to the sum of a document. */
  add(document: number, term: TermHash, column: number, offset: number): void {
    const at = this.#placeOf(document);
    const place = Math.imul(Math.imul(column, 0x27d4eb2f) + offset, 0x165667b1);
    this.#low[at] = (this.#low[at] ?? 0) + mixed(term.low ^ place);
    this.#high[at] = (this.#high[at] ?? 0) + mixed(term.high + place);
  }

  isEqual(document: number, other: Sums): boolean {
    const [here, there] = [this.#places.get(document), other.#places.get(document)];
    return (
      valueAt(this.#low, here) === valueAt(other.#low, there) &&
      valueAt(this.#high, here) === valueAt(other.#high, there)
    );
  }

  documents(): Iterable<number> {
    return this.#places.keys();
  }

  #placeOf(document: number): number {
    const known = this.#places.get(document);
    if (known !== undefined) return known;
    const place = this.#places.size;
    this.#places.set(document, place);
    if (place >= this.#low.length) [this.#low, this.#high] = [twice(this.#low), twice(this.#high)];
    return place;
  }
}

function valueAt(values: Int32Array, place: number | undefined): number {
  return place === undefined ? 0 : (values[place] ?? 0);
}

function twice(values: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * values.length);
  larger.set(values);
  return larger;
}

function mixed(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/** The hash of the term that was set last: 64 bits in two numbers. */
export class TermHash {
  low = 0;
  high = 0;
  #term: string | undefined;

  /** Sets a term of the index. The same one again costs nothing. */
  setTerm(term: string): void {
    if (term === this.#term) return;
    this.#term = term;
    this.#begin();
    for (let i = 0; i < term.length; i += 1) {
      const code = term.charCodeAt(i);
      if (code > 127) {
        this.#setAll(Buffer.from(term));
        return;
      }
      this.#addByte(code);
    }
  }

  /** Sets a word of a prepared text. FTS5 folds ASCII case. */
  setWord(prepared: Buffer, start: number, end: number): void {
    this.#term = undefined;
    // A cut may be within a character, which the index then returns as U+FFFD.
    if (end - start > MAX_TERM_BYTES) {
      const cut = prepared.toString('utf8', start, start + MAX_TERM_BYTES);
      this.#setAll(Buffer.from(cut.replace(/[A-Z]/g, (letter) => letter.toLowerCase())));
      return;
    }
    this.#begin();
    for (let at = start; at < end; at += 1) {
      const byte = prepared[at] ?? 0;
      this.#addByte(byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte);
    }
  }

  #setAll(term: Buffer): void {
    this.#begin();
    for (const byte of term) this.#addByte(byte);
  }

  #begin(): void {
    this.low = 0x811c9dc5 | 0;
    this.high = 0x2f0b4c47;
  }

  #addByte(byte: number): void {
    this.low = Math.imul(this.low ^ byte, 0x01000193);
    this.high = Math.imul(this.high + byte + 1, 0x5bd1e995) ^ (this.high >>> 15);
  }
}

/** Adds all terms that the index should hold for a document. */
export function addIndexed(sums: Sums, document: number, indexed: IndexedText): void {
  const term = new TermHash();
  for (const [i, name] of COLUMNS.entries()) {
    const prepared = indexed[name];
    let offset = 0;
    forEachWord(prepared, (start, end) => {
      term.setWord(prepared, start, end);
      sums.add(document, term, i + 1, offset);
      offset += 1;
    });
  }
  // `prefixes` holds each term of a document once, without its place.
  const known = new Set<number>();
  forEachWord(indexed.letters, (start, end) => {
    term.setWord(indexed.letters, start, end);
    const key = (term.low >>> 0) * 0x20_0000 + (term.high & 0x1f_ffff);
    if (known.has(key)) return;
    known.add(key);
    sums.add(document, term, 0, 0);
  });
}

/** The rows of an index after which other work may run. */
const ROWS_A_TURN = 256;

/** Sums up what both indexes hold. It reads them in pieces, and calls `turn` in between. */
export async function sumsOfIndex(
  database: Pick<Database, 'rows' | 'iterate'>,
  turn: () => Promise<void>,
): Promise<Sums> {
  const sums = new Sums();
  const term = new TermHash();
  const columns = new Map<unknown, number>(COLUMNS.map((name, i) => [name, i + 1]));
  for (const index of ['words', 'prefixes']) {
    const places = `temp.${index}_places`;
    database.rows(`CREATE VIRTUAL TABLE ${places} USING fts5vocab (main, ${index}, instance)`);
    let count = 0;
    for (const row of database.iterate(`SELECT term, doc, col, "offset" AS at FROM ${places}`)) {
      term.setTerm(text(row, 'term'));
      // `prefixes` has no column and no offset.
      const offset = row.at === null ? 0 : int(row, 'at');
      sums.add(int(row, 'doc'), term, columns.get(row.col) ?? 0, offset);
      count += 1;
      if (count % ROWS_A_TURN === 0) await turn();
    }
    database.rows(`DROP TABLE ${places}`);
  }
  return sums;
}
