import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { marked, readQuestion, snippetAt, snippetOf } from '../../src/embedded/search.js';
import { countWords, fold, indexable, placedWords, wordsOf } from '../../src/embedded/words.js';

describe('words', () => {
  it('are the same however accents, case and compatibility forms are written', () => {
    for (const [a, b] of [
      ['Größe', 'GROSSE'],
      ['\u00fcber', 'u\u0308ber'],
      ['Straße', 'STRASSE'],
      ['ﬁle', 'file'],
      ['ＡＢＣ１', 'abc1'],
      ['ΟΔΟΣ', 'οδος'],
      ['İstanbul', 'istanbul'],
      ['한국어', '한국어'.normalize('NFD')],
    ] as const)
      expect(fold(a)).toBe(fold(b));
  });

  it('are single characters in scripts written without blanks, and whole words with vowel signs in Hindi', () => {
    expect(wordsOf('検索 engine')).toEqual(['検', '索', 'engine']);
    expect(wordsOf('हिन्दी')).toHaveLength(1);
  });

  it('are counted as the index sees them', () => {
    expect(countWords(indexable('one, two_three — four! 検索 Größe'))).toBe(7);
    expect(countWords(indexable(Buffer.from('one,two three\n')))).toBe(3);
    expect(countWords(indexable('😀 … \0'))).toBe(0);
  });

  it('are found at their places just as they are indexed, in any text without compatibility characters', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 60 }).map((any) => any.normalize('NFKC'));
    fc.assert(
      fc.property(text, (any) => {
        // An accent that stands alone is a place, but nothing is left of it.
        const placed = [...placedWords(any)].map(({ word }) => word).filter((word) => word !== '');
        expect(placed).toEqual(wordsOf(any));
      }),
      { numRuns: 500 },
    );
  });

  it('are counted alike in a document and in a question', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (any) => {
        expect(countWords(indexable(any))).toBe(wordsOf(any).length);
      }),
    );
  });

  it('are not cut where long texts are prepared in pieces', () => {
    const text = 'wörterbuch '.repeat(20_000);
    expect(countWords(indexable(text))).toBe(20_000);
  });
});

describe('a question', () => {
  it('asks for every word, and for quoted words together', () => {
    expect(readQuestion('red "green tea" blue-ish').match).toBe('"red" "green tea" "blue ish"');
    expect(readQuestion('検索').match).toBe('"検 索"');
  });

  it('never hands FTS5 anything but letters and digits in quotes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (any) => {
        const { match } = readQuestion(any);
        if (match !== undefined) expect(match).toMatch(/^"[\p{L}\p{N}\p{M} ]+"( "[\p{L}\p{N}\p{M} ]+")*$/u);
      }),
    );
  });

  it('without words asks for nothing', () => {
    expect(readQuestion(' "" * ( ').match).toBeUndefined();
  });
});

describe('a snippet', () => {
  it('shows the words asked for as they stand in the text', () => {
    const asked = readQuestion('GROSSE').highlights;
    const found = snippetOf(`${'filler '.repeat(100)}the Größe of <it>`, asked) ?? '';
    expect(found).toMatch(/^… filler .*the Größe of <it>$/);
    expect(marked(found, asked)).toMatch(/ the <mark>Größe<\/mark> of &lt;it&gt;$/);
  });

  it('marks each character of a Chinese phrase', () => {
    const asked = readQuestion('検索').highlights;
    expect(marked(snippetOf('中文検索です', asked) ?? '', asked)).toBe(
      '中文<mark>検</mark><mark>索</mark>です',
    );
  });

  it('is none where no word was found, and then the beginning stands for it', () => {
    expect(snippetOf('nothing here', new Set(['else']))).toBeUndefined();
    expect(snippetAt('short', 0)).toBe('short');
    expect(snippetAt('word '.repeat(200), 0)).toMatch(/^word .* …$/);
  });

  it('never cuts a pair of surrogates', () => {
    const found = snippetOf(`${'😀'.repeat(100)} tea ${'😀'.repeat(300)}`, new Set(['tea']));
    expect(found).not.toMatch(/\p{Cs}/u);
  });
});
