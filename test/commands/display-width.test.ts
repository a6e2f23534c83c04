import { describe, expect, it } from 'vitest';
import { displayWidth, fitted } from '../../src/commands/text.js';

describe('the width of a text on a terminal', () => {
  it.each([
    ['', 0],
    ['plain ~', 7],
    ['Grüße', 5],
    ['e\u0301', 1],
    ['日本語', 6],
    ['한글', 4],
    ['ｱｲｳ', 3],
    ['Ａ！', 4],
    ['😀', 2],
    ['👩‍👩‍👧‍👦', 2],
    ['🇩🇪', 2],
    ['❤️', 2],
    ['שלום', 4],
    ['a\u200bb', 2],
  ])('%j takes %i columns', (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  it('is kept when a text is filled up or cut, and no character is cut in two', () => {
    for (const text of [
      'plain text',
      '日本語の注釈',
      '👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family',
      'e\u0301e\u0301e\u0301e\u0301',
    ])
      for (let width = 1; width <= 14; width += 1) {
        const shown = fitted(text, width);
        expect(displayWidth(shown)).toBe(width);
        const begin = shown.replace(/…? *$/, '');
        expect(text.startsWith(begin)).toBe(true);
        expect(begin).not.toMatch(/\u200d$|[\ud800-\udbff]$/);
      }
    expect(fitted('12', 5, 'right')).toBe('   12');
  });
});
