import { expect, it } from 'vitest';
import { readDocument } from '../../src/content/readers/registry.js';
import { pdfOf } from './documents.js';

const names = (glyphs: readonly string[]) => glyphs.map((name) => `/${name}`).join(' ');
const letters = (first: number) =>
  Array.from(
    { length: 26 },
    (_, i) => `uni${(first + i).toString(16).toUpperCase().padStart(4, '0')}`,
  );
/** A font whose small letters are those of another script, half as wide as high. */
const fontOf = (glyphs: readonly string[]) =>
  `/Subtype /Type1 /BaseFont /Other /FirstChar 32 /LastChar 122 /Widths [${'500 '.repeat(91)}]
  /Encoding << /Type /Encoding /Differences [97 ${names(glyphs)}] >>
  /FontDescriptor << /Type /FontDescriptor /FontName /Other /Flags 32 >>`;
/** `a` is alef, `b` is bet, and so on. */
const HEBREW = fontOf(letters(0x5d0));

const textOf = async (content: string, font?: string, producer?: string) => {
  const stream = Buffer.from(`BT /F1 12 Tf ${content} ET`);
  return (await readDocument(pdfOf(stream, '', font, producer), 'a.pdf'))?.text;
};
/** Draws each piece at its place on one line, in this order. */
const at = (...pieces: readonly (readonly [x: number, text: string])[]) =>
  pieces.map(([x, text]) => `1 0 0 1 ${x} 700 Tm (${text}) Tj`).join(' ');

it.each([
  ['at once', '72 700 Td (hgfe dcba) Tj'],
  ['word by word', at([300, 'dcba'], [270, 'hgfe'])],
  ['letter by letter', at(...[...'abcd efgh'].map((letter, i) => [300 - 6 * i, letter] as const))],
  ['in another order, with a wide gap', at([100, 'hgfe'], [180, 'dcba'])],
  ['in two sizes', '72 700 Td (hgfe) Tj /F1 12.5 Tf ( dcba) Tj'],
])('reads a line from right to left that is drawn %s', async (_, content) => {
  expect(await textOf(content, HEBREW)).toBe('אבגד הוזח');
});

it.each([
  ['in one piece', at([100, 'hg\\(fe\\) dcba'])],
  ['in pieces of their own', at([100, 'hg\\(fe'], [127, '\\)'], [145, 'dcba'])],
])('turns the brackets of a line from right to left: %s', async (_, content) => {
  expect(await textOf(content, HEBREW)).toBe('אבגד (הו)זח');
});

it('turns the punctuation of a line from right to left in which it has pieces of its own', async () => {
  const content = at([100, '.\\('], [113, 'dcba'], [138, '\\) 14:30'], [200, 'fe']);
  expect(await textOf(content, HEBREW)).toBe('הו 14:30 (אבגד).');
});

it('reads lines from right to left one after the other', async () => {
  const content = `${at([300, 'dcba'], [270, 'hgfe'])} 1 0 0 1 300 680 Tm (ba) Tj 1 0 0 1 270 680 Tm (dc) Tj`;
  expect(await textOf(content, HEBREW)).toBe('אבגד הוזח\nאב גד');
});

it.each([
  [
    'words from left to right and numbers in a line from right to left',
    at([300, 'dcba'], [250, 'DE'], [220, 'ABC'], [160, '12.5'], [120, 'hgfe']),
    'אבגד ABC DE 12.5 הוזח',
  ],
  [
    'words from right to left in a line from left to right',
    at(
      [100, 'THE WORDS'],
      [190, 'hgfe'],
      [230, 'dcba'],
      [280, 'AND MORE OF THEM IN LATIN LETTERS'],
    ),
    'THE WORDS אבגד הוזח AND MORE OF THEM IN LATIN LETTERS',
  ],
  [
    'a number that is drawn figure by figure',
    at([300, 'dcba'], [260, '1'], [266, '2'], [272, ','], [278, '5'], [220, 'hgfe']),
    'אבגד 12,5 הוזח',
  ],
])('keeps the order of %s', async (_, content, text) => {
  expect(await textOf(content, HEBREW)).toBe(text);
});

it('makes letters of the forms that Arabic letters have in a word', async () => {
  const font = fontOf(['uniFEB3', 'uniFEFC', 'uniFEE1']);
  expect(await textOf('72 700 Td (cba) Tj', font)).toBe('سلام');
});

it('puts a blank between words of which the second is drawn on the left', async () => {
  expect(await textOf(at([300, 'right'], [100, 'left']))).toBe('right left');
  // An accent is drawn over its letter.
  expect(await textOf(at([100, 'acc'], [113, 'ents']))).toBe('accents');
});

/** A font of bitmaps: glyphs have a width in pixels, and the size of the font is one pixel. */
const BITMAPS = `/Subtype /Type3 /FontMatrix [1 0 0 1 0 0] /FontBBox [0 0 0 0] /Resources << >> /CharProcs << >>
  /FirstChar 97 /LastChar 122 /Widths [${'20 '.repeat(26)}]
  /Encoding << /Type /Encoding /Differences [97 ${names([...'abcdefghijklmnopqrstuvwxyz'])}] >>`;

it('takes the gaps between letters of a bitmap font for no blanks, and those between words for ones', async () => {
  const words =
    '/F1 1 Tf 0.24 0 0 0.24 72 700 Tm [(wo) -1500 (r) -300 (ds) -10000 (of) -14000 (pi) 2000 (xe) -3000 (ls)] TJ';
  expect(await textOf(words, BITMAPS)).toBe('words of pixels');
});

it('leaves the blanks of other fonts that are drawn glyph by glyph', async () => {
  const usual = BITMAPS.replace('[1 0 0 1 0 0]', '[0.024 0 0 0.024 0 0]');
  expect(await textOf('72 700 Td [(two) -300 (wo) -20 (rds)] TJ', usual)).toBe('two words');
});
