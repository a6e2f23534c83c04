import { deflateSync, gzipSync } from 'node:zlib';
import { zipSync } from 'fflate';
import { declaring, docx, eml, epub, pdfOf, xlsx, zipped } from '../content/documents.js';
import { tarMember } from '../content/tar.js';

const MB = 1_000_000;

/** A document in an e-mail in an e-mail and so on. */
function nested(bytes: Uint8Array, name: string, depth: number): Uint8Array {
  const message = eml(`depth ${depth}`, { name, bytes });
  return depth === 0 ? message : nested(message, 'in.eml', depth - 1);
}

/** A PDF of the given objects, which may refer to themselves and to each other in circles. */
function pdfObjects(...objects: readonly string[]): Uint8Array {
  const body = objects.map((object, i) => `${i + 1} 0 obj\n${object}\nendobj\n`).join('');
  return Buffer.from(
    `%PDF-1.4\n${body}trailer << /Size ${objects.length + 1} /Root 1 0 R >>\n%%EOF\n`,
    'latin1',
  );
}

/** A workbook whose cells all show one long text. */
function repeatingSheet(cells: number, length: number): Uint8Array {
  const cell = '<c t="s"><v>0</v></c>';
  return zipped({
    '[Content_Types].xml': '<Types/>',
    'xl/workbook.xml':
      '<workbook><sheets><sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>',
    'xl/sharedStrings.xml': `<sst><si><t>${'word '.repeat(length / 5)}</t></si></sst>`,
    'xl/worksheets/sheet1.xml': `<worksheet><sheetData><row>${cell.repeat(cells)}</row></sheetData></worksheet>`,
  });
}

/** Entities that stand for ten of the entity before each. */
function laughing(): string {
  const entities = Array.from(
    { length: 12 },
    (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`,
  );
  return `<!DOCTYPE x [<!ENTITY l0 "ha">${entities.join('')}]><w:document><w:t>&l12;</w:t></w:document>`;
}

/** An archive of archives and so on, each with ten of the next, and 30 MB in the innermost. */
function nestedArchives(mark: string, depth: number): Uint8Array {
  const within =
    depth === 0 ? Buffer.alloc(30 * MB, `${mark} lies `) : nestedArchives(mark, depth - 1);
  const name = depth === 0 ? 'a.txt' : 'in.zip';
  return zipSync(
    Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`${i}-${name}`, within])),
  );
}

/** Repeats a member without content a million times. */
function manyMembers(name: string): Uint8Array {
  const member = Buffer.concat(tarMember({ name }));
  return gzipSync(Buffer.alloc(1_000_000 * member.length, member), { level: 1 });
}

/**
 * Documents that are made to take all memory or all time of what reads them, by name.
 *
 * @param round makes the content of each round another one
 */
export function bombs(round: number): Readonly<Record<string, Uint8Array>> {
  const zeros = deflateSync(Buffer.alloc(1_000 * MB), { level: 9 });
  const mark = `round ${round} `;
  const all: Record<string, Uint8Array> = {
    'declared.docx': declaring(docx(mark), 'word/document.xml', 1_000 * MB),
    'lying.docx': declaring(
      zipped({ 'word/document.xml': `${mark}${'lies '.repeat(10 * MB)}` }),
      'word/document.xml',
      100,
    ),
    'unclosed.docx': zipped({
      'word/document.xml': `${mark}${'<w:p><w:r>'.repeat(4 * MB)}<w:t>deep</w:t>`,
    }),
    'attributes.docx': zipped({
      'word/document.xml': `<w:p ${`a${round}="b" `.repeat(5 * MB)}><w:t>deep</w:t>`,
    }),
    'entities.docx': zipped({ 'word/document.xml': `${laughing()}<!-- ${mark} -->` }),
    'text.docx': zipped({ 'word/document.xml': `<w:t>${mark}${'a '.repeat(60 * MB)}</w:t>` }),
    'paragraphs.odt': zipped({ 'content.xml': `${mark}${'<text:p>one'.repeat(4 * MB)}` }),
    'book.epub': epub(
      ...Array.from({ length: 12 }, (_, i) => `${mark}${i} ${'page '.repeat(5 * MB)}`),
    ),
    'tags.eml': eml(`${mark}${'<i>'.repeat(6 * MB)}`, { name: 'a.txt', bytes: Buffer.from('a') }),
    'page.pdf': pdfOf(zeros, `/Filter /FlateDecode /Round ${round}`),
    'twice.pdf': pdfOf(deflateSync(zeros), `/Filter [/FlateDecode /FlateDecode] /Round ${round}`),
    'circle.pdf': pdfObjects(
      `<< /Type /Catalog /Pages 2 0 R /Round ${round} >>`,
      '<< /Type /Pages /Count 1000000000 /Kids [2 0 R 2 0 R 2 0 R] /Parent 2 0 R >>',
    ),
    'forms.pdf': pdfOf(
      Buffer.from('/F Do '.repeat(200_000)),
      `/Resources << /XObject << /F 6 0 R >> >> /Round ${round}`,
    ),
    'groups.rtf': Buffer.from(`{\\rtf1 ${mark}${'{'.repeat(20 * MB)}`),
    'words.rtf': Buffer.from(`{\\rtf1 ${mark}${'\\par word'.repeat(8 * MB)}}`),
    'nested.eml': nested(declaring(docx(mark), 'word/document.xml', 1_000 * MB), 'bomb.docx', 12),
    'parts.eml': Buffer.from(
      `Content-Type: multipart/mixed; boundary=x\r\n\r\n${`--x\r\n\r\n${mark}\r\n`.repeat(MB)}--x--\r\n`,
    ),
    'header.eml': Buffer.from(
      `Subject: ${`${mark}=?utf-8?q?=41?= `.repeat(2 * MB)}\r\n\r\n${mark}`,
    ),
    'cells.xlsx': xlsx(Array.from({ length: 500_000 }, (_, i) => `${mark}cell${i}`)),
    'repeated.xlsx': repeatingSheet(MB, MB + round * 5),
    'nested.zip': nestedArchives(mark, 3),
    'many.tar.gz': manyMembers(mark),
    'folder.mbox': Buffer.from(`From ${mark}\nSubject: a\n\n`.repeat(MB / 2)),
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, bytes]) => [`${round}-${name}`, bytes]),
  );
}
