import type { PDFPageProxy } from 'pdfjs-dist';

/**
 * Joins the pieces of text of a page, as PDF.js finds them, into lines.
 *
 * PDF.js joins glyphs that follow each other from left to right, and puts blanks between those with
 * a gap. It reverses what is written from right to left within a piece, but leaves the pieces in
 * the order in which they are drawn. Here are the cases that need more than that:
 *
 * - A line in Hebrew or Arabic has several pieces if its font changes, a gap is wide, or a program
 *   draws word by word. They are put in the order of reading.
 * - A piece that is drawn to the left of the one before has no blank between them.
 * - The size of a bitmap font may be that of one pixel. PDF.js takes every gap in it for a blank.
 */

type Item = Awaited<ReturnType<PDFPageProxy['getTextContent']>>['items'][number];
type TextItem = Extract<Item, { str: string }>;

/** Smallest gap between words, as a share of the size of the font. PDF.js has the same. */
const MIN_GAP = 0.102;
/**
 * Mean width of glyphs from which a font is taken for one whose size is that of a pixel, as a
 * multiple of that size. In other fonts it is about 0.5, and never above 1.5.
 */
const MIN_GLYPH_OF_PIXELS = 2.5;
/**
 * Smallest gap between words in such a font, as a share of the mean width of its glyphs. TeX has
 * blanks of 0.44 and more, and moves letters apart by up to 0.2.
 */
const MIN_GAP_OF_GLYPH = 0.33;
/** Share of the letters of a line from which it is read from right to left. */
const MIN_RTL_SHARE = 0.3;

/** Hebrew, Arabic, Syriac, Thaana, N'Ko and others, with their presentation forms. */
const RTL_LETTER = /[\u05d0-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const LETTER = /\p{L}/u;
/** The forms of Arabic letters at the start, in the middle and at the end of a word. */
const ARABIC_FORMS = /[\ufe80-\ufefc]+/g;
/** Characters that belong to the number beside them. Others do between two numbers. */
const UNIT = /^[#%$€£₪°٪]$/;

/** Returns the text of a page, line by line. */
export function pageText(items: readonly Item[]): string {
  const texts = items.filter((item) => 'str' in item);
  const glyphs = glyphWidths(texts);
  const lines: string[] = [];
  let line: TextItem[] = [];
  for (const item of texts) {
    line.push(item);
    if (!item.hasEOL) continue;
    lines.push(`${lineText(line, glyphs)}\n`);
    line = [];
  }
  lines.push(lineText(line, glyphs));
  return (
    lines
      .join('')
      .replace(ARABIC_FORMS, (forms) => forms.normalize('NFKC'))
      // A soft hyphen in a PDF is a visible one.
      .replaceAll('\u00ad', '-')
  );
}

/** A piece of text on its line. */
interface Piece {
  readonly text: string;
  /** Its begin and its end in the direction of the line, in the units of the page. */
  readonly begin: number;
  readonly end: number;
  /** Smallest gap between words. */
  readonly minGap: number;
  readonly isOfPixels: boolean;
  readonly isRtl: boolean;
}

function lineText(items: readonly TextItem[], glyphs: ReadonlyMap<string, number>): string {
  const isRtl = items.some(({ str }) => RTL_LETTER.test(str));
  if (!isRtl || !haveOneDirection(items)) return inDrawnOrder(items, glyphs);
  const pieces = items.flatMap((item) => (item.str.trim() === '' ? [] : [pieceOf(item, glyphs)]));
  return inReadingOrder(pieces);
}

function pieceOf(item: TextItem, glyphs: ReadonlyMap<string, number>): Piece {
  const { dir, fontName, height, str, transform, width } = item;
  const [cos, sin] = directionOf(item);
  const begin = Number(transform[4]) * cos + Number(transform[5]) * sin;
  const glyph = glyphs.get(fontName);
  // Blanks within a piece of such a font are gaps of less than a pixel.
  const text = glyph === undefined ? str : str.replaceAll(' ', '');
  return {
    text: dir === 'rtl' ? mirrored(text) : text,
    begin,
    end: begin + width,
    minGap: glyph === undefined ? MIN_GAP * height : MIN_GAP_OF_GLYPH * glyph,
    isOfPixels: glyph !== undefined,
    isRtl: dir === 'rtl',
  };
}

/** Returns the direction of the baseline, as a vector of length 1. */
function directionOf({ transform }: TextItem): readonly [number, number] {
  const [x, y] = [Number(transform[0]), Number(transform[1])];
  const length = Math.hypot(x, y) || 1;
  return [x / length, y / length];
}

function haveOneDirection(items: readonly TextItem[]): boolean {
  const visible = items.filter(({ str }) => str.trim() !== '');
  const [first] = visible;
  if (first === undefined) return true;
  const [x, y] = directionOf(first);
  return visible.every((item) => {
    const [otherX, otherY] = directionOf(item);
    return item.dir !== 'ttb' && x * otherX + y * otherY > 0.99;
  });
}

/**
 * Returns the mean width of the glyphs of those fonts whose size is that of a pixel, by the name of
 * the font.
 */
function glyphWidths(items: readonly TextItem[]): ReadonlyMap<string, number> {
  const fonts = new Map<string, { width: number; glyphs: number; size: number }>();
  for (const { dir, fontName, str, transform, width } of items) {
    const glyphs = str.replaceAll(' ', '').length;
    if (glyphs === 0 || dir === 'ttb') continue;
    const font = fonts.get(fontName) ?? { width: 0, glyphs: 0, size: 0 };
    fonts.set(fontName, font);
    font.width += width;
    font.glyphs += glyphs;
    font.size = Math.max(font.size, Math.hypot(Number(transform[0]), Number(transform[1])));
  }
  const means = new Map<string, number>();
  for (const [name, { glyphs, size, width }] of fonts)
    if (width / glyphs > MIN_GLYPH_OF_PIXELS * size) means.set(name, width / glyphs);
  return means;
}

/** Joins pieces that are read from left to right. */
function inDrawnOrder(items: readonly TextItem[], glyphs: ReadonlyMap<string, number>): string {
  let text = '';
  let blanks = '';
  let last: Piece | undefined;
  for (const item of items) {
    if (item.str.trim() === '') {
      blanks += item.str;
      continue;
    }
    const piece = pieceOf(item, glyphs);
    text += (last === undefined ? blanks : blankBetween(last, piece, blanks)) + piece.text;
    last = piece;
    blanks = '';
  }
  return text + blanks;
}

/** @param blanks those that PDF.js found */
function blankBetween(last: Piece, next: Piece, blanks: string): string {
  const isLeft = next.end < last.begin;
  if (last.isOfPixels && next.isOfPixels)
    return isLeft || next.begin - last.end > Math.max(last.minGap, next.minGap) ? ' ' : '';
  return blanks === '' && isLeft ? ' ' : blanks;
}

/** Direction of a piece: to the left, to the right, a number, or none of its own. */
type Direction = 'R' | 'L' | 'N' | 'O';

interface Directed {
  readonly text: string;
  readonly direction: Direction;
}

/**
 * Joins the pieces of a line with letters that are read from right to left. It undoes the order in
 * which they are shown (Unicode Standard Annex 9) by the place of each.
 */
function inReadingOrder(pieces: readonly Piece[]): string {
  const shown: Directed[] = [];
  let end: number | undefined;
  for (const piece of pieces.toSorted((a, b) => a.begin - b.begin)) {
    if (end !== undefined && piece.begin - end > piece.minGap)
      shown.push({ text: ' ', direction: 'O' });
    if (piece.isRtl) shown.push({ text: piece.text, direction: 'R' });
    else for (const [text] of piece.text.matchAll(PARTS)) shown.push(directed(text));
    end = Math.max(end ?? piece.end, piece.end);
  }
  const all = pieces.map(({ text }) => text).join('');
  const letters = [...all].filter((character) => LETTER.test(character));
  const rtl = letters.filter((letter) => RTL_LETTER.test(letter)).length;
  const levels = levelsOf(shown, rtl >= MIN_RTL_SHARE * letters.length ? 1 : 0);
  const texts = shown.map(({ direction, text }, i) =>
    direction === 'O' && levels[i] === 1 ? mirrored(text) : text,
  );
  return reordered(texts, levels).join('').replace(/ {2,}/g, ' ');
}

/** A word, a number, or one other character. */
const PARTS = /[\p{L}\p{M}]+|\p{Nd}+(?:[.,:/]\p{Nd}+)*|[^\p{L}\p{M}\p{Nd}]/gu;

function directed(text: string): Directed {
  if (LETTER.test(text)) return { text, direction: 'L' };
  return { text, direction: /\p{Nd}/u.test(text) ? 'N' : 'O' };
}

const MIRRORED: Readonly<Record<string, string>> = {
  '(': ')',
  ')': '(',
  '[': ']',
  ']': '[',
  '{': '}',
  '}': '{',
  '«': '»',
  '»': '«',
};

/** Turns the brackets of a text from right to left, which PDF.js has as they are drawn. */
function mirrored(text: string): string {
  return text.replace(/[()[\]{}«»]/g, (bracket) => MIRRORED[bracket] ?? bracket);
}

/** Returns the level of each piece: odd ones are read from right to left. */
function levelsOf(shown: readonly Directed[], base: 0 | 1): readonly number[] {
  const outer = base === 1 ? 'R' : 'L';
  /** The direction of the letters before each piece. */
  let before: Direction = outer;
  const directions = shown.map(({ direction, text }, i): Direction => {
    const numbers = [shown[i - 1], shown[i + 1]].filter((beside) => beside?.direction === 'N');
    const isOfNumber = (numbers.length > 0 && UNIT.test(text)) || numbers.length === 2;
    const own = direction === 'O' && text !== ' ' && isOfNumber ? 'N' : direction;
    if (own === 'L' || own === 'R') before = own;
    return own === 'N' && before === 'L' ? 'L' : own;
  });
  const left = strongBefore(directions, outer);
  const right = strongBefore(directions.toReversed(), outer).toReversed();
  return directions.map((direction, i) => {
    if (direction === 'N') return 2;
    const around = left[i] === right[i] ? left[i] : outer;
    const own = direction === 'O' ? around : direction;
    if (own === 'R') return 1;
    return base === 1 ? 2 : 0;
  });
}

/**
 * Returns, for each piece, the direction of the last one before it that has one. A number counts
 * like letters from right to left there.
 */
function strongBefore(directions: readonly Direction[], outer: 'L' | 'R'): readonly ('L' | 'R')[] {
  let last = outer;
  return directions.map((direction) => {
    const before = last;
    if (direction !== 'O') last = direction === 'L' ? 'L' : 'R';
    return before;
  });
}

/** Reverses each row of pieces of a level or above, from the highest level to 1. */
function reordered<T>(shown: readonly T[], levels: readonly number[]): readonly T[] {
  let pieces = shown;
  for (const level of [2, 1]) {
    const next: T[] = [];
    let row: T[] = [];
    const endRow = () => {
      for (const piece of row.toReversed()) next.push(piece);
      row = [];
    };
    for (const [i, piece] of pieces.entries()) {
      if ((levels[i] ?? 0) >= level) {
        row.push(piece);
        continue;
      }
      endRow();
      next.push(piece);
    }
    endRow();
    pieces = next;
  }
  return pieces;
}
