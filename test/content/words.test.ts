import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HtmlWords, PlainWords, type WordCounter } from '../../src/content/words.js';
import { cpuMs } from '../support/cpu.js';

function counted(counter: WordCounter, ...pieces: readonly Uint8Array[]): number | undefined {
  for (const piece of pieces) counter.write(piece);
  return counter.end();
}
const plain = (text: string) => counted(new PlainWords(), Buffer.from(text));
const html = (text: string) => counted(new HtmlWords('utf-8'), Buffer.from(text));

describe('the words of a text', () => {
  it.each([
    ['', undefined],
    [' \n\t ', undefined],
    ['— … ! → 😀', undefined],
    ['a', 1],
    ['a b 1\f2\b3', 5],
    ['one  two', 2],
    ['three,words;no-blank', 1],
    ['&nbsp; one&nbsp;word &nbsp;', 1],
    ['&uuml;ber &#252;ber', 2],
    ['&nbsp;', 0],
    ['- one -> two -', 2],
    ['größe 東京 Ωμέγα', 3],
    ['a '.repeat(101), 100],
  ])('%j: %s', (text, words) => {
    expect(plain(text)).toBe(words);
  });

  it('are counted alike in one piece and in many', () => {
    const text = fc.string({ unit: fc.constantFrom('ab', ' ', '-', '<b>', '1', '&amp;') });
    fc.assert(
      fc.property(
        text.map((t) => Buffer.from(t)),
        fc.nat(20),
        (bytes, at) => {
          for (const counter of [() => new PlainWords(), () => new HtmlWords('utf-8')]) {
            const inPieces = counted(counter(), bytes.subarray(0, at), bytes.subarray(at));
            expect(inPieces).toBe(counted(counter(), bytes));
          }
        },
      ),
    );
  });

  it.each([
    ['<head><style>p { color: red }</style><script>let a = 1;</script></head><p> </p>', undefined],
    ['<!-- a comment --><img src="photo.jpg">', undefined],
    ['<title>Zulu time</title><p>amber &amp; birch<br>cedar</p>', 3],
    ['<title>Zulu time</title>', 0],
    ['<img src="x.png" alt="A red kite">', 0],
    ['<meta property="og:title" content="Kites"><meta charset="utf-8">', 0],
    ['<input placeholder="Search">', 0],
    ['<noscript>one two</noscript><p>three</p>', 1],
    ['<meta name="viewport" content="width=device-width">', undefined],
    ['<meta name="description" content="About kites">', 0],
  ])('of a page are those that it shows: %j: %s', (text, words) => {
    expect(html(text)).toBe(words);
  });
});

it('counting is not slowed down by a page that opens very many elements and closes none', async () => {
  const page = `${'<b></i>'.repeat(250_000)}<p>word`;
  expect(await cpuMs(() => expect(html(page)).toBe(1))).toBeLessThan(5_000);
});
