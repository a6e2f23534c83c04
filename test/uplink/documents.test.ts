import { statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ExtractCache } from '../../src/content/extracts.js';
import { fingerprintNow } from '../../src/content/file-reader.js';
import { NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { type Encoding, fileStat } from '../../src/lib/file.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { ContentRules } from '../../src/peer/dialects/dialect.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { extractDocument } from '../../src/uplink/document-text.js';
import {
  type Packed,
  type Packers,
  type PackFile,
  pack,
  packAll,
} from '../../src/uplink/documents.js';
import { Extractor } from '../../src/uplink/extractor.js';
import { rewritten, uploadPlanOf } from '../../src/uplink/upload-plan.js';
import { docx, eml, epub, openDocument, pdf, pptx, rtf, xlsx } from '../content/documents.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const yacyWay = (path: string, encoding: Encoding = 'utf-8', begin = 'some words') =>
  uploadPlanOf(path, encoding, bytes(begin), DIALECTS.yacy.content);
const typeOf = (path: string, begin?: string) => yacyWay(path, 'utf-8', begin).type;
const rewrittenAs = (kind: 'plain' | 'html', file: Uint8Array, encoding: Encoding = 'utf-8') =>
  rewritten(file, yacyWay(kind === 'plain' ? 'a.txt' : 'a.html', encoding).rewriting);
const as = (kind: 'plain' | 'html', text: string) =>
  Buffer.from(rewrittenAs(kind, Buffer.from(text))).toString();
const plain = (text: string) => as('plain', text);

describe('a peer that takes only text', () => {
  it('gets text in UTF-8, without a media type', () => {
    const way = (encoding: Encoding) =>
      uploadPlanOf('a.html', encoding, bytes('<'), DIALECTS.standard.content);
    expect(way('utf-8').type).toBe('');
    const file = Buffer.from('nothing special, é – 3');
    expect(rewritten(file, way('utf-8').rewriting)).toBe(file);
    const utf16 = Buffer.from('\ufeff<b>ü', 'utf16le');
    expect(Buffer.from(rewritten(utf16, way('utf-16le').rewriting)).toString()).toBe('<b>ü');
  });
});

describe('a peer that takes files and does not read text as HTML', () => {
  const rules = { ...DIALECTS.yacy.content, readsTextAsHtml: false };
  const sentAs = (path: string, text: string) => {
    const { rewriting } = uploadPlanOf(path, 'utf-8', bytes(text), rules);
    return Buffer.from(rewritten(Buffer.from(text), rewriting)).toString();
  };

  it('gets plain text and HTML with their types and all their characters', () => {
    const text = 'a < b && b > c \uffff';
    expect(sentAs('a.txt', text)).toBe(text);
    expect(sentAs('a.html', `<p>${text}</p>`)).toBe(`<p>${text}</p>`);
    expect(uploadPlanOf('a.html', 'utf-8', bytes('<p>'), rules).type).toContain('text/html');
  });

  it('gets no terminal escape sequences, and HTML in UTF-8', () => {
    expect(sentAs('a.log', '\x1b[31mError\x1b[0m')).toBe('Error');
    const { rewriting } = uploadPlanOf('a.html', 'utf-16le', bytes('<p>'), rules);
    const sent = Buffer.from(rewritten(Buffer.from('<p>ü', 'utf16le'), rewriting)).toString();
    expect(sent).toBe('<p>ü');
  });
});

/** Texts with terminal escape sequences, and the same texts as terminals show them. */
const COLOURED: readonly (readonly [string, string])[] = [
  ['\x1b[31mError\x1b[0m: \x1b[1;38;5;208mdisk\x1b[m full', 'Error: disk full'],
  ['har\x1b[01;31m\x1b[Kbour\x1b[m\x1b[K', 'harbour'],
  ['one\x1b[2Ctwo\x1b[10;20Hthree\x1b[?25lfour', 'one two three four'],
  ['\x1b]8;;https://example.org/ü\x1b\\link\x1b]8;;\x1b\\ \x1b]0;a title\x07$ ls', 'link $ ls'],
  ['\x1b(B\x1b[mplain\x1b)0', 'plain'],
];
/** Text that only begins like a sequence: just the control character is removed. */
const NO_SEQUENCES: readonly (readonly [string, string])[] = [
  ['\x1bword \x1b[', ' word  ['],
  ['\x1b]no end\nnext', ' ]no end\nnext'],
  [`\x1b]${'a'.repeat(5_000)}\x07`, ` ]${'a'.repeat(5_000)}\x07`],
];

describe('coloured text', () => {
  it.each([...COLOURED, ...NO_SEQUENCES])(
    '%j is sent without escape sequences: %j',
    (text, shown) => {
      const { rewriting } = uploadPlanOf('a.log', 'utf-8', bytes(text), DIALECTS.standard.content);
      const sent = Buffer.from(rewritten(Buffer.from(text), rewriting)).toString();
      expect(sent.replaceAll('\x1b', ' ')).toBe(shown);
      expect(plain(text)).toBe(shown.replaceAll('\x07', ' '));
    },
  );

  it('loses its escape sequences within a document, too', async () => {
    const message = `From: a@b\nSubject: build\n\n${COLOURED.map(([text]) => text).join('\n')}\n`;
    expect(await pageFor('a.eml', message)).toContain(
      COLOURED.map(([, shown]) => shown).join('<br>\n'),
    );
  });
});

function versionOf(name: string, content: string | Uint8Array) {
  const file = join(temporaryDirectory(), name);
  writeFileSync(file, content);
  const found = fingerprintNow({ file, stat: fileStat(statSync(file)) });
  if (found.kind !== 'version') throw new Error(`the file is ${found.kind}`);
  return { file, version: found.version };
}

async function pageFor(name: string, content: string): Promise<string> {
  const order = {
    ...versionOf(name, content),
    rules: DIALECTS.standard.content,
    wanted: 'text',
    programs: NO_PROGRAMS,
  } as const;
  const found = await extractDocument(order);
  if (found.kind !== 'extracted') throw new Error(`it is ${found.kind}`);
  return Buffer.from(found.page?.bytes ?? []).toString();
}

/** Extracts a document, and packs it for the peer. */
async function packedDocument(
  file: Omit<PackFile, 'extract'>,
  asksForText: boolean,
  rules: ContentRules,
  read: Packers['extractDocument'] = extractDocument,
  programs: Programs = NO_PROGRAMS,
): Promise<Packed | undefined> {
  const clock = new FakeClock();
  const extracts = new ExtractCache(join(temporaryDirectory(), 'extracts'), clock, () => 1e9);
  const readers = { pack: async () => [], extractDocument: read, failure: undefined };
  const extractor = new Extractor({
    clock,
    extracts,
    log: silentLogger,
    programs: { current: programs },
    readers,
  });
  const { signal } = new AbortController();
  const found = await extractor.extract({ ...file, rules, asksForText }, signal);
  if (found.kind !== 'ready') return found;
  const files = [{ ...file, extract: found.extract }];
  const [packed] = await packAll(async (order) => pack(order), { rules, files });
  return packed;
}

function refusedBy(code: string): Awaited<ReturnType<Packers['extractDocument']>> {
  return { kind: 'refused', failure: { code, message: 'It is not read.', hint: '' } };
}

describe('a document for a peer that takes files', () => {
  const rules = DIALECTS.yacy.content;
  const words = 'one two three four five six seven eight nine ten eleven twelve';
  const packedAs = async (
    name: string,
    content: Uint8Array,
    asksForText = false,
    read: Packers['extractDocument'] = extractDocument,
    programs: Programs = NO_PROGRAMS,
  ) => {
    const file = versionOf(name, content);
    const packed = await packedDocument(file, asksForText, rules, read, programs);
    if (packed?.kind !== 'content') return packed?.kind;
    return `${packed.type.replace(/;.*/, '').replace(/.*\./, '')}, ${packed.words} words`;
  };

  it.each<[string, Uint8Array, string]>([
    ['a.eml', eml(words), 'text/html, 18 words'],
    ['a.epub', epub(words), 'text/html, 12 words'],
    ['a.xlsx', xlsx(words.split(' ')), 'text/html, 15 words'],
    ['a.pptx', pptx(words), 'text/html, 14 words'],
    ['no ending', pptx(words), 'text/html, 14 words'],
    ['a.docx', docx(words), 'document, 17 words'],
    ['a.odt', openDocument('text', words), 'text, 15 words'],
    ['a.rtf', rtf(words), 'application/rtf, 14 words'],
    ['a.pdf', pdf(words), 'application/pdf, 12 words'],
    ['long.pdf', pdf(...Array(9).fill(words.repeat(9))), 'application/pdf, 100 words'],
    // Its words are separated by other characters, too, and the peer counts blanks.
    ['asian.docx', docx('東京、大阪、京都、'.repeat(9)), 'document, 6 words'],
    ['broken.pdf', Buffer.from(pdf(words)).subarray(0, 200), 'application/pdf, undefined words'],
  ])(
    'is sent as text if the peer reads its kind badly, else unchanged with its words counted: %s',
    async (name, bytes, expected) => {
      expect(await packedAs(name, bytes)).toBe(expected);
    },
  );

  const OCR: Programs = {
    ...NO_PROGRAMS,
    ocr: {
      tesseract: '/bin/tesseract',
      pdftoppm: '/bin/pdftoppm',
      languages: 'eng',
      findsRotation: false,
      dpi: 300,
      maxPages: 10,
      pageTimeoutMs: 1_000,
    },
  };
  const page = { bytes: Buffer.from('<p>one'), extracted: { reader: 'PDF', words: 1 } };

  it('is not sent if its reader finds no word, because nobody would find it', async () => {
    const read = async () => ({ kind: 'extracted', words: 0 }) as const;
    expect(await packedAs('empty.docx', docx(''), false, read)).toBe('wordless');
  });

  it.each<[string, Awaited<ReturnType<Packers['extractDocument']>>, string]>([
    ['a scan as text', { kind: 'extracted', words: 1, page }, 'text/html, 1 words'],
    ['a PDF with text as it is', { kind: 'extracted', words: 12 }, 'application/pdf, 12 words'],
    [
      'a PDF that cannot be read as it is',
      refusedBy('DOCUMENT_BROKEN'),
      'application/pdf, undefined words',
    ],
    ['no PDF without a word', { kind: 'wordless', reader: 'PDF' }, 'wordless'],
    ['no PDF with blank pages only', { kind: 'extracted', words: 0 }, 'wordless'],
  ])('with OCR, the peer gets %s', async (_, found, expected) => {
    const asked: string[] = [];
    const read: Packers['extractDocument'] = async ({ wanted }) => {
      asked.push(wanted);
      return found;
    };
    expect(await packedAs('a.pdf', pdf(words), false, read, OCR)).toBe(expected);
    expect(asked[0]).toBe('textIfScanned');
  });

  it.each<[string, Awaited<ReturnType<Packers['extractDocument']>>, string]>([
    ['is not sent: its pages may have no word', { kind: 'extracted', words: 0 }, 'refused'],
    [
      'is sent as it is if it has words',
      { kind: 'extracted', words: 9 },
      'application/pdf, 9 words',
    ],
  ])('a PDF whose pages OCR cannot read %s', async (_, counted, expected) => {
    const read: Packers['extractDocument'] = async ({ wanted }) =>
      wanted === 'words' ? counted : refusedBy('DOCUMENT_TOO_LARGE');
    expect(await packedAs('a.pdf', pdf(words), false, read, OCR)).toBe(expected);
  });

  it('a scan waits for OCR if there is none', async () => {
    const packed = await packedDocument(
      versionOf('scan.pdf', pdf('')),
      false,
      rules,
      extractDocument,
    );
    expect(packed).toMatchObject({ kind: 'refused', failure: { code: 'NO_OCR' } });
  });

  const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex');
  it('an old document is sent as text if its program is installed, and as it is otherwise', async () => {
    const read: Packers['extractDocument'] = async ({ wanted }) => {
      expect(wanted).toBe('text');
      return { kind: 'extracted', words: 1, page };
    };
    const catdoc = { program: '/bin/catdoc', name: 'catdoc', args: [], output: 'text' } as const;
    const commands = { '.doc': catdoc };
    expect(await packedAs('a.doc', OLE, false, read, { ...NO_PROGRAMS, commands })).toBe(
      'text/html, 1 words',
    );
    expect(await packedAs('a.doc', OLE, false, read)).toBe('application/msword, undefined words');
    const broken = async () => refusedBy('DOCUMENT_BROKEN');
    expect(await packedAs('a.doc', OLE, false, broken, { ...NO_PROGRAMS, commands })).toBe(
      'application/msword, undefined words',
    );
  });

  it.each<[string, Uint8Array, string]>([
    ['a.doc', OLE, '.doc'],
    ['a.png', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'ocr'],
  ])('is sent as it is without its program, with a note of that: %s', async (name, bytes, lack) => {
    const packed = await packedDocument(versionOf(name, bytes), false, rules);
    expect(packed).toMatchObject({ kind: 'content', lacks: [lack] });
  });

  it('is read through a link if links are followed', async () => {
    const { file, version } = versionOf('a.docx', docx(words));
    const link = join(dirname(file), 'link.docx');
    symlinkSync(file, link);
    for (const asksForText of [false, true]) {
      const linked = { file: link, version, linksWithin: dirname(file) };
      const packed = await packedDocument(linked, asksForText, rules);
      expect(packed).toMatchObject({ kind: 'content', words: 17 });
    }
  });

  it('is sent as text if the folder asks for that', async () => {
    expect(await packedAs('a.docx', docx(words), true)).toBe('text/html, 17 words');
    expect(await packedAs('asian.docx', docx('東京、大阪、京都、'.repeat(9)), true)).toBe(
      'text/html, 6 words',
    );
  });

  it('whose reading takes too long is sent unchanged and uncounted, and is refused if it was to be text', async () => {
    const failure = { code: 'DOCUMENT_TOO_LARGE', message: 'It takes too long.', hint: '' };
    const slow = async () => ({ kind: 'refused', failure }) as const;
    expect(await packedAs('a.pdf', pdf(words), false, slow)).toBe(
      'application/pdf, undefined words',
    );
    expect(await packedAs('a.xlsx', xlsx([words]), false, slow)).toBe('refused');
  });
});

it('a document becomes an HTML page, and windows-1252 characters in it are not lost', async () => {
  const page = await pageFor('a.rtf', "{\\rtf1\\ansi \\'93a < b\\'94 \\'80\\par c}");
  expect(page).toContain('<p>“a &lt; b” €<br>\nc</p>');
});

it('a document without a blank in five million letters is read', async () => {
  const letters = '\u6f22'.repeat(5_000_000);
  expect(await pageFor('a.eml', `From: a@b\nSubject: all\n\n${letters}\n`)).toContain('\u6f22');
});

describe('a peer that takes files gets', () => {
  it.each(
    'a.txt a.md a.json src/a.ts a.csv a.log a.xml feed.rss Makefile a.yaml a.svg a.rtf x/html'.split(
      ' ',
    ),
  )('text without a parser of its own as plain text: %s', (path) => {
    const { type, rewriting } = yacyWay(path, 'utf-8', '<html>'.repeat(path === 'a.txt' ? 1 : 0));
    expect(type).toBe('text/plain; charset=UTF-8');
    expect(Buffer.from(rewritten(bytes('<'), rewriting)).toString()).toBe('‹');
  });

  it('HTML as HTML, even without an extension, in the encoding that it declares or in UTF-8', () => {
    const type = 'text/html; charset=UTF-8';
    expect(typeOf('a.html', '')).toBe(type);
    expect(yacyWay('a.htm', 'utf-16le', '').type).toBe(type);
    expect(yacyWay('a.html', 'windows-1252', '').type).toBe('text/html');
    expect(yacyWay('a.html', 'koi8-u', '').type).toBe('text/html');
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
    [
      'a.docx',
      'PK\x03\x04',
      'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    ],
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
    expect(yacyWay(path, 'binary', begin)).toEqual({
      type,
      rewriting: undefined,
      words: undefined,
    });
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
    ['a\0b\x01c\x1b[1md\x7fe\x85f', 'a b cd e f'],
    ['tab\tline\nfeed\x0b\x0c\r\b.', 'tab\tline\nfeed\x0b\x0c\r\b.'],
    ['&#7;&#27;&#128;x', '   x'],
    ['\ufeffmarked \ufeff within', 'marked \ufeff within'],
    ['\ufffe \uffff &#65535; &#xfffe; &#xFFFF;', '\ufffd \ufffd \ufffd \ufffd \ufffd'],
    ['&#65596; &#128512; &#x1fffe; &#xd800;', '\u{1003c} 😀 \u{1fffe} \ufffd'],
    [
      '‹ › " \' 😀 \u00ad\u200b\ufffd\u{1fffe} â€“ Â ï',
      '‹ › " \' 😀 \u00ad\u200b\ufffd\u{1fffe} â€“ Â ï',
    ],
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
      '\x1b',
      '\x1b[3',
      '1m',
      '\x1b]8;',
      '\x1b\\',
      '\x07',
    ];
    const text = fc.string({ unit: fc.constantFrom(...some) });
    fc.assert(
      fc.property(
        text,
        fc.nat({ max: 40 }),
        fc.constantFrom<Encoding>('utf-8', 'utf-16le'),
        fc.constantFrom('plain', 'html'),
        (words, cut, encoding, kind) => {
          const file =
            encoding === 'utf-8' ? Buffer.from(words) : Buffer.from(`\ufeff${words}`, 'utf16le');
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

  it('without markup is sent unchanged', () => {
    const file = Buffer.from('nothing special, é – 3');
    expect(rewrittenAs('plain', file)).toBe(file);
  });
});

describe('HTML for YaCy', () => {
  it('loses the characters that would end an index update, and keeps all others', () => {
    const page = '<p title="a &lt; b">&uuml; &amp; \x01 \x85 R&D</p>';
    expect(as('html', page)).toBe(page);
    expect(as('html', 'a\ufffeb\uffffc &#65535; &#xFFFE; &amp;#xfffe;')).toBe(
      'a\ufffdb\ufffdc &#65533; &#65533; &#65533;',
    );
    const eightBits = rewrittenAs(
      'html',
      Buffer.from('Gr\xfc\xdfe &#65535;', 'latin1'),
      'windows-1252',
    );
    expect(Buffer.from(eightBits)).toEqual(Buffer.from('Gr\xfc\xdfe &#65533;', 'latin1'));
  });
});
