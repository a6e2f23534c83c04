import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fingerprintNow } from '../../src/content/reader.js';
import { type Encoding, fileStat } from '../../src/lib/file.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import { packDocument, rewritten, wayOf } from '../../src/uplink/documents.js';
import { temporaryDirectory } from '../support/temp.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const yacyWay = (path: string, encoding: Encoding = 'utf-8', begin = 'some words') =>
  wayOf(path, encoding, bytes(begin), DIALECTS.yacy.content);
const typeOf = (path: string, begin?: string) => yacyWay(path, 'utf-8', begin).type;
const rewrittenAs = (kind: 'plain' | 'html', file: Uint8Array, encoding: Encoding = 'utf-8') =>
  rewritten(file, yacyWay(kind === 'plain' ? 'a.txt' : 'a.html', encoding).rewriting);
const as = (kind: 'plain' | 'html', text: string) =>
  Buffer.from(rewrittenAs(kind, Buffer.from(text))).toString();
const plain = (text: string) => as('plain', text);

describe('a peer that takes only text', () => {
  it('gets it in UTF-8, and no type', () => {
    const way = (encoding: Encoding) => wayOf('a.html', encoding, bytes('<'), DIALECTS.standard.content);
    expect(way('utf-8')).toMatchObject({ type: '', rewriting: undefined });
    const utf16 = Buffer.from('\ufeff<b>ü', 'utf16le');
    expect(Buffer.from(rewritten(utf16, way('utf-16le').rewriting)).toString()).toBe('<b>ü');
  });
});

it('a document becomes a page, in which windows-1252 is no ISO 8859-1', async () => {
  const file = join(temporaryDirectory(), 'a.rtf');
  writeFileSync(file, "{\\rtf1\\ansi \\'93a < b\\'94 \\'80\\par c}");
  const found = fingerprintNow({ file, stat: fileStat(statSync(file)) });
  if (found.kind !== 'version') throw new Error(`the file is ${found.kind}`);
  const packed = await packDocument({ file, version: found.version, rules: DIALECTS.standard.content });
  if (packed.kind !== 'content' || !('encoded' in packed.text)) throw new Error(`it is ${packed.kind}`);
  const page = new URLSearchParams(`page=${Buffer.from(packed.text.encoded)}`).get('page');
  expect(page).toContain('<p>“a &lt; b” €<br>\nc</p>');
});

describe('a peer that takes files gets', () => {
  it.each(
    'a.txt a.md a.json src/a.ts a.csv a.log a.xml feed.rss Makefile a.yaml a.svg a.rtf x/html'.split(' '),
  )('text without a parser of its own as plain text: %s', (path) => {
    const { type, rewriting } = yacyWay(path, 'utf-8', '<html>'.repeat(path === 'a.txt' ? 1 : 0));
    expect(type).toBe('text/plain; charset=UTF-8');
    expect(Buffer.from(rewritten(bytes('<'), rewriting)).toString()).toBe('‹');
  });

  it('pages as pages, also without an ending, in the encoding that they name or in UTF-8', () => {
    const type = 'text/html; charset=UTF-8';
    expect(typeOf('a.html', '')).toBe(type);
    expect(yacyWay('a.htm', 'utf-16le', '').type).toBe(type);
    expect(yacyWay('a.html', 'windows-1252', '').type).toBe('text/html');
    expect(typeOf('page', '\xef\xbb\xbf\n<!DOCTYPE html><p>')).toBe('text/html; charset=UTF-8');
    expect(typeOf('old.doc', '<html><body>')).toBe('text/html; charset=UTF-8');
    expect(typeOf('lesson.txt', '<html><body>')).toBe('text/plain; charset=UTF-8');
  });

  it.each([
    ['a.pdf', '%PDF-1.4', 'application/pdf'],
    ['paper', '%PDF-1.7', 'application/pdf'],
    ['wrong.txt', '%PDF-1.7', 'application/pdf'],
    ['a.png', '\x89PNG\r\n\x1a\n', 'image/png'],
    ['photo.dat', '\xff\xd8\xff\xe0', 'image/jpeg'],
    ['a.docx', 'PK\x03\x04', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['a.odt', 'PK\x03\x04', 'application/vnd.oasis.opendocument.text'],
    ['letter.doc', '{\\rtf1 ', 'application/rtf'],
    ['a.txt', '%!PS-Adobe', 'application/postscript'],
    ['photo.txt', 'PK\x03\x04', 'application/zip'],
    ['a.doc', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/msword'],
    ['a.xls', '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/vnd.ms-excel'],
    ['bundle', 'PK\x03\x04', 'application/zip'],
    ['a.txt', '\x00\x01', 'application/octet-stream'],
    ['unknown', '\x00\x01', 'application/octet-stream'],
  ])('%s that begins with %j as it is, as %s', (path, begin, type) => {
    expect(yacyWay(path, 'binary', begin)).toEqual({ type, rewriting: undefined, words: undefined });
  });
});

describe('plain text for YaCy, which reads it as HTML', () => {
  it.each([
    ['a < b and c > d', 'a ‹ b and c › d'],
    ['Map<string, number> größer 東京', 'Map‹string, number› größer 東京'],
    ['1 &lt; 2, &#60;b&#062; &#x3C; &amp;lt; &LT; &amp;amp;gt;', '1 ‹ 2, ‹b› ‹ ‹ ‹ ›'],
    ['&#0060;&#x0003c;&#x3E;&GT;', '‹‹››'],
    ['&#38;lt; &#x26;', '＆lt; ＆'],
    ['&uuml; &amp;uuml; &#228; &copy;', '&uuml; &amp;uuml; &#228; &copy;'],
    ['R&D costs; a && b; &ltimes; Q&amp;A; &lt x', 'R＆D costs; a ＆＆ b; ＆ltimes; Q＆A; ＆lt x'],
    ['&#xzz; &#; &;', '＆#xzz; ＆#; ＆;'],
    ['a\0b\x01c\x1b[1md\x7fe\x85f', 'a b c [1md e f'],
    ['tab\tline\nfeed\x0b\x0c\r\b.', 'tab\tline\nfeed\x0b\x0c\r\b.'],
    ['&#7;&#27;&#128;x', '   x'],
    ['\ufeffmarked \ufeff within', 'marked \ufeff within'],
    ['\ufffe \uffff &#65535; &#xfffe; &#xFFFF;', '\ufffd \ufffd \ufffd \ufffd \ufffd'],
    ['&#65596; &#128512; &#x1fffe; &#xd800;', '\u{1003c} 😀 \u{1fffe} \ufffd'],
    ['‹ › " \' 😀 \u00ad\u200b\ufffd\u{1fffe} â€“ Â ï', '‹ › " \' 😀 \u00ad\u200b\ufffd\u{1fffe} â€“ Â ï'],
  ])('%j becomes %j', (text, safe) => {
    expect(plain(text)).toBe(safe);
  });

  it('is the same in pieces of any size as in one, from any encoding', () => {
    const some = [
      '<',
      '&',
      'l',
      't',
      ';',
      '#60;',
      '#xffff;',
      'amp;',
      'ü',
      '&lt;',
      '\uffff',
      '\ufeff',
      '\x85',
    ];
    const text = fc.string({ unit: fc.constantFrom(...some) });
    fc.assert(
      fc.property(
        text,
        fc.nat({ max: 40 }),
        fc.constantFrom<Encoding>('utf-8', 'utf-16le'),
        fc.constantFrom('plain', 'html'),
        (words, cut, encoding, kind) => {
          const file = encoding === 'utf-8' ? Buffer.from(words) : Buffer.from(`\ufeff${words}`, 'utf16le');
          const way = yacyWay(kind === 'plain' ? 'a.txt' : 'a.html', encoding).rewriting;
          const pieces = [file.subarray(0, cut), file.subarray(cut)].map(
            (piece) => way?.piece(piece) ?? piece,
          );
          const inPieces = Buffer.concat([...pieces, way?.end() ?? Buffer.alloc(0)]).toString();
          expect(inPieces).toBe(as(kind, words));
        },
      ),
    );
  });

  it('that has nothing of the kind is the file itself', () => {
    const file = Buffer.from('nothing special, é – 3');
    expect(rewrittenAs('plain', file)).toBe(file);
  });
});

describe('HTML for YaCy', () => {
  it('loses what would end an update of the index, and keeps all else', () => {
    const page = '<p title="a &lt; b">&uuml; &amp; \x01 \x85 R&D</p>';
    expect(as('html', page)).toBe(page);
    expect(as('html', 'a\ufffeb\uffffc &#65535; &#xFFFE; &amp;#xfffe;')).toBe(
      'a\ufffdb\ufffdc &#65533; &#65533; &#65533;',
    );
    const eightBits = rewrittenAs('html', Buffer.from('Gr\xfc\xdfe &#65535;', 'latin1'), 'windows-1252');
    expect(Buffer.from(eightBits)).toEqual(Buffer.from('Gr\xfc\xdfe &#65533;', 'latin1'));
  });
});
