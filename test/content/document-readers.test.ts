import { expect, it } from 'vitest';
import { readDocument } from '../../src/content/readers/registry.js';
import { cpuMs } from '../support/cpu.js';
import {
  CMR10,
  declaring,
  docx,
  eml,
  epub,
  openDocument,
  pdf,
  pdfOf,
  pptx,
  RYUMIN,
  rtf,
  xlsx,
  zipped,
} from './documents.js';
import { encoded } from './legacy-texts.js';

const AT = Date.parse('2025-02-03T04:05:06Z');
const OFFICE = { title: 'Minutes & more', author: 'Ada L.', date: AT, language: 'en-GB' };

it.each([
  [
    'a.docx',
    docx('Über <b> & c', 'second'),
    { reader: 'Word', text: 'Über <b> & c\nsecond\nleft\tright\nbelow\na footnote', ...OFFICE },
  ],
  [
    'a.pptx',
    pptx('first', ...Array(8).fill('more'), 'tenth'),
    {
      reader: 'PowerPoint',
      text: expect.stringMatching(/^first\nmore[\s\S]*more\ntenth\na note$/),
      ...OFFICE,
    },
  ],
  [
    'a.xlsx',
    xlsx(['oak', 'beech']),
    { reader: 'Excel', text: 'Prices\noak\tbeech\t12.5\ninline', ...OFFICE },
  ],
  [
    'a.odt',
    openDocument('text', 'one', 'two'),
    {
      reader: 'OpenDocument',
      text: 'one\ntwo\nleft\tright\nbelow',
      title: 'Minutes',
      author: 'Ada L.',
    },
  ],
  ['no ending', openDocument('spreadsheet', 'cell'), { reader: 'OpenDocument' }],
  ['a.odp', openDocument('presentation', 'slide'), { reader: 'OpenDocument' }],
  [
    'a.epub',
    epub('second', 'first'),
    { reader: 'EPUB', text: 'first\n\nsecond', title: 'A book', author: 'Ada L.', language: 'de' },
  ],
  [
    'a.rtf',
    rtf("Hello \\b bold\\b0 , caf\\'e9"),
    {
      reader: 'RTF',
      text: 'Hello bold, café\nПривет € Müller',
      title: 'Minutes',
      author: 'Ada L.',
    },
  ],
  [
    'b.rtf',
    Buffer.from("{\\rtf1\\ansicpg1251{\\info{\\title \\'cf\\'f0}}b}"),
    { title: 'Пр', text: 'b' },
  ],
  [
    'a.pdf',
    pdf('first page', 'second (page)'),
    {
      reader: 'PDF',
      text: 'first page\n\nsecond (page)',
      title: 'Minutes',
      author: 'Ada L.',
      language: 'en',
      date: AT - 3_600_000,
    },
  ],
  [
    'a.eml',
    eml('plain words'),
    {
      reader: 'e-mail',
      title: 'Brücke',
      author: 'Ada Lovelace <ada@example.org>',
      date: AT,
      text: expect.stringMatching(/To: bob@example.org\n\nplain words$/),
    },
  ],
  [
    'a.eml',
    eml('html words', { name: 'in.pdf', bytes: pdf('attached words') }),
    { text: expect.stringMatching(/html words\n\nin.pdf\nMinutes\nattached words$/) },
  ],
])('reads %s', async (name, bytes, expected) => {
  expect(await readDocument(bytes, name)).toMatchObject(expected);
});

it.each([
  ['a PDF that is cut', 'a.pdf', pdf('words').subarray(0, 300)],
  ['a document without its body', 'a.docx', zipped({ 'word/other.xml': '<x/>' })],
  ['an archive that is cut', 'a.docx', docx('words').subarray(0, 400)],
  ['RTF that is cut', 'a.rtf', Buffer.from('{\\rtf1 words')],
])('reports %s as damaged', async (_what, name, bytes) => {
  const broken = readDocument(bytes, name);
  await expect(broken).rejects.toMatchObject({
    code: 'DOCUMENT_BROKEN',
    message: expect.stringMatching(/^No text can be read from the file: .*[^.!?]\)?\.$/),
  });
});

it.each([
  ['a Word document with a password', 'a.docx', Buffer.from('d0cf11e0a1b11ae100', 'hex')],
  [
    'OpenDocument with a password',
    'a.odt',
    zipped({
      mimetype: 'application/vnd.oasis.opendocument.text',
      'content.xml': '',
      'META-INF/manifest.xml': '<manifest:encryption-data/>',
    }),
  ],
])('reports %s as encrypted', async (_what, name, bytes) => {
  await expect(readDocument(bytes, name)).rejects.toMatchObject({ code: 'DOCUMENT_ENCRYPTED' });
});

const word = (xml: string) => zipped({ 'word/document2.xml': xml });
const odt = (xml: string) =>
  zipped({ mimetype: 'application/vnd.oasis.opendocument.text', 'content.xml': xml });
const book = (page: string, name: string) =>
  zipped({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': '<rootfile full-path="OPS/book.opf"/>',
    'OPS/book.opf': `<opf:item id="a" href="../${name}"/><opf:itemref idref="a"/>`,
    [name]: page,
  });
const message = (type: string, body: string) =>
  Buffer.from(`From: a@b\nMIME-Version: 1.0\nContent-Type: ${type}\n\n${body}\n`);
const richText = (text: string) =>
  Buffer.from(
    `{\\rtf1\\ansicpg1251{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset204 B;}{\\f2 C;}}${text}}`,
  );

it.each([
  [
    'text boxes',
    word('<w:p><w:t>before</w:t><w:p><w:t>boxed</w:t></w:p><w:t>after</w:t></w:p>'),
    'before\nboxed\nafter',
  ],
  [
    'soft hyphens, how words are pronounced, tabs in headers, formulas',
    word(
      '<w:p><w:rt><w:t>kan</w:t></w:rt><w:t>im\u00adpor</w:t><w:ptab/><w:t>b</w:t><m:t>=c</m:t><toString/></w:p>',
    ),
    'impor\tb=c',
  ],
  [
    'notes and remarks in OpenDocument',
    odt(
      '<text:p>word<text:note-citation>1</text:note-citation><text:p>note</text:p>next<dc:date>2020</dc:date></text:p>',
    ),
    'word\nnote\nnext',
  ],
  ['elements with prefixes of a program’s own', odt('<ns0:p>a<ns0:tab/>b</ns0:p>'), 'a\tb'],
  [
    'sheets: prefixes, days, remarks',
    zipped({
      '[Content_Types].xml': '',
      'xl/workbook.xml': '<x:sheet name="S"/>',
      'xl/styles.xml':
        '<x:numFmt numFmtId="170" formatCode="dd/mm"/><x:cellXfs><x:xf/><x:xf numFmtId="170"/></x:cellXfs>',
      'xl/worksheets/sheet.xml':
        '<x:row><x:c s="1"><x:v>45429</x:v></x:c><x:c s="1"><x:v>45429.54513888889</x:v></x:c><x:c><x:v>7</x:v></x:c></x:row>',
      'xl/comments1.xml': '<comment><t>remark</t></comment>',
    }),
    'S\n2024-05-17\t2024-05-17 13:05\t7\nremark',
  ],
  [
    'books in XHTML, by any path',
    book('<html><head><title/><script/></head><p>in&shy;side', 'a.xml'),
    'inside',
  ],
  [
    'RTF: fonts without a code page, text boxes, notes, words that objects have',
    richText(
      "{\\f1 \\'cf}{\\f2 \\'cf}{\\f0 \\'e9}{\\*\\shpinst{\\sn x}{\\shptxt box}}a\\emspace b{\\footnote note}\\constructor c{\\u8364}d\\bin-6 e",
    ),
    'ППé\nbox\na b\nnote\nc€de',
  ],
  [
    'messages whose text is empty beside a page',
    message(
      'multipart/alternative; boundary=x',
      '--x\n\n\n--x\nContent-Type: text/html\n\n<p>page\n--x--',
    ),
    'From: a@b\n\npage',
  ],
  [
    'messages whose page says more than their text, in which addresses do not count',
    message(
      'multipart/alternative; boundary=x',
      `--x\n\nRead it at https://example.org/${'x'.repeat(90)}\n--x\nContent-Type: text/html\n\n<p>All the news of the week\n--x--`,
    ),
    'From: a@b\n\nAll the news of the week',
  ],
  [
    'messages whose text says more than their page',
    message(
      'multipart/alternative; boundary=x',
      '--x\n\nAll the news\n--x\nContent-Type: text/html\n\n<p>News\n--x--',
    ),
    'From: a@b\n\nAll the news',
  ],
  [
    'attached text that is declared as bytes, in an older encoding',
    message(
      'multipart/mixed; boundary=x',
      `--x\nContent-Type: application/octet-stream; name=a.txt\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n${Buffer.from('Gr\xfc\xdfe', 'latin1').toString('base64')}\n--x--`,
    ),
    'From: a@b\n\na.txt\nGrüße',
  ],
  [
    'attached text in an encoding that its part declares',
    message(
      'multipart/mixed; boundary=x',
      `--x\nContent-Type: text/plain; charset=utf-8\n\nbody\n--x\nContent-Type: text/plain; charset="ibm866";\n name="=?utf-8?b?0LAudHh0?="\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n${encoded('Все люди рождаются свободными', 'ibm866').toString('base64')}\n--x--`,
    ),
    'From: a@b\n\nbody\n\nа.txt\nВсе люди рождаются свободными',
  ],
  [
    'attached text whose declared encoding is another than its letters seem to have',
    message(
      'multipart/mixed; boundary=x',
      `--x\nContent-Type: text/plain; charset=iso-8859-2; name=a.txt\nContent-Disposition: attachment; filename=a.txt\nContent-Transfer-Encoding: base64\n\n${encoded('Łódź i Kraków', 'iso-8859-2').toString('base64')}\n--x--`,
    ),
    'From: a@b\n\na.txt\nŁódź i Kraków',
  ],
  [
    'attached text in an encoding that only another part declares',
    message(
      'multipart/mixed; boundary=x',
      `--x\nContent-Type: text/plain; charset=koi8-r\n\nbody\n--x\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment; filename=a.txt\nContent-Transfer-Encoding: base64\n\n${Buffer.from('Gr\xfc\xdfe', 'latin1').toString('base64')}\n--x--`,
    ),
    'From: a@b\n\nbody\n\na.txt\nGrüße',
  ],
  [
    'attached text in an encoding that nothing declares',
    message(
      'multipart/mixed; boundary=x',
      `--x\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment; filename=a.txt\nContent-Transfer-Encoding: base64\n\n${encoded('Все люди рождаются свободными и равными', 'ibm866').toString('base64')}\n--x--`,
    ),
    'From: a@b\n\na.txt\n(in an encoding that is not recognised)',
  ],
  [
    'attached messages without a name',
    message(
      'multipart/mixed; boundary=x',
      '--x\nContent-Type: message/rfc822\nContent-Disposition: attachment\n\nFrom: c@d\nSubject: Plan\n\nwithin\n--x--',
    ),
    'From: a@b\n\nPlan\nFrom: c@d\n\nwithin',
  ],
  [
    'attached text',
    message(
      'multipart/mixed; boundary=x',
      '--x\nContent-Type: text/csv; name=a.csv\nContent-Disposition: attachment\n\na,b\n--x--',
    ),
    'From: a@b\n\na.csv\na,b',
  ],
  [
    'mailboxes',
    Buffer.concat([Buffer.from('From a@b Mon\n'), message('text/plain', 'words')]),
    'From: a@b\n\nwords',
  ],
])('neither splits nor joins words: %s', async (_what, bytes, text) => {
  const name = bytes[0] === 0x50 ? 'a.docx' : 'a.eml';
  expect((await readDocument(bytes, name))?.text).toBe(text);
});

it('skips the remaining pages of a PDF once it has enough characters', async () => {
  const pages = pdf(...Array.from({ length: 9 }, (_, i) => `${'page '.repeat(10)}number${i}`));
  const read = await readDocument(pages, 'a.pdf', { enoughCharacters: 100 });
  expect(read?.text).toContain('number1');
  expect(read?.text).not.toContain('number8');
});

it.each(['Slide 1', 'Tabelle1', 'PowerPoint Presentation'])(
  'takes %j for no title',
  async (title) => {
    const bytes = zipped({
      'word/document2.xml': '<w:t>words</w:t>',
      'docProps/core.xml': `<dc:title>${title}</dc:title>`,
    });
    expect(await readDocument(bytes, 'a.docx')).toMatchObject({ text: 'words', title: undefined });
  },
);

it('leaves the names out that Excel gives to sheets, so that none is taken for a title', async () => {
  const bytes = zipped({
    'xl/workbook.xml': '<sheet name="Sheet1"/><sheet name="Sheet1 of May"/><sheet name="Лист2"/>',
    'xl/worksheets/sheet.xml': '<row><c t="str"><v>a cell</v></c></row>',
  });
  expect((await readDocument(bytes, 'a.xlsx'))?.text).toBe('Sheet1 of May\na cell');
});

it('reads a line with a million blanks quickly', async () => {
  const line = word(`<w:p><w:t>a${' '.repeat(1e6)}b</w:t></w:p>`);
  expect(await cpuMs(() => readDocument(line, 'a.docx'))).toBeLessThan(5_000);
});

it('does not read a file that is a document only by its name', async () => {
  expect(await readDocument(Buffer.from('no message\n'), 'a.eml')).toBeUndefined();
  expect(await readDocument(Buffer.from('just text'), 'a.docx')).toBeUndefined();
});

it('joins words that a PDF hyphenates at the ends of lines', async () => {
  const lines =
    'BT /F1 12 Tf 14 TL 72 720 Td (A manip-) Tj T* (ulation by North-) Tj T* (South) Tj ET';
  const read = await readDocument(pdfOf(Buffer.from(lines), ''), 'a.pdf');
  expect(read?.text).toBe('A manipulation by North-\nSouth');
});

it('makes letters of the ligatures of a PDF, and of the accents that TeX draws over letters', async () => {
  const words =
    '[(M\\177) 500 (unchen, \\030) 400 (ca, na\\177\\020ve) -400 (\\022a, geht\\023s, o\\036ce)]';
  const stream = Buffer.from(`BT /F1 12 Tf 72 720 Td ${words} TJ ET`);
  const textOf = async (producer: string) =>
    (await readDocument(pdfOf(stream, '', CMR10, producer), 'a.pdf'))?.text;
  expect(await textOf('pdfTeX-1.40.25')).toBe('München, ça, naïve à, gehtś, office');
  expect(await textOf('TextMaker')).toBe('M¨unchen, ¸ca, na¨ıve `a, geht´s, office');
});

it('joins words at a hyphen that is not the one of ASCII', async () => {
  const font = `/Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences [45 /hyphentwo] >>`;
  const stream = Buffer.from('BT /F1 12 Tf 14 TL 72 720 Td (A manip-) Tj T* (ulation) Tj ET');
  expect((await readDocument(pdfOf(stream, '', font), 'a.pdf'))?.text).toBe('A manipulation');
});

it.each([
  ["{\\title\\'dc{\\b ber} \\{us\\}}", 'Über {us}'],
  ['{\\*\\title \\u352?koda}', 'Škoda'],
  ['{\\title Folie 12}', undefined],
])('finds the title of RTF: %s', async (group, title) => {
  const bytes = Buffer.from(`{\\rtf1\\ansi{\\info{\\titlex no}${group}}words}`);
  expect((await readDocument(bytes, 'a.rtf'))?.title).toBe(title);
});

it('reads the comments of sheets where openpyxl writes them, and threads once', async () => {
  const workbook = { '[Content_Types].xml': '', 'xl/workbook.xml': '<sheet name="Sheet1"/>' };
  const sheet = { 'xl/worksheets/sheet1.xml': '<row><c><v>7</v></c></row>' };
  const comments = (name: string) => ({
    [name]: `<comments><authors><author>Ada</author><author>tc={8E2}</author></authors><commentList>
      <comment ref="A1" authorId="0"><text><r><t>a re</t></r><r><t>mark</t></r></text></comment>
      <comment ref="B1" authorId="1"><text><t>[Threaded comment] a question</t></text></comment></commentList></comments>`,
  });
  const textOf = async (parts: Readonly<Record<string, string>>) =>
    (await readDocument(zipped({ ...workbook, ...sheet, ...parts }), 'a.xlsx'))?.text;
  expect(await textOf(comments('xl/comments/comment1.xml'))).toBe(
    '7\na remark\n[Threaded comment] a question',
  );
  const threads = {
    'xl/threadedComments/threadedComment1.xml':
      '<ThreadedComments><threadedComment ref="B1"><text>a question</text></threadedComment><threadedComment ref="B1"><text>an answer</text></threadedComment></ThreadedComments>',
  };
  expect(await textOf({ ...comments('xl/comments1.xml'), ...threads })).toBe(
    '7\na remark\na question\nan answer',
  );
});

it('leaves out the names that a program gave to sheets', async () => {
  const sheet = (name: string) =>
    zipped({
      '[Content_Types].xml': '',
      'xl/workbook.xml': `<sheet name="${name}"/>`,
      'xl/worksheets/sheet1.xml': '<row><c><v>7</v></c></row>',
    });
  for (const name of ['Sheet1', 'Tabelle2', 'Лист1'])
    expect((await readDocument(sheet(name), 'a.xlsx'))?.text).toBe('7');
  expect((await readDocument(sheet('Budget 2024'), 'a.xlsx'))?.text).toBe('Budget 2024\n7');
});

it('reads a PDF whose fonts have the character encodings of Asian scripts', async () => {
  const bytes = pdfOf(Buffer.from('BT /F1 12 Tf 72 720 Td <93fa967b> Tj ET'), '', RYUMIN);
  expect((await readDocument(bytes, 'a.pdf'))?.text).toBe('日本');
});

/** Returns the PDF with the text of one of its pages damaged. */
function damaging(bytes: Uint8Array, page: number): Uint8Array {
  const damaged = Buffer.from(bytes);
  let at = -1;
  for (let i = 0; i < page; i += 1) at = damaged.indexOf('<< /Length ', at + 1);
  damaged.write('[[', at);
  return damaged;
}

it('reports each page of a PDF', async () => {
  let pages = 0;
  await readDocument(pdf('one', 'two', 'three'), 'a.pdf', {
    onPage: () => {
      pages += 1;
    },
  });
  expect(pages).toBe(3);
});

it('reads the other pages of a PDF with a damaged page', async () => {
  const bytes = damaging(pdf('first page', 'second page', 'third page'), 2);
  expect((await readDocument(bytes, 'a.pdf'))?.text).toBe('first page\n\nthird page');
});

it('reports a PDF as damaged if no page can be read', async () => {
  const broken = readDocument(damaging(pdf('', 'lost'), 2), 'a.pdf');
  await expect(broken).rejects.toMatchObject({ code: 'DOCUMENT_BROKEN' });
});

it('unpacks nothing of an archive that would fill the memory of its process', async () => {
  const large = declaring(docx('text'), 'word/document.xml', 200_000_001);
  await expect(readDocument(large, 'a.docx')).rejects.toMatchObject({
    code: 'DOCUMENT_TOO_LARGE',
    message: 'No text can be read from the file: it unpacks to more than 200 million bytes.',
  });
});
