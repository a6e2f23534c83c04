import { type Clock, systemClock } from '../lib/clock.js';
import { nextTurn } from '../lib/slices.js';
import { type Database, int, text } from './database.js';

/** Shorter words are in no list. */
export const MIN_LISTED_LETTERS = 4;
/** A longer word is none that anyone looks for. */
const MAX_LISTED_LETTERS = 64;
/** Matches words of letters only. Others are numbers, symbol words, or letters beyond U+FFFF. */
const LETTERS = /^[\p{L}\p{M}]+$/u;
const SURROGATE = /[\ud800-\udfff]/;
/** The most characters of a list. Each is a byte, or two if any word has a letter beyond ÿ. */
const MAX_CHARS = 4_000_000;
/** The most words that are looked at because they contain a part. */
const MAX_CONTAINING = 2_000;

/**
 * The words of an index at one moment, in one string: `\n`, a mark of how many documents have the
 * word, and the word, in order. The mark is a digit or the like, so no word contains it.
 */
export class Words {
  constructor(private readonly lines: string) {}

  /** Returns the number of documents with a word, rounded down to a power of two, or 0. */
  documentsOf(word: string): number {
    let low = 0;
    let high = this.lines.length;
    while (low < high) {
      const start = this.lines.lastIndexOf('\n', (low + high) >> 1);
      const end = this.#endOf(start);
      const found = this.#wordAt(start, end);
      if (found === word) return documentsOf(this.lines.charCodeAt(start + 1));
      if (found < word) low = end;
      else high = start;
    }
    return 0;
  }

  /** Returns the words that contain a part, those of the most documents first. */
  containing(part: string): readonly string[] {
    const found: { readonly word: string; readonly mark: number }[] = [];
    for (let at = this.lines.indexOf(part); at !== -1 && found.length < MAX_CONTAINING; ) {
      const start = this.lines.lastIndexOf('\n', at);
      const end = this.#endOf(start);
      found.push({ word: this.#wordAt(start, end), mark: this.lines.charCodeAt(start + 1) });
      at = this.lines.indexOf(part, end);
    }
    return found.sort((a, b) => b.mark - a.mark).map(({ word }) => word);
  }

  #endOf(start: number): number {
    const end = this.lines.indexOf('\n', start + 1);
    return end === -1 ? this.lines.length : end;
  }

  #wordAt(start: number, end: number): string {
    return this.lines.slice(start + 2, end);
  }
}

const FIRST_MARK = '0'.charCodeAt(0);

/** Returns the mark of a number of documents: one for each power of two. */
function markOf(documents: number): string {
  return String.fromCharCode(FIRST_MARK + Math.floor(Math.log2(documents)));
}

function documentsOf(mark: number): number {
  return 2 ** (mark - FIRST_MARK);
}

/**
 * The work of a slice: about 5 ms, or 1,000 terms. A term costs TERM_COST, and one for each place
 * where a document has it, because SQLite counts these.
 */
const SLICE_COST = 75_000;
const TERM_COST = 60;

/** Reads the words of an index, slice by slice. */
class Reading {
  #lines = '';
  #from = '';
  #isDone = false;

  /** @param leastDocuments words of fewer documents are left out */
  constructor(
    private readonly database: Database,
    private readonly leastDocuments: number,
    private readonly maxChars: number,
  ) {}

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the words take too much memory. */
  get isTooLarge(): boolean {
    return this.#lines.length > this.maxChars;
  }

  get words(): Words {
    return new Words(this.#lines);
  }

  readSlice(): void {
    const lines: string[] = [];
    let cost = 0;
    this.#isDone = true;
    const sql = 'SELECT term, doc, cnt FROM vocabulary WHERE term >= ?';
    this.database.scan(sql, [this.#from], (row) => {
      const term = text(row, 'term');
      const documents = int(row, 'doc');
      if (documents >= this.leastDocuments && isListed(term))
        lines.push(`\n${markOf(documents)}${term}`);
      cost += TERM_COST + int(row, 'cnt');
      this.#isDone = cost < SLICE_COST;
      // Without the control character, SQLite would count the places of this term again.
      if (!this.#isDone) this.#from = `${term}\u0001`;
      return this.#isDone;
    });
    this.#lines += lines.join('');
  }
}

function isListed(term: string): boolean {
  const { length } = term;
  const isOfLength = length >= MIN_LISTED_LETTERS && length <= MAX_LISTED_LETTERS;
  return isOfLength && LETTERS.test(term) && !SURROGATE.test(term);
}

/** The least pause between two readings, as a multiple of the time that the first one took. */
const PAUSE_FACTOR = 20;

/**
 * Keeps the words of the index in memory, because SQLite takes long to list them. They are read
 * when a search asks for them, in slices.
 *
 * - *Unread*: nobody asked yet.
 * - *Being read*: searches get the words that were read before, or none.
 * - *Current*: no document changed since.
 * - *Outdated*: the next search has them read again. A small index takes a single slice, which is
 *   read at once. A larger one is not read within 20 times as long as the last time took.
 *
 * If the words take more than MAX_CHARS, those of the fewest documents are left out.
 */
export class WordList {
  #words: Words | undefined;
  #reading: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #isOutdated = true;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #leastDocuments = 1;
  /** Number of calls of `current` that returned none. */
  #misses = 0;

  constructor(
    private readonly database: Database,
    private readonly clock: Pick<Clock, 'now'> = systemClock,
    private readonly maxChars = MAX_CHARS,
  ) {}

  /** Called when the words of a document change. */
  onChange(): void {
    this.#isOutdated = true;
  }

  /**
   * Returns the words as they are, or were when they were read last; undefined if they are being
   * read for the first time.
   *
   * @throws Error if the last reading failed
   */
  current(): Words | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    const isPaused = this.#words !== undefined && this.clock.now() < this.#pausedUntil;
    if (this.#isOutdated && this.#reading === undefined && !isPaused) this.#begin();
    if (this.#words === undefined) this.#misses += 1;
    return this.#words;
  }

  /**
   * Returns the result of a search. If it asked for the words while they are read for the first
   * time, it is repeated when they are.
   */
  async provide<T>(search: () => T): Promise<T> {
    const before = this.#misses;
    const result = search();
    if (this.#misses === before) return result;
    await this.#reading;
    return search();
  }

  /** Reads a slice at once, and the others in turns with other work. */
  #begin(): void {
    this.#isOutdated = false;
    const began = this.clock.now();
    const reading = new Reading(this.database, this.#leastDocuments, this.maxChars);
    reading.readSlice();
    if (reading.isDone && !reading.isTooLarge) {
      this.#words = reading.words;
      return;
    }
    this.#reading = this.#goOn(reading)
      .catch((error: unknown) => {
        this.#failure = { error };
        this.#isOutdated = true;
      })
      .finally(() => {
        this.#reading = undefined;
        const now = this.clock.now();
        this.#pausedUntil = now + PAUSE_FACTOR * (now - began);
      });
  }

  async #goOn(begun: Reading): Promise<void> {
    let reading = begun;
    while (!reading.isDone || reading.isTooLarge) {
      await nextTurn();
      if (!this.database.isOpen) return;
      if (reading.isTooLarge) {
        this.#leastDocuments *= 2;
        reading = new Reading(this.database, this.#leastDocuments, this.maxChars);
      }
      reading.readSlice();
    }
    this.#words = reading.words;
  }
}
