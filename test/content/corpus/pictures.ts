import { crc32, deflateSync } from 'node:zlib';
import type { Random } from '../../support/random.js';

/** A picture in grey, and the files that hold it, made by hand. */

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** A byte for each pixel, line by line; 0 is black. */
  readonly pixels: Buffer;
}

/** The resolution that the files declare, in dots per inch and in dots per metre. */
export const DPI = 300;
const DOTS_PER_METRE = Math.round(DPI / 0.0254);

/** Reads a picture as `pdftoppm -gray` writes it (PGM). */
export function pictureOfPgm(bytes: Buffer): Picture {
  const head = /^P5\s+(\d+)\s+(\d+)\s+255\s/.exec(bytes.toString('latin1', 0, 64));
  if (head === null) throw new Error('it is no PGM file');
  const [start = '', width, height] = head;
  return {
    width: Number(width),
    height: Number(height),
    pixels: bytes.subarray(start.length),
  };
}

/** Returns the upper lines of a picture. */
export function cropped({ height, pixels, width }: Picture, lines: number): Picture {
  const kept = Math.min(height, lines);
  return { width, height: kept, pixels: pixels.subarray(0, width * kept) };
}

/** Turns a picture clockwise. @param quarters how often it is turned by 90 degrees */
export function turned(picture: Picture, quarters: number): Picture {
  if (quarters === 0) return picture;
  const { height, pixels, width } = picture;
  const result = Buffer.allocUnsafe(pixels.length);
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1)
      result[x * height + (height - 1 - y)] = pixels[y * width + x] ?? 0;
  return turned({ width: height, height: width, pixels: result }, quarters - 1);
}

const NOISE = 48;
const SPECKS = 0.0005;

/** Returns the picture as a worse scanner makes it: with grain, and with specks. */
export function noisy({ height, pixels, width }: Picture, random: Random): Picture {
  const grained = pixels.map((grey) => {
    if (random.chance(SPECKS)) return 0;
    return Math.min(255, Math.max(0, grey + random.between(-NOISE, NOISE)));
  });
  return { width, height, pixels: Buffer.from(grained.buffer, grained.byteOffset, grained.length) };
}

export function png({ height, pixels, width }: Picture): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8);
  const resolution = Buffer.alloc(9);
  resolution.writeUInt32BE(DOTS_PER_METRE, 0);
  resolution.writeUInt32BE(DOTS_PER_METRE, 4);
  resolution.writeUInt8(1, 8);
  // Each line begins with the number of its filter: 0 is none.
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1)
    pixels.copy(lines, y * (width + 1) + 1, y * width, (y + 1) * width);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('pHYs', resolution),
    pngChunk('IDAT', deflateSync(lines, { level: 1 })),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** Makes a BMP file with 256 greys. Its lines go from the bottom up. */
export function bmp({ height, pixels, width }: Picture): Buffer {
  const lineBytes = Math.ceil(width / 4) * 4;
  const start = 14 + 40 + 4 * 256;
  const bytes = Buffer.alloc(start + lineBytes * height);
  bytes.write('BM', 0, 'latin1');
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(start, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(8, 28);
  bytes.writeInt32LE(DOTS_PER_METRE, 38);
  bytes.writeInt32LE(DOTS_PER_METRE, 42);
  for (let grey = 0; grey < 256; grey += 1) bytes.fill(grey, 54 + 4 * grey, 54 + 4 * grey + 3);
  for (let y = 0; y < height; y += 1)
    pixels.copy(bytes, start + (height - 1 - y) * lineBytes, y * width, (y + 1) * width);
  return bytes;
}

/** Makes a TIFF file, not compressed. */
export function tiff({ height, pixels, width }: Picture): Buffer {
  const [SHORT, LONG, RATIONAL] = [3, 4, 5];
  const directory = 8;
  const tags = 10;
  const resolution = directory + 2 + 12 * tags + 4;
  const start = resolution + 8;
  const fields: readonly (readonly [tag: number, type: number, value: number])[] = [
    [256, LONG, width],
    [257, LONG, height],
    [258, SHORT, 8],
    [259, SHORT, 1],
    // 0 is black.
    [262, SHORT, 1],
    [273, LONG, start],
    [278, LONG, height],
    [279, LONG, pixels.length],
    [282, RATIONAL, resolution],
    [283, RATIONAL, resolution],
  ];
  const head = Buffer.alloc(start);
  head.write('II*\0', 0, 'latin1');
  head.writeUInt32LE(directory, 4);
  head.writeUInt16LE(fields.length, directory);
  for (const [i, [tag, type, value]] of fields.entries()) {
    const at = directory + 2 + 12 * i;
    head.writeUInt16LE(tag, at);
    head.writeUInt16LE(type, at + 2);
    head.writeUInt32LE(1, at + 4);
    head.writeUInt32LE(value, at + 8);
  }
  head.writeUInt32LE(DPI, resolution);
  head.writeUInt32LE(1, resolution + 4);
  return Buffer.concat([head, pixels]);
}

/**
 * Makes a WebP file in black and white, in the format without loss (VP8L): a bit for each pixel,
 * which is the green part; red and blue are the difference from it, and always 0.
 */
export function webp({ height, pixels, width }: Picture): Buffer {
  const bits = new Bits(pixels.length / 8 + 64);
  bits.write(0x2f, 8);
  bits.write(width - 1, 14);
  bits.write(height - 1, 14);
  // The picture has no transparency, and the version is 0.
  bits.write(0, 4);
  const SUBTRACT_GREEN = 2;
  bits.write(1, 1);
  bits.write(SUBTRACT_GREEN, 2);
  // No other transformation, no cache of colours, and one set of codes for the whole picture.
  bits.write(0, 3);
  // Green is 0 or 255: a code of one bit.
  bits.write(0b111, 3);
  bits.write(0, 8);
  bits.write(255, 8);
  for (const only of [0, 0, 255, 0]) bits.writeConstant(only);
  for (const grey of pixels) bits.write(grey < 128 ? 0 : 1, 1);
  const content = bits.end();
  const head = Buffer.alloc(20);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(12 + content.length + (content.length % 2), 4);
  head.write('WEBPVP8L', 8, 'latin1');
  head.writeUInt32LE(content.length, 16);
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)]);
}

/** Bits, from the lowest bit of the first byte. */
class Bits {
  readonly #bytes: Buffer;
  #length = 0;

  constructor(bytes: number) {
    this.#bytes = Buffer.alloc(Math.ceil(bytes));
  }

  write(value: number, bits: number): void {
    for (let bit = 0; bit < bits; bit += 1, this.#length += 1)
      if ((value >> bit) & 1) {
        const at = this.#length >> 3;
        this.#bytes[at] = (this.#bytes[at] ?? 0) | (1 << (this.#length & 7));
      }
  }

  /** Writes the code of a part that is the same in all pixels, and takes no bit there. */
  writeConstant(value: number): void {
    this.write(0b01, 2);
    // Whether the value has eight bits or one.
    this.write(value > 1 ? 1 : 0, 1);
    this.write(value, value > 1 ? 8 : 1);
  }

  end(): Buffer {
    return this.#bytes.subarray(0, Math.ceil(this.#length / 8));
  }
}
