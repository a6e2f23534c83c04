import { escapeMarkup } from '../web/markup.js';
import type { Document, DocumentStore } from './documents.js';
import { endOfProperties } from './front-matter.js';
import { highlightAt, markedPieces } from './matches.js';
import type { Highlights } from './parsed-query.js';
import { isSymbolTerm, plainWord, writtenWord } from './symbol-words.js';
import { type PlacedWord, placedWords, UNSPACED_WORD } from './words.js';

/** The parts of a text that are searched for a snippet. */
const SEARCHED_PARTS = 4;

/** The characters that are searched for all snippets of one answer. They take about 50 ms. */
export class SnippetBudget {
  #left = 1_000_000;

  /**
   * Takes what it costs to search a text.
   *
   * @param times how much longer it takes than a search for a few words
   * @returns whether that much was left
   */
  take(text: string, times = 1): boolean {
    this.#left -= text.length * times;
    return this.#left >= 0;
  }
}

/**
 * Returns the snippet of a document: the place with the most of the highlighted words, or else its
 * start.
 */
export function snippetFor(
  { id, title, url }: Document,
  highlights: Highlights,
  documents: DocumentStore,
  budget: SnippetBudget,
): string {
  const isMarkdown = MARKDOWN.test(new URL(url).pathname);
  const start = bodyOf(documents.textPart(id, 0) ?? '', title, isMarkdown);
  let best: Snippet | undefined;
  for (let part = 0; part < SEARCHED_PARTS && !highlights.isEmpty; part += 1) {
    const text = part === 0 ? start : documents.textPart(id, part);
    if (text === undefined || !budget.take(text)) break;
    const found = snippetOf(text, highlights, isMarkdown, budget);
    if (found !== undefined && found.words > (best?.words ?? 0)) best = found;
    if (best?.words === Math.min(MAX_SOUGHT, highlights.words.length)) break;
  }
  return best?.text ?? snippetAt(start, 0, isMarkdown);
}

const SNIPPET_CHARS = 240;
/** The characters before the first highlighted word. */
const LEAD_CHARS = 60;

/** A part of a text. */
interface Snippet {
  readonly text: string;
  /** The number of highlighted words that it has, each counted once. */
  readonly words: number;
}

/** The most places of a word in a text that are looked at. */
const MAX_PLACES = 500;
/** The most words of a query that are looked for, and the most letters of such a word. */
const MAX_SOUGHT = 8;
const MAX_SOUGHT_LETTERS = 64;

/**
 * Returns the part of a text with the most of the highlighted words, without Markdown syntax;
 * undefined if the text has none of the words.
 */
export function snippetOf(
  text: string,
  highlights: Highlights,
  isMarkdown = false,
  budget = new SnippetBudget(),
): Snippet | undefined {
  const ranked = windowsOf(placesOf(text, highlights));
  if (ranked.length === 0) return firstSnippet(text, highlights, isMarkdown, budget);
  // A word in the address of a link is not part of the text that Markdown shows.
  for (const start of isMarkdown ? ranked.slice(0, MAX_WINDOWS) : ranked.slice(0, 1)) {
    const found = snippetAround(text, start, isMarkdown);
    const words = new Set(placesOf(found, highlights).map(({ word }) => word)).size;
    if (words > 0) return { text: found, words };
  }
  return undefined;
}

/**
 * Returns the part of a text around the first highlighted word. It knows every spelling. A piece of
 * the text that has the letters of a word takes ten times as long, and longer for more words.
 */
function firstSnippet(
  text: string,
  highlights: Highlights,
  isMarkdown: boolean,
  budget: SnippetBudget,
): Snippet | undefined {
  const times = 10 + 2 * highlights.words.length;
  let begin = 0;
  for (const { isPlaced, marks, text: piece } of markedPieces(text, highlights)) {
    for (const { start } of marks) {
      const found = snippetAround(text, begin + start, isMarkdown);
      const isShown = (each: PlacedWord) => highlightAt(found, each, highlights) !== undefined;
      if (!isMarkdown || [...placedWords(found)].some(isShown)) return { text: found, words: 1 };
    }
    if (isPlaced && !budget.take(piece, times)) return undefined;
    begin += piece.length;
  }
  return undefined;
}

function snippetAround(text: string, start: number, isMarkdown: boolean): string {
  const from = Math.max(0, start - LEAD_CHARS);
  // Starts between two words if possible.
  const begin = from === 0 ? 0 : from + text.slice(from, start).search(/\s/) + 1;
  return snippetAt(text, begin, isMarkdown);
}

/** The characters of a snippet that are searched for words: its end may be cut off. */
const WINDOW_CHARS = SNIPPET_CHARS - 2 * LEAD_CHARS;
/** The most windows of a Markdown text that are tried. */
const MAX_WINDOWS = 8;

/** A highlighted word in a text. */
interface Place {
  readonly at: number;
  /** Its number among the words of the query. */
  readonly word: number;
}

/**
 * Returns where the snippets may start, the one with the most different words first; of several,
 * the earliest.
 */
function windowsOf(places: readonly Place[]): readonly number[] {
  /** How often each word is in the window. */
  const counts = new Map<number, number>();
  const windows: { readonly at: number; readonly words: number }[] = [];
  let end = 0;
  for (const { at, word } of places) {
    for (let place = places[end]; place !== undefined; place = places[end]) {
      if (place.at > at + WINDOW_CHARS) break;
      counts.set(place.word, (counts.get(place.word) ?? 0) + 1);
      end += 1;
    }
    windows.push({ at, words: counts.size });
    const count = (counts.get(word) ?? 1) - 1;
    if (count === 0) counts.delete(word);
    else counts.set(word, count);
  }
  return windows.sort((a, b) => b.words - a.words || a.at - b.at).map(({ at }) => at);
}

/** Returns the places of the highlighted words in a text, in order. */
function placesOf(text: string, { words }: Highlights): readonly Place[] {
  const places: Place[] = [];
  for (const [word, { isPrefix, spellings }] of words.slice(0, MAX_SOUGHT).entries()) {
    const sought = spellings.filter(({ length }) => length <= MAX_SOUGHT_LETTERS);
    if (sought.length === 0) continue;
    // Inside a word, no other place is tried.
    const pattern = new RegExp(`(?<![a-z0-9])(?:${sought.map(patternOf).join('|')})`, 'gi');
    let count = 0;
    for (const { 0: found, index: at } of text.matchAll(pattern)) {
      const isUnspaced = UNSPACED_WORD.test(found);
      const isWhole = isPrefix || !LETTER.test(text.charAt(at + found.length));
      const isBegun = !LETTER.test(text.charAt(at - 1));
      if (!isUnspaced && !(isBegun && isWhole)) continue;
      places.push({ at, word });
      count += 1;
      if (count === MAX_PLACES) break;
    }
  }
  return places.sort((a, b) => a.at - b.at);
}

const LETTER = /[\p{L}\p{N}\p{M}]/u;
/** Letters with accents, which are folded to the letters before them. */
const ACCENTED: Readonly<Record<string, string>> = {
  a: 'àáâãäå',
  c: 'ç',
  e: 'èéêë',
  i: 'ìíîï',
  n: 'ñ',
  o: 'òóôõö',
  u: 'ùúûü',
  y: 'ýÿ',
};

/** Returns a pattern for a folded word or symbol word. */
function patternOf(word: string): string {
  if (!isSymbolTerm(word)) return accented(word);
  const plain = plainWord(word);
  const [leading = '', trailing = ''] = writtenWord(word)
    .split(plain)
    .map((signs) => signs.replace(/[+.]/g, '\\$&'));
  return `${leading}${accented(plain)}${trailing}`;
}

/** Returns a pattern for a folded word with and without accents. */
function accented(word: string): string {
  return word.replace(/ss|[aceinouy]/g, (letters) =>
    letters === 'ss' ? '(?:ss|ß)' : `[${letters}${ACCENTED[letters]}][\\u0300-\\u036f]?`,
  );
}

/** Returns a piece of a text as one line, which ends between two words if possible. */
export function snippetAt(text: string, start: number, isMarkdown = false): string {
  // Markdown syntax is removed, so more text is needed to fill a snippet.
  const raw = text.slice(start, start + (isMarkdown ? 3 * SNIPPET_CHARS : SNIPPET_CHARS));
  const whole = isMarkdown ? withoutMarks(raw) : raw;
  const isCut = whole.length > SNIPPET_CHARS || start + raw.length < text.length;
  const piece = whole.slice(0, SNIPPET_CHARS);
  const blank = isCut ? piece.search(/\s\S*$/) : -1;
  const line = oneLine((blank > SNIPPET_CHARS / 2 ? piece.slice(0, blank) : piece).toWellFormed());
  return `${start > 0 ? '… ' : ''}${line}${isCut ? ' …' : ''}`;
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}

const MARKDOWN = /\.(md|markdown|mdown|mkd|mdx)$/i;
const MAX_FRONT_MATTER_CHARS = 16_384;

/** Returns a text without front matter, and without a first line that repeats the title. */
export function bodyOf(text: string, title: string, isMarkdown: boolean): string {
  const head = isMarkdown ? text.slice(0, MAX_FRONT_MATTER_CHARS).split('\n') : [];
  const matter = head.slice(0, endOfProperties(head)).map((line) => `${line}\n`);
  const body = text.slice(matter.join('').length).trimStart();
  const end = body.search(/\n|$/);
  const first = body.slice(0, Math.min(end, SNIPPET_CHARS));
  const isTitle = oneLine(isMarkdown ? withoutMarks(first) : first) === title;
  return (isTitle && body.slice(end).trimStart()) || body;
}

/**
 * Removes Markdown syntax: of headings, lists, quotes, tables and emphasis. Links and images are
 * replaced by their text.
 */
function withoutMarks(text: string): string {
  return text
    .replace(
      /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?(?:\[!\w+\])?|[-*+][ \t]+(?:\[[ x]\][ \t]+)?|\d{1,9}[.)][ \t]+)/gm,
      '',
    )
    .replace(/^[ \t]*(?:[-*_=`~|:][ \t]*){3,}[\w-]*$|^[ \t]*\[[^\]\n]{1,100}\]:[ \t]+\S+.*$/gm, '')
    .replace(/!?\[([^\][]{0,200})\](?:\([^()\n]{0,500}\)|\[[^\][\n]{0,100}\])/g, '$1')
    .replace(/!?\[([^\][]{0,200})\](?:\([^()\n]{0,500}\)|\[[^\][\n]{0,100}\])/g, '$1')
    .replace(/<\/?[a-z][^<>]{0,300}>|<!--[^\n]{0,300}-->/gi, '')
    .replace(/(\*\*|__|~~|`+)(\S(?:[^\n]{0,300}?\S)??)\1/g, '$2')
    .replace(/(?<![\w*])([*_])(\S(?:[^\n*_]{0,300}\S)?)\1(?![\w*])/g, '$2')
    .replace(/[ \t]*\|[ \t]*/g, ' ');
}

/** Returns a text as markup, with the highlighted words in `<mark>`. */
export function highlighted(text: string, highlights: Highlights): string {
  let markup = '';
  let at = 0;
  for (const word of placedWords(text)) {
    const found = highlightAt(text, word, highlights);
    if (found === undefined) continue;
    const { end, start } = found;
    markup += escapeMarkup(text.slice(at, start));
    markup += `<mark>${escapeMarkup(text.slice(start, end))}</mark>`;
    at = end;
  }
  return markup + escapeMarkup(text.slice(at));
}
