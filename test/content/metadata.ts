import { crc32, deflateSync } from 'node:zlib';
import { type Picture, tiff } from './corpus/pictures.js';

/** Metadata of pictures, made by hand. */

const ASCII = 2;
const LONG = 4;
const RATIONAL = 5;
const GPS_POINTER = 0x8825;

type Field = readonly [tag: number, type: number, value: string | number | readonly number[]];

/**
 * Makes an EXIF block: a TIFF without a picture.
 *
 * @param fields texts, by the number of their field
 * @param degrees of latitude, in a block of GPS
 */
export function exifOf(fields: Readonly<Record<number, string>>, degrees?: number): Buffer {
  const texts = Object.entries(fields).map(([tag, text]): Field => [Number(tag), ASCII, text]);
  const header = Buffer.from('II*\0\x08\0\0\0', 'latin1');
  const start = header.length;
  if (degrees === undefined) return Buffer.concat([header, directory(start, texts)]);
  const withPointer = (at: number) => directory(start, [...texts, [GPS_POINTER, LONG, at]]);
  const at = start + withPointer(0).length;
  const gps = directory(at, [
    [1, ASCII, 'N'],
    [2, RATIONAL, [degrees, 1, 0, 1, 0, 1]],
  ]);
  return Buffer.concat([header, withPointer(at), gps]);
}

/** Makes a directory of a TIFF. @param at its offset */
function directory(at: number, fields: readonly Field[]): Buffer {
  const entries = Buffer.alloc(2 + 12 * fields.length + 4);
  entries.writeUInt16LE(fields.length);
  const values: Buffer[] = [];
  let end = at + entries.length;
  for (const [i, [tag, type, value]] of fields.entries()) {
    const content = contentOf(value);
    const entry = 2 + 12 * i;
    entries.writeUInt16LE(tag, entry);
    entries.writeUInt16LE(type, entry + 2);
    entries.writeUInt32LE(type === ASCII ? content.length : type === LONG ? 1 : 3, entry + 4);
    if (content.length <= 4) content.copy(entries, entry + 8);
    else {
      entries.writeUInt32LE(end, entry + 8);
      values.push(content);
      end += content.length;
    }
  }
  return Buffer.concat([entries, ...values]);
}

function contentOf(value: Field[2]): Buffer {
  if (typeof value === 'string') return Buffer.from(`${value}\0`);
  const numbers = typeof value === 'number' ? [value] : value;
  const content = Buffer.alloc(4 * numbers.length);
  for (const [i, number] of numbers.entries()) content.writeUInt32LE(number, 4 * i);
  return content;
}

/** Adds segments behind the beginning of a JPEG. */
export function jpegWith(jpeg: Uint8Array, ...segments: readonly Buffer[]): Buffer {
  return Buffer.concat([jpeg.subarray(0, 2), ...segments, jpeg.subarray(2)]);
}

/** Makes a segment of a JPEG. @param name the name before its content, with its zeros */
export function segment(marker: number, name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), content]);
  const head = Buffer.alloc(4);
  head.writeUInt16BE(0xff00 + marker);
  head.writeUInt16BE(named.length + 2, 2);
  return Buffer.concat([head, named]);
}

/** Makes the fields of IPTC, as Photoshop stores them. */
export function iptcOf(fields: readonly (readonly [field: number, text: string])[]): Buffer {
  const records = fields.map(([field, text]) => {
    const content = Buffer.from(text);
    return Buffer.concat([Buffer.from([0x1c, 2, field, 0, content.length]), content]);
  });
  const content = Buffer.concat(records);
  const head = Buffer.alloc(12);
  head.write('8BIM', 'latin1');
  head.writeUInt16BE(0x0404, 4);
  head.writeUInt32BE(content.length, 8);
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)]);
}

/** Adds texts to a PNG: `iTXt` if they are not Latin-1, and compressed ones if they are long. */
export function pngWith(png: Uint8Array, texts: Readonly<Record<string, string>>): Buffer {
  const chunks = Object.entries(texts).map(([name, text]) => {
    if (text.length > 100)
      return chunk('zTXt', `${name}\0\0`, deflateSync(Buffer.from(text, 'latin1')));
    const isLatin = /^[\0-\xff]*$/.test(text);
    return isLatin
      ? chunk('tEXt', `${name}\0`, Buffer.from(text, 'latin1'))
      : chunk('iTXt', `${name}\0\0\0\0\0`, Buffer.from(text));
  });
  // The signature and the header.
  return Buffer.concat([png.subarray(0, 33), ...chunks, png.subarray(33)]);
}

function chunk(type: string, name: string, content: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type + name, 'latin1'), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(typed.length - 4);
  sum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, sum]);
}

/** Makes a TIFF with several pages. */
export function tiffOf(pictures: readonly Picture[]): Buffer {
  const files = pictures.map((picture) => tiff(picture));
  let start = 0;
  const pages = files.map((file, i) => {
    const page = Buffer.from(file);
    const first = page.readUInt32LE(4);
    const fields = page.readUInt16LE(first);
    // Offsets count from the beginning of the whole file.
    for (let field = first + 2; field < first + 2 + 12 * fields; field += 12) {
      const isOffset = [273, 282, 283].includes(page.readUInt16LE(field));
      if (isOffset) page.writeUInt32LE(page.readUInt32LE(field + 8) + start, field + 8);
    }
    const next = first + 2 + 12 * fields;
    const isLast = i === files.length - 1;
    const nextStart = start + page.length;
    if (!isLast) page.writeUInt32LE(nextStart + 8, next);
    start = nextStart;
    return page;
  });
  return Buffer.concat(pages);
}
