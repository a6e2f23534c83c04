import { expect, it } from 'vitest';
import { readDocument } from '../../src/content/readers/readers.js';
import { docx, eml, epub, openDocument, pdf, pdfOf, pptx, RYUMIN, rtf, xlsx, zipped } from './documents.js';

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
      text: expect.stringMatching(/^first\na note\n\nmore[\s\S]*more\n\ntenth$/),
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
    { reader: 'OpenDocument', text: 'one\ntwo\nleft\tright\nbelow', title: 'Minutes', author: 'Ada L.' },
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
    { reader: 'RTF', text: 'Hello bold, café\nПривет € Müller', title: 'Minutes', author: 'Ada L.' },
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
])('says of %s that it is damaged', async (_what, name, bytes) => {
  await expect(readDocument(bytes, name)).rejects.toMatchObject({ code: 'DOCUMENT_BROKEN' });
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
])('says of %s that it is encrypted', async (_what, name, bytes) => {
  await expect(readDocument(bytes, name)).rejects.toMatchObject({ code: 'DOCUMENT_ENCRYPTED' });
});

it('does not read what only its name calls a document', async () => {
  expect(await readDocument(Buffer.from('no message\n'), 'a.eml')).toBeUndefined();
  expect(await readDocument(Buffer.from('just text'), 'a.docx')).toBeUndefined();
});

it('joins the words that a PDF divides at the ends of lines', async () => {
  const lines = 'BT /F1 12 Tf 14 TL 72 720 Td (A manip-) Tj T* (ulation by North-) Tj T* (South) Tj ET';
  const read = await readDocument(pdfOf(Buffer.from(lines), ''), 'a.pdf');
  expect(read?.text).toBe('A manipulation by North-\nSouth');
});

it('says of a PDF that its letters are not known, and does not take it for an empty one', async () => {
  const bytes = pdfOf(Buffer.from('BT /F1 12 Tf 72 720 Td <93fa967b> Tj ET'), '', RYUMIN);
  const expected = { message: expect.stringContaining('90ms-RKSJ-H') };
  await expect(readDocument(bytes, 'a.pdf')).rejects.toMatchObject(expected);
});
