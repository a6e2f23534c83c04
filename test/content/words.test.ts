import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wordsOf } from '../../src/content/words.js';

const plain = (text: string) => wordsOf(Buffer.from(text), 'utf-8', false);
const html = (text: string) => wordsOf(Buffer.from(text), 'utf-8', true);

describe('the words of a text', () => {
  it.each([
    ['', undefined],
    [' \n\t ', undefined],
    ['— … ! → 😀', undefined],
    ['a', 1],
    ['a b 1\f2\b3', 5],
    ['one  two', 2],
    ['three,words;no-blank', 1],
    ['- one -> two -', 2],
    ['größe 東京 Ωμέγα', 3],
  ])('%j: %s', (text, words) => {
    expect(plain(text)).toBe(words);
  });

  it('are counted up to 100', () => {
    expect(plain('word '.repeat(10_000))).toBe(100);
  });

  it('are as many in pieces as in one', async () => {
    const { WordCounter } = await import('../../src/content/words.js');
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('ab', 'ü', ' ', '-', '東', '😀', '<b>', '1') }),
        fc.nat(20),
        fc.boolean(),
        (text, cut, isHtml) => {
          const bytes = Buffer.from(text);
          const counter = new WordCounter('utf-8', isHtml);
          for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) counter.write(piece);
          expect(counter.end()).toBe(wordsOf(bytes, 'utf-8', isHtml));
        },
      ),
    );
  });

  it.each([
    [
      '<html><head><style>p { color: red }</style><script>let a = 1;</script></head><body><p> </p></body></html>',
      undefined,
    ],
    ['<!-- a comment --><img src="photo.jpg">', undefined],
    ['<title>Zulu time</title><p>amber &amp; birch<br>cedar</p>', 3],
    ['<title>Zulu time</title>', 0],
    ['<img src="x.png" alt="A red kite">', 0],
    ['<meta name="description" content="About kites">', 0],
  ])('of a page are those that are shown: %j: %s', (text, words) => {
    expect(html(text)).toBe(words);
  });
});
