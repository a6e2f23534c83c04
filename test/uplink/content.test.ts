import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Encoding } from '../../src/state/entry.js';
import { fileContent, textContent, treated, treating } from '../../src/uplink/content.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const typeOf = (path: string, begin = 'some words', encoding: Encoding = 'utf-8') =>
  fileContent(path, encoding, bytes(begin)).type;
const plain = (text: string) => Buffer.from(treated(Buffer.from(text), 'plain', 'utf-8')).toString();

describe('a peer that takes only text', () => {
  it('gets it in UTF-8, and no type', () => {
    expect(textContent('utf-8')).toEqual({ treatment: 'none', type: '' });
    expect(textContent('utf-16be')).toEqual({ treatment: 'utf-8', type: '' });
  });
});

describe('a peer that takes files gets', () => {
  it.each([
    'a.txt',
    'a.md',
    'a.json',
    'src/a.ts',
    'a.csv',
    'a.log',
    'a.xml',
    'feed.rss',
    'Makefile',
    'a.yaml',
    'x/html',
  ])('text without a parser of its own as plain text: %s', (path) => {
    expect(fileContent(path, 'utf-8', bytes('<html>'.repeat(path === 'a.txt' ? 1 : 0)))).toEqual({
      treatment: 'plain',
      type: 'text/plain; charset=UTF-8',
    });
  });

  it('pages as pages, also without an ending, in the encoding that they name or in UTF-8', () => {
    expect(fileContent('a.html', 'utf-8', bytes(''))).toEqual({
      treatment: 'none',
      type: 'text/html; charset=UTF-8',
    });
    expect(fileContent('a.htm', 'utf-16le', bytes(''))).toEqual({
      treatment: 'utf-8',
      type: 'text/html; charset=UTF-8',
    });
    expect(fileContent('a.html', 'windows-1252', bytes(''))).toEqual({
      treatment: 'none',
      type: 'text/html',
    });
    expect(typeOf('page', '\xef\xbb\xbf\n<!DOCTYPE html><p>')).toBe('text/html; charset=UTF-8');
    expect(typeOf('old.doc', '<html><body>')).toBe('text/html; charset=UTF-8');
    expect(typeOf('lesson.txt', '<html><body>')).toBe('text/plain; charset=UTF-8');
  });

  it('text with a parser of its own as it is, by its ending or its beginning', () => {
    expect(fileContent('a.rtf', 'utf-8', bytes('{\\rtf1 <'))).toEqual({
      treatment: 'none',
      type: 'application/rtf',
    });
    expect(typeOf('letter.doc', '{\\rtf1 ')).toBe('application/rtf');
    expect(typeOf('a.ps', '%!PS-Adobe')).toBe('application/postscript');
    expect(typeOf('a.svg', '<svg>')).toBe('image/svg+xml');
  });

  it.each([
    ['a.pdf', '%PDF-1.4', 'application/pdf'],
    ['paper', '%PDF-1.7', 'application/pdf'],
    ['wrong.txt', '%PDF-1.7', 'application/pdf'],
    ['a.png', '\x89PNG\r\n\x1a\n', 'image/png'],
    ['photo.dat', '\xff\xd8\xff\xe0', 'image/jpeg'],
    ['a.docx', 'PK\x03\x04', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['a.odt', 'PK\x03\x04', 'application/vnd.oasis.opendocument.text'],
    ['a.doc', '\xd0\xcf\x11\xe0', 'application/msword'],
    ['a.xls', '\xd0\xcf\x11\xe0', 'application/vnd.ms-excel'],
    ['bundle', 'PK\x03\x04', 'application/zip'],
    ['a.txt', '\x00\x01', 'application/octet-stream'],
    ['unknown', '\x00\x01', 'application/octet-stream'],
  ])('%s that begins with %j as it is, as %s', (path, begin, type) => {
    expect(fileContent(path, 'binary', bytes(begin))).toEqual({ treatment: 'none', type });
  });
});

describe('plain text for a parser that takes < for the beginning of a tag', () => {
  it('keeps every word, and has no <, however that is written', () => {
    expect(plain('a < b and c > d')).toBe('a ‹ b and c > d');
    expect(plain('Map<string, number> größer 東京')).toBe('Map‹string, number> größer 東京');
    expect(plain('1 &lt; 2, &#60;b&#062; &#x3C; &amp;lt; &LT; &amp; &ltimes; R&D')).toBe(
      '1 ‹ 2, ‹b&#062; ‹ ‹ ‹ &amp; &ltimes; R&D',
    );
  });

  it('is the same in pieces of any size as in one, from any encoding', () => {
    const text = fc.string({
      unit: fc.constantFrom('<', '&', 'l', 't', ';', '#60;', 'amp;', 'x', 'ü', '&lt;'),
    });
    fc.assert(
      fc.property(
        text,
        fc.nat({ max: 40 }),
        fc.constantFrom<Encoding>('utf-8', 'utf-16le'),
        (words, cut, encoding) => {
          const file = Buffer.from(
            encoding === 'utf-8' ? words : `\ufeff${words}`,
            encoding === 'utf-8' ? 'utf8' : 'utf16le',
          );
          const way = treating('plain', encoding);
          const pieces = [file.subarray(0, cut), file.subarray(cut)].map(
            (piece) => way?.piece(piece) ?? piece,
          );
          const inPieces = Buffer.concat([...pieces, way?.end() ?? Buffer.alloc(0)]).toString();
          expect(inPieces).toBe(plain(words));
          expect(inPieces).not.toMatch(/<|&(amp;)*lt;/);
        },
      ),
    );
  });

  it('that has nothing of the kind is the file itself', () => {
    const file = Buffer.from('nothing special, é > 3');
    expect(treated(file, 'plain', 'utf-8')).toBe(file);
  });
});
