import { describe, expect, it } from 'vitest';
import { isSigned, signedType } from '../../src/content/signatures.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');

type Entry = readonly [name: string, content: string];

/** Makes the beginning of a ZIP: stored entries, without checksums. */
function zip(...entries: readonly Entry[]): Buffer {
  return Buffer.concat(
    entries.map(([name, content]) => {
      const header = Buffer.alloc(30);
      header.write('PK\x03\x04', 'latin1');
      header.writeUInt32LE(content.length, 18);
      header.writeUInt32LE(content.length, 22);
      header.writeUInt16LE(name.length, 26);
      return Buffer.concat([header, Buffer.from(name + content)]);
    }),
  );
}

const ODT = 'application/vnd.oasis.opendocument.text';
const OFFICE = 'application/vnd.openxmlformats-officedocument';

describe('the type of a file by its first bytes', () => {
  it.each([
    ['%PDF-1.4\n', 'application/pdf'],
    ['\xef\xbb\xbf\n%PDF-1.4', 'application/pdf'],
    ['{\\rtf1\\ansi', 'application/rtf'],
    ['!<arch>\n', 'application/x-archive'],
    [`notes/a.txt${'\0'.repeat(246)}ustar`, 'application/x-tar'],
    ['%!PS-Adobe-3.0', 'application/postscript'],
    ['\x89PNG\r\n\x1a\n\0\0', 'image/png'],
    ['\xff\xd8\xff\xe0', 'image/jpeg'],
    ['GIF87a', 'image/gif'],
    ['GIF89a', 'image/gif'],
    ['II*\0', 'image/tiff'],
    ['MM\0*', 'image/tiff'],
    ['RIFF\x10\0\0\0WEBPVP8 ', 'image/webp'],
    ['7z\xbc\xaf\x27\x1c', 'application/x-7z-compressed'],
    ['\xfd7zXZ\0', 'application/x-xz'],
    ['\x1f\x8b\x08', 'application/gzip'],
    ['BZh91AY&SY', 'application/x-bzip2'],
    ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/msword'],
  ])('%j is %s', (begin, type) => {
    expect(isSigned(bytes(begin))).toBe(true);
    expect(signedType(bytes(`${begin} and more`))?.type).toBe(type);
  });

  it.each([
    [
      `${OFFICE}.wordprocessingml.document`,
      ['[Content_Types].xml', '<x/>'],
      ['word/document.xml', '<w/>'],
    ],
    [`${OFFICE}.spreadsheetml.sheet`, ['xl/workbook.xml', ''], ['_rels/.rels', '']],
    [
      `${OFFICE}.presentationml.presentation`,
      ['docProps/app.xml', ''],
      ['ppt/presentation.xml', ''],
    ],
    [ODT, ['mimetype', ODT], ['content.xml', '<office/>']],
    ['application/epub+zip', ['mimetype', 'application/epub+zipPK\x07\x08its size']],
    ['application/zip', ['notes.txt', 'the word/ directory'], ['word/list.txt', 'words']],
  ] as [string, ...Entry[]][])('of a ZIP is that of what is inside: %s', (type, ...entries) => {
    expect(signedType(zip(...entries))).toEqual({ type, isContainer: type === 'application/zip' });
  });

  it.each([
    '',
    'plain words',
    'x %PDF-1.4',
    'PK',
    'RIFF\x10\0\0\0WAVE',
    'BZh is no signature',
    'GIF of a cat',
  ])('is unknown for %j', (begin) => {
    expect(isSigned(bytes(begin))).toBe(false);
    expect(signedType(bytes(begin))).toBeUndefined();
  });
});
