import { deflateSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { MEMBER_LIMITS, MemberBudget } from '../../src/content/readers/budget.js';
import { readDocument } from '../../src/content/readers/registry.js';
import { docx, eml, pdf, pdfOfObjects } from './documents.js';

type File = readonly [name: string, content: string | Uint8Array];

/** Makes a PDF of one page, with files that are attached to it, and one in a comment. */
function pdfWithFiles(text: string, files: readonly File[], comment?: File): Uint8Array {
  const all = comment === undefined ? files : [...files, comment];
  const streamOf = (i: number) => 7 + i;
  const specification = ([name]: File, i: number) =>
    `<< /Type /Filespec /F (${name}) /UF (${name}) /EF << /F ${streamOf(i)} 0 R >> >>`;
  const tree = files.map((file, i) => `(${i}) ${specification(file, i)}`).join(' ');
  const annotation =
    comment === undefined
      ? ''
      : `/Annots [<< /Type /Annot /Subtype /FileAttachment /Rect [0 0 9 9] /FS ${specification(comment, files.length)} >>]`;
  const content = `BT /F1 12 Tf 72 720 Td (${text}) Tj ET`;
  return pdfOfObjects([
    [`<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [${tree}] >> >> >>`],
    ['<< /Type /Pages /Count 1 /Kids [5 0 R] >>'],
    ['<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'],
    ['<< /Title (Minutes) >>'],
    [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents 6 0 R ${annotation} >>`,
    ],
    [`<< /Length ${content.length} >>\nstream\n${content}\nendstream`],
    ...all.map(([, bytes]) => {
      const packed = deflateSync(bytes);
      const head = `<< /Type /EmbeddedFile /Filter /FlateDecode /Length ${packed.length} >>`;
      return [`${head}\nstream\n`, packed, '\nendstream'];
    }),
  ]);
}

const key = `-----BEGIN PRIVATE KEY-----\n${'abcd'.repeat(20)}\n`;

it('has the texts of attached files under their names, and keeps secrets out', async () => {
  const bytes = pdfWithFiles(
    'words on the page',
    [
      ['invoice.xml', '<total>12</total>'],
      ['letter.docx', docx('attached words')],
      ['latin.txt', Buffer.from('Gr\xfc\xdfe', 'latin1')],
      ['page.html', '<title>Elm</title><p>under the elm'],
      ['photo.bin', Buffer.from([0, 1, 2, 3])],
      ['key.txt', key],
      ['.env', 'PASSWORD=hidden'],
    ],
    ['remark.txt', 'in a comment'],
  );
  const read = await readDocument(bytes, 'a.pdf');
  expect(read?.text).toBe('words on the page');
  expect(read?.attached).toBe(
    [
      'remark.txt\nin a comment',
      'invoice.xml\n<total>12</total>',
      'letter.docx\nMinutes & more\nattached words\nleft\tright\nbelow\na footnote',
      'latin.txt\nGrüße',
      'page.html\nElm\nunder the elm',
      'photo.bin',
      'key.txt\n(a secret, which is kept out)',
      '.env\n(a secret, which is kept out)',
    ].join('\n\n'),
  );
});

it('has none if there are none, or only the beginning is read', async () => {
  expect((await readDocument(pdf('words'), 'a.pdf'))?.attached).toBeUndefined();
  const bytes = pdfWithFiles('words', [['a.txt', 'attached']]);
  const begin = await readDocument(bytes, 'a.pdf', { enoughCharacters: 100 });
  expect([begin?.text, begin?.attached]).toEqual(['words', undefined]);
});

it('has them in the text where the PDF is nested in another document', async () => {
  const bytes = pdfWithFiles('words on the page', [['a.txt', 'attached']]);
  const message = eml('words', { name: 'in.pdf', bytes });
  expect((await readDocument(message, 'a.eml'))?.text).toMatch(
    /words\n\nin\.pdf\nMinutes\nwords on the page\n\na\.txt\nattached$/,
  );
});

it('has a PDF in a PDF, to a depth of 3', async () => {
  let bytes = pdfWithFiles('innermost', []);
  for (let depth = 4; depth > 0; depth -= 1)
    bytes = pdfWithFiles(`a page of level ${depth}`, [[`${depth}.pdf`, bytes]]);
  const read = await readDocument(bytes, 'a.pdf');
  expect(`${read?.text} ${read?.attached}`.match(/level \d|innermost/g)).toEqual([
    'level 1',
    'level 2',
    'level 3',
    'level 4',
  ]);
  expect(read?.found?.leftOut).toBe('Attachments within 3 others give only their names.');
});

it.each([
  ['text', { textBytes: 20 }, 'There are more than 20 B of text.'],
  ['files', { members: 1 }, 'There are more than 1 file.'],
] as const)('is limited like an archive: %s', async (_, limits, leftOut) => {
  const budget = new MemberBudget({ ...MEMBER_LIMITS, ...limits });
  const bytes = pdfWithFiles('words on the page', [
    ['a.txt', 'attached'],
    ['b.txt', 'attached too'],
  ]);
  const read = await readDocument(bytes, 'a.pdf', { budget });
  expect(read?.attached).toMatch(/a\.txt\nattached[\s\S]*A part is left out here\./);
  expect(read?.found?.leftOut).toBe(leftOut);
});

it('leaves the files of a large PDF out, and says so', async () => {
  const large = Buffer.concat([
    pdfWithFiles('words on the page', [['a.txt', 'attached']]),
    Buffer.alloc(33 * 2 ** 20, '% '),
  ]);
  const read = await readDocument(large, 'a.pdf');
  expect([read?.text, read?.attached]).toEqual(['words on the page', undefined]);
  expect(read?.found?.leftOut).toBe('Files in a PDF of more than 32 MiB are left out.');
});
