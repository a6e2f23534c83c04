import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSameUrl } from '../../src/peer/answer.js';

describe('two URLs are the same', () => {
  it.each([
    ['https://h.example/a%20b', 'https://h.example/a b'],
    ['https://h.example/%C3%A4', 'https://h.example/ä'],
    ['https://h.example/%c3%a4', 'https://h.example/%C3%A4'],
    ['https://h.example/%7Ea%2D', 'https://h.example/~a-'],
    ['https://h.example/a%28b%29%27%21%2A', "https://h.example/a(b)'!*"],
    ['https://h.example/a%5Bb%5D', 'https://h.example/a[b]'],
    ['HTTPS://H.Example:443/a', 'https://h.example/a'],
    ['https://h.example/a#part', 'https://h.example/a'],
    ['https://h.example', 'https://h.example/'],
    ['file:///srv/a b.txt', 'file:///srv/a%20b.txt'],
    ['not a url', 'not a url'],
  ])('%s and %s', (a, b) => {
    expect(isSameUrl(a, b)).toBe(true);
  });

  it('however a name was escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (name) => {
        fc.pre(!/^\.{1,2}$|[\\/?#\t\n\r]|^\s|\s$/.test(name));
        const much = [...Buffer.from(name)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
        expect(
          isSameUrl(`https://h.example/d/${encodeURIComponent(name)}/f`, `https://h.example/d/${much}/f`),
        ).toBe(true);
      }),
    );
  });
});

describe('two URLs are not the same', () => {
  it.each([
    ['https://h.example/a', 'https://h.example/A'],
    ['https://h.example/a', 'http://h.example/a'],
    ['https://h.example/a', 'https://h.example/a/'],
    ['https://h.example/a%2Fb', 'https://h.example/a/b'],
    ['https://h.example/a%3Fb', 'https://h.example/a?b'],
    ['https://h.example/a%23b', 'https://h.example/a#b'],
    ['https://h.example/a%25b', 'https://h.example/a%b0'],
    ['https://h.example/a?x=1', 'https://h.example/a?x=2'],
    ['https://h.example/a?x=a%26b', 'https://h.example/a?x=a&b'],
    ['https://h.example:8443/a', 'https://h.example/a'],
    ['https://u@h.example/a', 'https://h.example/a'],
  ])('%s and %s', (a, b) => {
    expect(isSameUrl(a, b)).toBe(false);
  });
});
