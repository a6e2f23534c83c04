import { ole } from './ole.js';

/**
 * Files of old programs, made by hand: as much of each format as the programs need that read them.
 */

/** Makes a Word 97 document (.doc). Its text is one piece after the header. */
export function doc(...paragraphs: readonly string[]): Buffer {
  const START = 0x400;
  const text = Buffer.from(`${paragraphs.join('\r')}\r`, 'utf16le');
  const bytes = Buffer.alloc(Math.max(4_096, START + text.length));
  bytes.writeUInt16LE(0xa5ec, 0);
  bytes.writeUInt16LE(193, 2);
  // Complex text is in pieces; this one has the flag of two bytes a character.
  bytes.writeUInt16LE(0x1000, 10);
  bytes.writeUInt16LE(193, 12);
  bytes.writeUInt32LE(START, 24);
  bytes.writeUInt32LE(START + text.length, 28);
  text.copy(bytes, START);
  return ole({ WordDocument: bytes });
}

/** Makes an Excel 97 workbook (.xls) with a text in each row. */
export function xls(...rows: readonly string[]): Buffer {
  const NUMBERS = { text: 5, sheet: 16 };
  const begin = (kind: number) => record(0x809, uint16(0x600, kind, 0x0dbb, 0x07cc, 0, 0, 6, 0));
  const end = record(0x0a, Buffer.alloc(0));
  const strings = record(
    0xfc,
    Buffer.concat([
      uint32(rows.length, rows.length),
      ...rows.map((row) =>
        Buffer.concat([uint16(row.length), Buffer.from([1]), Buffer.from(row, 'utf16le')]),
      ),
    ]),
  );
  const pages = record(0x42, uint16(1_200));
  const name = Buffer.from('Sheet1', 'latin1');
  const sheetNamed = (start: number) =>
    record(0x85, Buffer.concat([uint32(start), uint16(0), Buffer.from([name.length, 0]), name]));
  const workbook = (start: number) =>
    Buffer.concat([begin(NUMBERS.text), pages, sheetNamed(start), strings, end]);
  const cells = rows.map((_, i) => record(0xfd, Buffer.concat([uint16(i, 0, 0), uint32(i)])));
  const sheet = Buffer.concat([begin(NUMBERS.sheet), ...cells, end]);
  const book = Buffer.concat([workbook(workbook(0).length), sheet]);
  return ole({ Workbook: padded(book) });
}

function record(type: number, content: Buffer): Buffer {
  if (content.length > 8_224) throw new Error('a record has at most 8,224 bytes');
  return Buffer.concat([uint16(type, content.length), content]);
}

/** Makes a PowerPoint 97 presentation (.ppt) with a text on each slide. */
export function ppt(...slides: readonly string[]): Buffer {
  const CONTAINER = 0x0f;
  const atom = (type: number, content: Buffer, version = 0) =>
    Buffer.concat([uint16(version, type), uint32(content.length), content]);
  const texts = slides.flatMap((text, i) => [
    atom(0x3f3, uint32(i + 1, 4, 1, 256 + i, 0)),
    atom(0xf9f, uint32(1)),
    atom(0xfa0, Buffer.from(text, 'utf16le')),
  ]);
  const document = atom(
    0x3e8,
    Buffer.concat([atom(0xff0, Buffer.concat(texts), CONTAINER), atom(0x3ea, Buffer.alloc(0))]),
    CONTAINER,
  );
  return ole({ 'PowerPoint Document': padded(document), 'Current User': Buffer.alloc(64) });
}

/** Makes a message of Outlook (.msg). */
export function msg(subject: string, body: string): Buffer {
  const [TEXT, UNSPECIFIED] = ['001F', 0x1f];
  const properties = [
    [0x001a, 'IPM.Note'],
    [0x0037, subject],
    [0x0c1a, 'Ada Lovelace'],
    [0x0c1f, 'ada@example.org'],
    [0x1000, body],
  ] as const;
  const name = (id: number) =>
    `__substg1.0_${id.toString(16).toUpperCase().padStart(4, '0')}${TEXT}`;
  const listed = properties.map(([id, text]) =>
    Buffer.concat([uint16(UNSPECIFIED, id), uint32(6, 2 * (text.length + 1), 0)]),
  );
  return ole({
    '__nameid_version1.0': {
      '__substg1.0_00020102': Buffer.alloc(0),
      '__substg1.0_00030102': Buffer.alloc(0),
      '__substg1.0_00040102': Buffer.alloc(0),
    },
    '__properties_version1.0': Buffer.concat([Buffer.alloc(32), ...listed]),
    ...Object.fromEntries(properties.map(([id, text]) => [name(id), Buffer.from(text, 'utf16le')])),
  });
}

/** Makes a DjVu page without a picture, with its text. */
export function djvu(text: string): Buffer {
  const [WIDTH, HEIGHT, DPI, PAGE] = [2_550, 3_300, 300, 1];
  const info = Buffer.alloc(10);
  info.writeUInt16BE(WIDTH, 0);
  info.writeUInt16BE(HEIGHT, 2);
  info.writeUInt8(24, 4);
  info.writeUInt16LE(DPI, 6);
  info.writeUInt8(22, 8);
  info.writeUInt8(1, 9);
  const words = Buffer.from(text);
  const zone = Buffer.alloc(17);
  zone.writeUInt8(PAGE, 0);
  // Positions are stored with 0x8000 added to them.
  for (const [i, at] of [0, 0, WIDTH, HEIGHT, 0].entries())
    zone.writeUInt16BE(at + 0x8000, 1 + 2 * i);
  zone.writeUIntBE(words.length, 11, 3);
  zone.writeUIntBE(0, 14, 3);
  const length = Buffer.alloc(3);
  length.writeUIntBE(words.length, 0, 3);
  const layer = Buffer.concat([length, words, Buffer.from([1]), zone]);
  const page = Buffer.concat([Buffer.from('DJVU'), iff('INFO', info), iff('TXTa', layer)]);
  return Buffer.concat([Buffer.from('AT&T'), iff('FORM', page)]);
}

function iff(type: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([
    Buffer.from(type, 'latin1'),
    length,
    content,
    Buffer.alloc(content.length % 2),
  ]);
}

/** Makes a PostScript file with these lines. @param lines in ASCII */
export function postScript(...lines: readonly string[]): Buffer {
  const shown = lines.map(
    (line, i) => `72 ${720 - 14 * i} moveto (${line.replace(/[()\\]/g, '\\$&')}) show`,
  );
  return Buffer.from(
    `%!PS-Adobe-3.0\n%%Pages: 1\n%%EndComments\n%%Page: 1 1\n/Helvetica findfont 11 scalefont setfont\n${shown.join('\n')}\nshowpage\n%%EOF\n`,
  );
}

/** A stream of fewer bytes would lie elsewhere in the file, which not all programs read. */
function padded(stream: Buffer): Buffer {
  return Buffer.concat([stream, Buffer.alloc(Math.max(0, 4_096 - stream.length))]);
}

function uint16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt16LE(value, 2 * i);
  return bytes;
}

function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32LE(value, 4 * i);
  return bytes;
}
