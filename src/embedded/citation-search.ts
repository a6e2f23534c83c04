import type { Clock } from '../lib/clock.js';
import { type Database, int } from './database.js';
import type { DocumentStore } from './documents.js';
import { Slices } from './form.js';
import { fold, wordsOf } from './words.js';

/** Shorter sentences are not looked up, as in YaCy: too many documents have them by chance. */
const SHORTEST_CITED = 40;
/** Other documents that are looked for, for one sentence. */
const MOST_HITS = 100;
/** Sentences of a document that are listed and looked up. */
const MOST_SENTENCES = 1_000;
/** Characters of a document that are cut into sentences. */
const MOST_TEXT = 2_097_152;
/**
 * Words in a row of a sentence that the index is asked for, the longest there are: these are the rarest. Asked for all words, the
 * index walks through the documents of "the" and "of" as well: over 100,000 of them 7 ms a sentence and not 0.8.
 */
const ASKED_WORDS = 5;
/** Characters of other documents' texts that are read to compare, for one citation record. */
const MOST_COMPARED = 64 * 1_048_576;
/** Characters at the end of one part of a text that are looked at again with the next, for a sentence across the two. */
const OVERLAP = 8_192;

export interface FoundCitations {
  readonly sentences: readonly Sentence[];
  /** Numbers of the other documents that hold a sentence, by its text. */
  readonly holders: ReadonlyMap<string, readonly number[]>;
  /** Whether the document has more sentences than were listed, or there was more to compare than was. */
  readonly more: boolean;
}

/** A sentence as it is compared, and the documents that hold it as far as is known. */
interface Wanted {
  readonly comparable: string;
  readonly holders: Set<number>;
}

/**
 * Finds where else the sentences of a document stand: candidates by a few words in a row from the index, then compared with the
 * text of each candidate.
 */
export class CitationSearch {
  readonly #database: Database;
  readonly #documents: DocumentStore;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database, documents: DocumentStore, clock: Clock) {
    this.#database = database;
    this.#documents = documents;
    this.#clock = clock;
  }

  /** One at a time, so that many who ask at once do not add up their slices; for who is gone meanwhile, nothing is done. */
  find(document: number, isGone: () => boolean): Promise<FoundCitations> {
    const found = this.#last.then(() => this.#find(document, isGone));
    this.#last = found.catch(() => undefined);
    return found;
  }

  async #find(document: number, isGone: () => boolean): Promise<FoundCitations> {
    const slices = new Slices(this.#clock);
    const { text, isWhole } = this.#textOf(document);
    const sentences: Sentence[] = [];
    const wanted = new Map<string, Wanted>();
    const candidates = new Map<number, Wanted[]>();
    let isAll = isWhole;
    for (const sentence of sentencesOf(text)) {
      if (isGone()) break;
      if (sentences.length === MOST_SENTENCES) {
        isAll = false;
        break;
      }
      sentences.push(sentence);
      await slices.pause();
      if (sentence.text.length < SHORTEST_CITED || wanted.has(sentence.text)) continue;
      const entry = { comparable: comparableSentence(sentence.text), holders: new Set<number>() };
      wanted.set(sentence.text, entry);
      for (const id of this.#candidates(sentence.text, document))
        candidates.set(id, [...(candidates.get(id) ?? []), entry]);
    }
    const isAllCompared = await this.#compare(candidates, slices, isGone);
    const holders = [...wanted].map(([text, entry]): [string, number[]] => [text, [...entry.holders]]);
    return { sentences, holders: new Map(holders), more: !isAll || !isAllCompared };
  }

  #textOf(id: number): { readonly text: string; readonly isWhole: boolean } {
    let text = '';
    for (let part = 0; text.length < MOST_TEXT; part += 1) {
      const next = this.#documents.textPart(id, part);
      if (next === undefined) return { text, isWhole: true };
      text += next;
    }
    return { text, isWhole: false };
  }

  #candidates(sentence: string, except: number): number[] {
    const words = wordsOf(sentence);
    let asked: string[] = [];
    for (let at = 0; at === 0 || at + ASKED_WORDS <= words.length; at += 1) {
      const inRow = words.slice(at, at + ASKED_WORDS);
      if (inRow.join('').length > asked.join('').length) asked = inRow;
    }
    if (asked.length === 0) return [];
    const sql = 'SELECT rowid FROM words WHERE words MATCH ? AND rowid <> ? LIMIT ?';
    const rows = this.#database.rows(sql, `body : "${asked.join(' ')}"`, except, MOST_HITS);
    return rows.map((row) => int(row, 'rowid'));
  }

  /** Whether all of it was compared. */
  async #compare(
    candidates: ReadonlyMap<number, readonly Wanted[]>,
    slices: Slices,
    isGone: () => boolean,
  ): Promise<boolean> {
    let left = MOST_COMPARED;
    for (const [id, sentences] of candidates) {
      let open = sentences;
      let overlap = '';
      for (let part = 0; open.length > 0; part += 1) {
        const text = this.#documents.textPart(id, part);
        if (text === undefined) break;
        left -= text.length;
        if (left < 0 || isGone()) return false;
        const within = comparable(overlap + text);
        for (const sentence of open) {
          if (within.includes(sentence.comparable)) sentence.holders.add(id);
          await slices.pause();
        }
        open = open.filter(({ holders }) => !holders.has(id));
        overlap = (overlap + text).slice(-OVERLAP);
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
 * The sentences of a text, in order. Where it has blank lines they divide its paragraphs and a line may break within a sentence;
 * where it has none, as after HTML was taken off, each line is a paragraph.
 *
 * (Intl.Segmenter also cuts after "e.g." and "Dr.", and took 44 ms for 64 KB of English, 428 ms for 64 KB of Chinese.)
 */
export function* sentencesOf(text: string): Iterable<Sentence> {
  const plain = text.replaceAll('\r\n', '\n');
  const breaks = /\n[^\S\n]*\n/.test(plain) ? PARAGRAPH_BREAK : LINE_BREAK;
  let number = 0;
  for (const paragraph of plain.split(breaks)) {
    for (const sentence of cutSentences(paragraph)) {
      yield { number, text: sentence };
      number += 1;
    }
  }
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
