import type { Yielder } from '../lib/slices.js';
import type { Highlights } from './parsed-query.js';
import { plainWord, symbolWordsAt } from './symbol-words.js';
import { pageEndsIn, type TextSections } from './text-sections.js';
import { fold, type PlacedWord, placedWords } from './words.js';

/** A highlighted word in a text. */
export interface Mark {
  readonly start: number;
  readonly end: number;
  /** Whether it begins a match. Otherwise it belongs to the match of the mark before it. */
  readonly isFirst: boolean;
}

/** A piece of a text with its marks, whose places count from the start of the piece. */
interface MarkedPiece {
  readonly text: string;
  readonly marks: readonly Mark[];
  /** Whether it has the letters of a word, so that each of its words was compared. */
  readonly isPlaced: boolean;
  /** The time that it took, in units of about 30 µs. */
  readonly cost: number;
}

/** The characters that are searched at a time. */
const PIECE_CHARS = 4_096;
/** The cost of a piece without any of the words, and of one whose words are placed: about 1 ms. */
const QUICK_COST = 1;
const PLACED_COST = 30;
/** The most characters between two words of one match. */
const MAX_GAP = 3;
const BETWEEN_WORDS = /^[^\p{L}\p{N}\n\f]*$/u;

/**
 * Yields the pieces of a text with the words that a query highlights. Neighbouring words are one
 * match if they are different words: `Green tea` for `green tea`.
 */
export function* markedPieces(text: string, highlights: Highlights): Iterable<MarkedPiece> {
  const search = new QuickSearch(highlights);
  for (const piece of piecesOf(text)) {
    if (search.mayMatch(piece))
      yield {
        text: piece,
        marks: marksIn(piece, highlights),
        isPlaced: true,
        cost: PLACED_COST,
      };
    else yield { text: piece, marks: [], isPlaced: false, cost: QUICK_COST };
  }
}

/** Cuts a text between words if possible. */
function* piecesOf(text: string): Iterable<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + PIECE_CHARS);
    if (end < text.length) {
      const blank = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
      if (blank > start) end = blank;
      else if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
    }
    yield text.slice(start, end);
    start = end;
  }
}

/** Returns the highlighted word or symbol word at the place of a word; undefined if none is. */
export function highlightAt(
  text: string,
  word: PlacedWord,
  highlights: Highlights,
): PlacedWord | undefined {
  if (highlights.isEmpty) return undefined;
  return [...symbolWordsAt(text, word), word].find((each) => highlights.has(each.word));
}

function marksIn(text: string, highlights: Highlights): readonly Mark[] {
  const marks: Mark[] = [];
  let words = new Set<string>();
  for (const placed of placedWords(text)) {
    const found = highlightAt(text, placed, highlights);
    if (found === undefined) continue;
    const { end, start, word } = found;
    const gap = text.slice(marks.at(-1)?.end ?? 0, start);
    const isBeside = marks.length > 0 && gap.length <= MAX_GAP && BETWEEN_WORDS.test(gap);
    const isFirst = !isBeside || words.has(word);
    if (isFirst) words = new Set();
    words.add(word);
    marks.push({ start, end, isFirst });
  }
  return marks;
}

const OTHER_LETTERS = /[^\0-\x7f]+/g;
/** Longer runs of other letters are seldom the same. */
const MAX_KEPT_LETTERS = 4;
const MAX_KEPT = 2_000;

/** Tells texts without any of the highlighted words, in a fiftieth of the time. */
class QuickSearch {
  readonly #sought: readonly string[];
  readonly #folded = new Map<string, string>();

  constructor({ words }: Highlights) {
    this.#sought = [...new Set(words.flatMap(({ spellings }) => spellings.map(plainWord)))];
  }

  mayMatch(text: string): boolean {
    if (this.#sought.length === 0) return false;
    const folded = text.toLowerCase().replace(OTHER_LETTERS, (run) => this.#fold(run));
    return this.#sought.some((word) => folded.includes(word));
  }

  #fold(run: string): string {
    const known = this.#folded.get(run);
    if (known !== undefined) return known;
    const folded = fold(run);
    if (run.length <= MAX_KEPT_LETTERS && this.#folded.size < MAX_KEPT)
      this.#folded.set(run, folded);
    return folded;
  }
}

/** The most matches of a document that are counted. */
export const MAX_MATCHES = 10_000;

/** A section of a text, with what is before it. */
interface Section {
  readonly number: number;
  readonly matchesBefore: number;
  readonly pagesBefore: number;
}

/**
 * Counts the matches and the pages of a document, section by section. It can be interrupted, and
 * goes on where it was. Several requests may have it go on at the same time.
 */
export class MatchCount {
  readonly #sections: Section[] = [];
  #matches = 0;
  #pages = 0;
  #cost = 0;
  #isComplete = false;
  /** The section that is being counted, for all requests that wait for it. */
  #underWay: Promise<void> | undefined;

  constructor(readonly highlights: Highlights) {}

  /** Number of matches that were counted. */
  get matches(): number {
    return this.#matches;
  }

  /** Number of page ends that were counted. */
  get pageEnds(): number {
    return this.#pages;
  }

  /** The time that was spent on it, in units of about 30 µs, whatever else the machine does. */
  get cost(): number {
    return this.#cost;
  }

  /** Whether the whole text was read. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether there are more matches than are counted. */
  get isCapped(): boolean {
    return this.#matches >= MAX_MATCHES;
  }

  /** Counts on until `isEnough`, or to the end of the text. */
  async goOn(text: TextSections, isEnough: () => boolean, yielder: Yielder): Promise<void> {
    while (!this.#isComplete && !isEnough()) {
      this.#underWay ??= this.#countNext(text, yielder).finally(() => {
        this.#underWay = undefined;
      });
      await this.#underWay;
    }
  }

  async #countNext(text: TextSections, yielder: Yielder): Promise<void> {
    const number = this.#sections.length;
    const section = text.at(number);
    const matches = await this.#count(section ?? '', yielder);
    if (section === undefined) {
      this.#isComplete = true;
      return;
    }
    this.#sections.push({ number, matchesBefore: this.#matches, pagesBefore: this.#pages });
    this.#matches += matches;
    this.#pages += pageEndsIn(section);
  }

  async #count(section: string, yielder: Yielder): Promise<number> {
    let matches = 0;
    if (!this.isCapped)
      for (const { cost, marks } of markedPieces(section, this.highlights)) {
        this.#cost += cost;
        for (const { isFirst } of marks) if (isFirst) matches += 1;
        await yielder.turn();
      }
    this.#cost += QUICK_COST;
    await yielder.turn();
    return matches;
  }

  /** Returns a section that was counted; undefined if it was not. */
  section(number: number): Section | undefined {
    return this.#sections[number];
  }

  /** The last section that was counted; undefined if there is none. */
  get lastSection(): Section | undefined {
    return this.#sections.at(-1);
  }

  /** Returns the section that has a match, counted from 1; undefined if it was not counted. */
  sectionOf(match: number): Section | undefined {
    if (match > this.#matches) return undefined;
    return this.#sections.findLast(({ matchesBefore }) => matchesBefore < match);
  }
}
