import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import { type Database, int } from './database.js';
import type { Document, Library } from './library.js';
import { fold, wordsOf } from './words.js';

/** Shorter sentences are not looked up, as in YaCy: too many documents have them by chance. */
const SHORTEST_CITED = 40;
/** Other documents that are looked for, for one sentence. */
const MOST_HITS = 100;
/** Sentences of a document that are listed and looked up. */
const MOST_SENTENCES = 1_000;
/** Words at the beginning of a sentence of which the index is asked for the rarest. */
const MOST_WORDS = 64;
/** Asked for all its words, the index walks through the documents of "the" and "of" as well: over 100,000 of them 7 ms a sentence and not 0.8. */
const ASKED_WORDS = 4;
/** Characters of other documents' texts that are read to compare, for one citation record. */
const MOST_COMPARED = 64 * 1_048_576;
/** Characters at the end of one part of a text that are looked at again with the next, for a sentence across the two. */
const OVERLAP = 8_192;

export interface FoundSentence extends Sentence {
  /** Numbers of the other documents that hold it, ascending. */
  readonly appearsIn: readonly number[];
}

export interface FoundCitations {
  readonly sentences: readonly FoundSentence[];
  /** How many of the sentences each other document holds. */
  readonly counts: ReadonlyMap<number, number>;
  /** Whether the document has more sentences than were listed, or there was more to compare than was. */
  readonly more: boolean;
}

/** A sentence as it is compared, and the documents that hold it as far as is known. */
interface Wanted {
  readonly comparable: string;
  readonly holders: Set<number>;
}

/**
 * Finds where else the sentences of a document stand: candidates by their rarest words, near each other in the index,
 * then compared with the text of each candidate.
 */
export class CitationSearch {
  readonly #database: Database;
  readonly #library: Library;
  readonly #clock: Clock;
  readonly #rarity: WordRarity;
  #last: Promise<void> = Promise.resolve();

  constructor(database: Database, library: Library, clock: Clock) {
    this.#database = database;
    this.#library = library;
    this.#clock = clock;
    this.#rarity = new WordRarity(database);
  }

  /** One at a time, so that many who ask at once do not add up their slices. @throws the reason of `signal` */
  find(document: Document, signal: AbortSignal): Promise<FoundCitations> {
    const found = this.#last.then(() => {
      signal.throwIfAborted();
      return this.#find(document, new Slices(this.#clock, signal));
    });
    this.#last = found.then(
      () => undefined,
      () => undefined,
    );
    return found;
  }

  async #find(document: Document, slices: Slices): Promise<FoundCitations> {
    const sentences: Sentence[] = [];
    const wanted = new Map<string, Wanted>();
    const candidates = new Map<number, Wanted[]>();
    let isAll = true;
    for (const sentence of sentencesOf(this.#parts(document.id))) {
      if (sentences.length === MOST_SENTENCES) {
        isAll = false;
        break;
      }
      sentences.push(sentence);
      await slices.pause();
      if (sentence.text.length < SHORTEST_CITED || wanted.has(sentence.text)) continue;
      const entry = { comparable: comparableSentence(sentence.text), holders: new Set<number>() };
      wanted.set(sentence.text, entry);
      for (const id of await this.#candidates(sentence.text, document.id, slices)) {
        const others = candidates.get(id);
        if (others) others.push(entry);
        else candidates.set(id, [entry]);
      }
    }
    const isAllCompared = await this.#compare(candidates, slices);
    const counts = new Map<number, number>();
    const found = sentences.map((sentence): FoundSentence => {
      const holders = [...(wanted.get(sentence.text)?.holders ?? [])].sort((a, b) => a - b);
      for (const id of holders) counts.set(id, (counts.get(id) ?? 0) + 1);
      return { ...sentence, appearsIn: holders };
    });
    return { sentences: found, counts, more: !isAll || !isAllCompared };
  }

  *#parts(id: number): Iterable<string> {
    for (let part = 0; ; part += 1) {
      const text = this.#library.textPart(id, part);
      if (text === undefined) return;
      yield text;
    }
  }

  async #candidates(text: string, except: number, slices: Slices): Promise<number[]> {
    const words = wordsOf(text).slice(0, MOST_WORDS);
    const rarest = await this.#rarity.rarest(words, ASKED_WORDS, slices);
    if (rarest.length === 0) return [];
    const near = `body : NEAR(${rarest.map((word) => `"${word}"`).join(' ')}, ${words.length})`;
    const sql = 'SELECT rowid FROM words WHERE words MATCH ? AND rowid <> ? LIMIT ?';
    return this.#database.rows(sql, near, except, MOST_HITS).map((row) => int(row, 'rowid'));
  }

  /** Whether all of it was compared. */
  async #compare(candidates: ReadonlyMap<number, readonly Wanted[]>, slices: Slices): Promise<boolean> {
    let left = MOST_COMPARED;
    for (const [id, sentences] of candidates) {
      let open = sentences;
      let overlap = '';
      for (const part of this.#parts(id)) {
        left -= part.length;
        if (left < 0) return false;
        const text = overlap + part;
        const within = comparable(text);
        const missing: Wanted[] = [];
        for (const sentence of open) {
          if (within.includes(sentence.comparable)) sentence.holders.add(id);
          else missing.push(sentence);
          await slices.pause();
        }
        open = missing;
        if (open.length === 0) break;
        overlap = text.slice(-OVERLAP);
      }
    }
    return true;
  }
}

/** The ends of sentences make a difference; quotes, dashes, line breaks, case and accents make none. */
function comparable(text: string): string {
  return fold(text).replace(/[^\p{L}\p{N}\p{M}.!?؟۔。।॥]+/gu, ' ');
}

/** A sentence as it is looked for in comparable text, where it may end otherwise or stand in quotes. */
function comparableSentence(sentence: string): string {
  return comparable(sentence).replace(/^[\s.!?؟۔。।॥]+|[\s.!?؟۔。।॥]+$/gu, '');
}

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

/** Work between two turns of the loop, in milliseconds. */
const SLICE_MS = 8;

/** Cuts long work into slices: everybody else has a turn at a `pause` that comes after SLICE_MS of work. */
export class Slices {
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  #began: number;

  constructor(clock: Clock, signal?: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#began = clock.now();
  }

  /** @throws the reason of the signal, once it is aborted */
  async pause(): Promise<void> {
    if (this.#clock.now() - this.#began < SLICE_MS) return;
    await nextTurn();
    this.#signal?.throwIfAborted();
    this.#began = this.#clock.now();
  }
}

/** A sentence of a document; `number` is its place among all sentences, from 0. */
export interface Sentence {
  readonly number: number;
  readonly text: string;
}

/** Longer ones are cut at a blank: a table or a list without a full stop is no sentence. */
export const LONGEST_SENTENCE = 2_000;

/** A blank line, or a line that begins like an item of a list, a heading, a quote or a row of a table. */
const PARAGRAPH_BREAK = /\n[^\S\n]*\n\s*|\n(?=[^\S\n]*(?:[-*+•#>|]|\d{1,3}[.)]\s))/g;
const LINE_BREAK = /\n\s*/g;
/**
 * The marks that end a sentence. A full stop ends none after a lone letter or a number of one or two digits ("z. B.",
 * "3. Oktober"), nor before a small letter; the marks of Chinese, Japanese and Indian scripts need no blank after them.
 * Repetition is bounded, so that a text of nothing but full stops takes no longer than another.
 */
const SENTENCE_END =
  /(?:[!?…؟۔]|(?<![^\p{L}\p{N}](?:\p{L}|\p{N}{1,2}))\.)[.!?…؟۔]{0,8}["'”’»)\]]{0,4}(?=\s(?!\p{Ll}))|[。！？｡।॥]{1,8}[”’」』）]{0,4}/gu;

/**
 * The sentences of a text that comes in parts, cut anywhere, in order. Where a text has blank lines they divide its paragraphs and a
 * line may break within a sentence; where it has none, as after HTML was taken off, each line is a paragraph.
 *
 * (Intl.Segmenter also cuts after "e.g." and "Dr.", and took 44 ms for 64 KB of English, 428 ms for 64 KB of Chinese.)
 */
export function* sentencesOf(parts: Iterable<string>): Iterable<Sentence> {
  let number = 0;
  for (const paragraph of paragraphsOf(parts)) {
    for (const text of cutSentences(paragraph)) {
      yield { number, text };
      number += 1;
    }
  }
}

function* paragraphsOf(parts: Iterable<string>): Iterable<string> {
  let rest = '';
  let breaks: RegExp | undefined;
  for (const part of parts) {
    rest = (rest + part).replaceAll('\r\n', '\n');
    breaks ??= /\n[^\S\n]*\n/.test(rest) ? PARAGRAPH_BREAK : LINE_BREAK;
    const paragraphs = rest.split(breaks);
    // The last may go on in the next part; one that does not end anywhere is cut.
    rest = paragraphs.pop() ?? '';
    yield* paragraphs;
    if (rest.length <= 2 * LONGEST_SENTENCE) continue;
    const end = lastEnd(rest);
    yield rest.slice(0, end);
    rest = rest.slice(end);
  }
  yield rest;
}

/** Where the last whole sentence of a long text ends, or its last blank, or where it is cut through. */
function lastEnd(text: string): number {
  const tail = text.length - LONGEST_SENTENCE;
  let end = 0;
  for (const match of text.matchAll(SENTENCE_END)) end = match.index + match[0].length;
  if (end > tail) return end;
  return wholeEnd(text, text.lastIndexOf(' ') > tail ? text.lastIndexOf(' ') : text.length);
}

/** Not between the two halves of a surrogate pair. */
function wholeEnd(text: string, end: number): number {
  return (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 && end < text.length ? end - 1 : end;
}

function* cutSentences(raw: string): Iterable<string> {
  const paragraph = raw.replace(/[\s\p{Cc}\ufeff]+/gu, ' ');
  let start = 0;
  for (const match of paragraph.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    yield* boundSentence(paragraph.slice(start, end));
    start = end;
  }
  yield* boundSentence(paragraph.slice(start));
}

function* boundSentence(raw: string): Iterable<string> {
  let text = raw.trim();
  while (text.length > LONGEST_SENTENCE) {
    const blank = text.lastIndexOf(' ', LONGEST_SENTENCE);
    const end = wholeEnd(text, blank > LONGEST_SENTENCE / 2 ? blank : LONGEST_SENTENCE);
    yield text.slice(0, end).trim();
    text = text.slice(end).trim();
  }
  if (text !== '') yield text;
}
