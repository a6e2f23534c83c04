import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { expect, it } from 'vitest';
import { decodeEntities, escapeMarkup, escapeText } from '../../src/lib/markup.js';

it('escaped text is read back as it was, in an element and in an attribute', () => {
  const isReadBack = fc.property(fc.string({ unit: 'grapheme' }), (text) => {
    let read = '';
    let attribute: string | undefined;
    const parser = new Parser({
      onopentag: (_, attributes) => {
        attribute = attributes.title;
      },
      ontext: (part) => {
        read += part;
      },
    });
    parser.write(`<p title="${escapeMarkup(text)}">${escapeText(text)}</p>`);
    parser.end();
    expect([attribute, read]).toEqual([text, text]);
    expect(decodeEntities(escapeMarkup(text))).toBe(text);
  });
  fc.assert(isReadBack);
});

it('numbers stand for exactly their characters, and unknown entities stay', () => {
  expect(decodeEntities('&#128;&#0;&#8364;')).toBe('\u0080\u0000€');
  expect(decodeEntities('&amp;lt; &nbsp; &amp &#1234567;')).toBe('&lt; &nbsp; &amp &#1234567;');
});
