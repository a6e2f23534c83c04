import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import { resolutionOf } from '../../src/content/helpers/ocr.js';
import { ocrPage, ocrWords } from '../../src/content/helpers/ocr-text.js';
import { ShortageError } from '../../src/content/helpers/tools.js';
import { PageStore } from '../../src/content/page-store.js';
import type { PageProgress } from '../../src/content/readers/document-reader.js';
import { readDocument } from '../../src/content/readers/registry.js';
import { pageList } from '../../src/content/readers/scan.js';
import { FakeOcr, OCR, toolsWith } from '../support/ocr-programs.js';
import { Random } from '../support/random.js';
import { temporaryDirectory } from '../support/temp.js';
import { oneColumn, pdfOfPages, pictureOf } from './corpus/pages.js';
import { type Picture, turned } from './corpus/pictures.js';
import { distinctWords, sentences } from './corpus/sentences.js';
import { eml, pdf } from './documents.js';

/** The least share of words that are found in a clean scan of 300 dpi. */
const CLEAN = 0.95;

const textOf = (seed: number) => sentences('en', new Random(seed)).join(' ');
const white = ({ height, width }: Picture): Picture => ({
  height,
  width,
  pixels: Buffer.alloc(width * height, 255),
});

/** Returns the share of the words of a text that are in another one. */
function shareOf(text: string, read: string | undefined): number {
  const words = distinctWords(text);
  const found = new Set(distinctWords(read ?? ''));
  return words.filter((word) => found.has(word)).length / words.length;
}

describe.skipIf(OCR === undefined)('a scan', () => {
  const programs = { ...(OCR && { ocr: OCR }) };
  const read = async (bytes: Uint8Array) =>
    await readDocument(bytes, 'a.pdf', { tools: toolsWith(programs) });

  it('is read page by page: those without text by OCR, if there is something on them', async () => {
    const [first, second] = [textOf(1), textOf(2)];
    const picture = pictureOf(oneColumn(second));
    const bytes = pdfOfPages([
      { text: oneColumn(first) },
      { picture },
      { picture: white(picture) },
      {},
    ]);
    const progress: (PageProgress | undefined)[] = [];
    const found = await readDocument(bytes, 'a.pdf', {
      tools: toolsWith(programs),
      onPage: (page) => progress.push(page),
    });
    expect(shareOf(`${first} ${second}`, found?.text)).toBeGreaterThan(CLEAN);
    expect(found).toMatchObject({ reader: 'PDF', found: { pages: 4, ocrPages: 1 } });
    expect(found?.found?.confidence).toBeGreaterThan(85);
    expect(found?.found).not.toHaveProperty('unreadPages');
    expect(progress).toEqual([1, 2, 3, 4].map((page) => ({ page, pages: 4 })));
  });

  it.each([1, 2, 3].filter(() => OCR?.findsRotation))(
    'is turned first: by %i quarters',
    async (quarters) => {
      const text = textOf(3);
      const picture = turned(pictureOf(oneColumn(text)), quarters);
      const found = await read(pdfOfPages([{ picture }]));
      expect(shareOf(text, found?.text)).toBeGreaterThan(CLEAN);
    },
  );

  it('has its lines and paragraphs, and words that are hyphenated at the end of a line', async () => {
    const lines = [
      'The careful manip-',
      'ulation of words.',
      '',
      'Another paragraph follows here.',
    ];
    const shown = lines.map((line) => `(${line}) Tj T*`).join(' ');
    const picture = pictureOf(`BT /F1 14 Tf 20 TL 72 700 Td ${shown} ET`);
    const found = await read(pdfOfPages([{ picture }]));
    expect(found?.text).toBe(
      'The careful manipulation of words.\n\nAnother paragraph follows here.',
    );
  });

  it('with a few characters of text, such as a number on each page, is read by OCR', async () => {
    const text = textOf(4);
    const bytes = pdfOfPages([
      { picture: pictureOf(oneColumn(text)), text: 'BT /F1 9 Tf 300 30 Td (Nr 417) Tj ET' },
    ]);
    const found = await read(bytes);
    expect(shareOf(`${text} 417`, found?.text)).toBeGreaterThan(CLEAN);
    expect(found?.text.match(/417/g)).toHaveLength(1);
  });

  it('may be drawn as shapes', async () => {
    // Letters of rectangles: x, y, width and height of each, in a grid of 3 by 5.
    const letters: Readonly<Record<string, string>> = {
      T: '0 4 3 1 1 0 1 5',
      H: '0 0 1 5 2 0 1 5 0 2 3 1',
      E: '0 0 1 5 0 0 3 1 0 2 3 1 0 4 3 1',
      L: '0 0 1 5 0 0 3 1',
      F: '0 0 1 5 0 2 3 1 0 4 3 1',
      I: '1 0 1 5',
    };
    const drawn = [...'THE LITTLE FELT HILT'].map((letter, i) => {
      const shape = (letters[letter] ?? '').replace(/(\d+ \d+ \d+ \d+) ?/g, '$1 re f ');
      return `q 1 0 0 1 ${4 * i} 0 cm ${shape}Q`;
    });
    const bytes = pdfOfPages([{ text: `q 5 0 0 5 72 600 cm ${drawn.join(' ')} Q` }]);
    expect((await read(bytes))?.text).toBe('THE LITTLE FELT HILT');
  });

  it('without a word has no text', async () => {
    const bytes = pdfOfPages([{ text: '0 0 612 396 re f' }, {}]);
    expect(await read(bytes)).toMatchObject({ text: '', found: { pages: 2 } });
  });
});

describe('pages', () => {
  const four = pdf('', '', 'a page with text', '');

  it('that take too long are left out, and recorded', async () => {
    const fake = new FakeOcr('if [ "$page" = 2 ]; then exec sleep 60; fi');
    const tools = fake.tools({ pageTimeoutMs: 1_500 });
    const read = await readDocument(four, 'a.pdf', { tools });
    expect(read).toMatchObject({
      text: 'Word1\n\na page with text\n\nWord4',
      found: {
        pages: 4,
        ocrPages: 2,
        confidence: 91,
        unreadPages: '2',
        leftOut: 'OCR of a page takes longer than 1s500ms.',
      },
    });
    expect(tools.needsRestart).toBe(true);
  });

  it('on which a program fails are recorded', async () => {
    const fake = new FakeOcr('if [ "$page" != 1 ]; then echo no such page >&2; exit 3; fi');
    const read = await readDocument(four, 'a.pdf', { tools: fake.tools() });
    expect(read).toMatchObject({
      text: 'Word1\n\na page with text',
      found: {
        unreadPages: '2, 4',
        leftOut: 'OCR of a page fails, because tesseract ended with code 3 (no such page).',
      },
    });
  });

  it('make a document unreadable if none is read', async () => {
    const failing = new FakeOcr('echo broken >&2; exit 3').tools();
    await expect(readDocument(pdf('', ''), 'a.pdf', { tools: failing })).rejects.toMatchObject({
      code: 'DOCUMENT_BROKEN',
    });
    const slow = new FakeOcr('exec sleep 60').tools({ pageTimeoutMs: 300 });
    await expect(readDocument(pdf(''), 'a.pdf', { tools: slow })).rejects.toMatchObject({
      code: 'DOCUMENT_TOO_LARGE',
      message: 'No text can be read from the file: OCR of a page takes longer than 300ms.',
    });
  });

  it('with nothing but a comment as text are read by OCR', async () => {
    const comment = '<< /Type /Annot /Subtype /Text /Rect [9 9 9 9] /Contents (Please check it) >>';
    const bytes = Buffer.from(pdf('')).toString('latin1');
    const commented = bytes.replace('/MediaBox', `/Annots [${comment}] /MediaBox`);
    const tools = new FakeOcr().tools();
    const read = await readDocument(Buffer.from(commented, 'latin1'), 'a.pdf', { tools });
    expect(read?.text).toBe('Word1\nPlease check it');
  });

  it('that are blank are not given to tesseract', async () => {
    const fake = new FakeOcr('', [1, 4]);
    const read = await readDocument(four, 'a.pdf', { tools: fake.tools() });
    expect(read).toMatchObject({ text: 'Word2\n\na page with text', found: { ocrPages: 1 } });
    expect(fake.calls).toHaveLength(1);
  });

  it('that are not drawn leave nothing behind for which a disk may become full', async () => {
    const fake = new FakeOcr();
    const seen = join(temporaryDirectory(), 'seen');
    const lines = `#!/bin/sh\nls *.probe >> ${seen} 2> /dev/null; echo page >> ${seen}\n`;
    writeFileSync(fake.ocr.pdftoppm ?? '', lines);
    await readDocument(pdf('', '', 'a page with text'), 'a.pdf', { tools: fake.tools() });
    expect(readFileSync(seen, 'utf8')).toBe('page\npage\n');
  });

  it.each(['', "printf 'P5\\n2 2\\n255\\n\\000\\377'"])(
    'that are not drawn whole (%s) are recorded, unless the disk is full',
    async (draw) => {
      const fake = new FakeOcr();
      const read = async (lines: string) => {
        writeFileSync(fake.ocr.pdftoppm ?? '', `#!/bin/sh\n${lines}\n`);
        return await readDocument(pdf('', 'a page with text'), 'a.pdf', { tools: fake.tools() });
      };
      expect(await read(draw)).toMatchObject({
        text: 'a page with text',
        found: { unreadPages: '1', leftOut: expect.stringContaining('pdftoppm: it drew nothing') },
      });
      // The first private file is the document, and the second one is written in vain.
      const isFull = read(`ln -s /dev/full scan-2.probe; ${draw}`);
      await expect(isFull).rejects.toBeInstanceOf(ShortageError);
      expect(fake.calls).toEqual([]);
    },
  );

  it('whose words are doubtful may be upside down', async () => {
    const fake = new FakeOcr(`confidence=20
      if [ "$page" = 1 ]; then confidence=90; fi
      case "$all" in *'--psm 1'*) [ "$page" = 2 ] && confidence=80;; esac
      printf '5\\t1\\t1\\t1\\t1\\t1\\t0\\t0\\t9\\t9\\t%s\\tPage%s\\n' $confidence "$page"; exit`);
    const read = async (findsRotation: boolean) => {
      const tools = fake.tools({ findsRotation });
      return (await readDocument(pdf('', '', ''), 'a.pdf', { tools }))?.text;
    };
    expect(await read(true)).toBe('Page1\n\nPage2');
    expect(fake.calls).toHaveLength(5);
    expect(await read(false)).toBe('Page1');
    expect(fake.calls).toHaveLength(8);
  });

  it('that were read are not read again', async () => {
    const store = new PageStore(join(temporaryDirectory(), 'extracts'));
    const fake = new FakeOcr('if [ "$page" = 2 ]; then exit 1; fi');
    const read = async (changed = {}) =>
      await readDocument(four, 'a.pdf', { tools: fake.tools(changed, store) });
    await read();
    expect(fake.calls).toHaveLength(3);
    // Only the page that could not be read is tried again.
    expect(await read()).toMatchObject({
      text: 'Word1\n\na page with text\n\nWord4',
      found: { ocrPages: 2, confidence: 91 },
    });
    expect(fake.calls).toHaveLength(4);
    // With another language or resolution, they have another text.
    await read({ languages: 'deu' });
    await read({ dpi: 200 });
    expect(fake.calls).toHaveLength(10);
  });

  it('are read up to a number, for a document with all those nested in it', async () => {
    const fake = new FakeOcr();
    const read = await readDocument(four, 'a.pdf', { tools: fake.tools({ maxPages: 2 }) });
    expect(read).toMatchObject({
      text: 'Word1\n\nWord2\n\na page with text',
      found: { ocrPages: 2, leftOut: 'OCR left out 1 page, because `documents.maxPages` is 2.' },
    });
    const letter = eml('words', { name: 'two.pdf', bytes: pdf('', '') });
    const zip = zipSync({ 'one.pdf': pdf(''), 'letter.eml': letter, 'last.pdf': pdf('') });
    expect(await readDocument(zip, 'a.zip', { tools: fake.tools({ maxPages: 3 }) })).toMatchObject({
      text: expect.stringMatching(
        /^one\.pdf\nMinutes\nWord1[\s\S]*Word1\n\nWord2\n\nlast\.pdf\nMinutes$/,
      ),
      found: { ocrPages: 3, leftOut: 'OCR left out 1 page, because `documents.maxPages` is 3.' },
    });
  });

  it('are not read if only the words of the document are counted', async () => {
    const fake = new FakeOcr();
    const tools = fake.tools();
    const read = await readDocument(pdf('', ''), 'a.pdf', { tools, enoughCharacters: 4_000 });
    expect(read?.text).toBe('');
    expect(fake.calls).toEqual([]);
  });

  it('of which OCR could not read some are counted for an archive', async () => {
    const fake = new FakeOcr('if [ "$page" = 2 ]; then exit 1; fi');
    const zip = zipSync({ 'a.pdf': pdf('', '') });
    const tools = fake.tools();
    expect(await readDocument(zip, 'a.zip', { tools })).toMatchObject({
      text: 'a.pdf\nMinutes\nWord1',
      found: { ocrPages: 1, leftOut: 'OCR could not read 1 page of the files in it.' },
    });
    expect([...tools.lacks]).toEqual(['time']);
  });
});

describe('without OCR', () => {
  const ocr = {
    tesseract: '/usr/bin/tesseract',
    languages: 'eng',
    findsRotation: false,
    dpi: 300,
    maxPages: 1_000,
    pageTimeoutMs: 60_000,
  };
  it.each([
    [{}, 'no OCR is installed', /apt-get install tesseract-ocr poppler-utils/],
    [{ noOcr: 'off' }, '`documents.ocr` is "off"', /^Set it to "auto"/],
    [{ noOcr: 'no language' }, 'no language of OCR is installed', /tesseract-ocr-eng/],
    [{ ocr }, 'pdftoppm is missing', /^Install it: `sudo apt-get install poppler-utils`/],
  ] as const)('a scan is named as one: %j', async (programs, missing, hint) => {
    const tools = toolsWith(programs);
    await expect(readDocument(pdf('', ''), 'a.pdf', { tools })).rejects.toMatchObject({
      code: 'NO_OCR',
      message: `The file is a scan, and ${missing}.`,
      hint: expect.stringMatching(hint),
    });
  });

  it('the pages with text are read, and the others are recorded', async () => {
    const tools = toolsWith({});
    const read = await readDocument(pdf('a page with text', '', '7', ''), 'a.pdf', { tools });
    expect([...tools.lacks]).toEqual(['ocr of pdf']);
    expect(read).toMatchObject({
      text: 'a page with text\n\n7',
      found: {
        pages: 4,
        unreadPages: '2-4',
        leftOut: 'Pages without text were not read, because no OCR is installed.',
      },
    });
  });

  it('a scan in an archive is named as one', async () => {
    const zip = zipSync({ 'a.pdf': pdf('') });
    const read = await readDocument(zip, 'a.zip');
    expect(read?.text).toBe('a.pdf\n(a scan, and no OCR is installed)');
  });

  it('that works, a scan is skipped', async () => {
    const fake = new FakeOcr(`echo "Tesseract couldn't load any languages!" >&2; exit 1`);
    for (const tools of [fake.tools(), fake.tools({ tesseract: '/no/tesseract' })])
      await expect(readDocument(pdf('', ''), 'a.pdf', { tools })).rejects.toMatchObject({
        code: 'NO_OCR',
        message: expect.stringMatching(
          /^The file is a scan, and OCR does not work: tesseract .*\)\.$/,
        ),
        hint: expect.stringMatching(/tesseract --list-langs/),
      });
    expect(fake.calls).toHaveLength(1);
  });
});

describe('the words of tesseract', () => {
  /** Returns a row of a word. @param place block, paragraph, line and word */
  const row = (place: string, confidence: number, word: string) =>
    ['5', '1', ...place.split('.'), '0', '0', '9', '9', confidence, word].join('\t');

  it('are joined to lines and paragraphs, and those that are hardly words are left out', () => {
    const rows = [
      'level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext',
      '1\t1\t0\t0\t0\t0\t0\t0\t2550\t3300\t-1\t',
      row('1.1.1.1', 96, 'The'),
      row('1.1.1.2', 80, 'price:'),
      row('1.1.2.1', 91, '€'),
      row('1.1.2.2', 12, '~;'),
      row('1.1.2.3', 95, ' '),
      row('1.1.2.4', 94, '12'),
      row('1.2.1.1', 90, 'Next'),
      row('2.1.1.1', 90, 'block'),
    ];
    expect(ocrPage(ocrWords(`${rows.join('\n')}\n`))).toEqual({
      text: 'The price:\n€ 12\n\nNext\n\nblock',
      words: 5,
      confidence: 90,
    });
    expect(ocrPage(ocrWords(''))).toEqual({ text: '', words: 0, confidence: 0 });
  });

  it('are left out on a photograph, except for those of a sign', () => {
    const found = [
      row('1.1.1.1', 20, 'ie'),
      row('1.1.1.2', 62, 'Pes'),
      row('1.1.1.3', 85, 'n'),
      row('2.1.1.1', 93, 'EXIT'),
      row('3.1.1.1', 31, 'oue'),
      row('3.1.1.2', 0, '—'),
      row('3.1.1.3', 2, 'aa'),
    ];
    const words = ocrWords(found.join('\n'));
    expect(ocrPage(words)).toEqual({ text: 'EXIT', words: 1, confidence: 93 });
  });

  it('have no blanks between them in scripts without any', () => {
    const words = ['日本', 'の', 'OCR', '東京', '한국', '서울'];
    const rows = words.map((word, i) => row(`1.1.1.${i + 1}`, 90, word));
    expect(ocrPage(ocrWords(rows.join('\n'))).text).toBe('日本の OCR 東京 한국 서울');
  });
});

it.each([
  [{ width: 595, height: 842 }, 300],
  // A0, 40 million pixels
  [{ width: 2384, height: 3370 }, 160],
  [{ width: 9999, height: 99 }, 235],
  [{ width: 1e9, height: 1e9 }, 1],
  [{ width: 0, height: 0 }, 300],
])('a large page is drawn in a lower resolution: %j in %i dpi', (size, dpi) => {
  expect(resolutionOf(size, 300)).toBe(dpi);
});

it.each([
  [[], ''],
  [[3], '3'],
  [[1, 2, 4, 7, 8, 9], '1-2, 4, 7-9'],
])('numbers of pages: %j', (numbers, text) => {
  expect(pageList(numbers)).toBe(text);
});
