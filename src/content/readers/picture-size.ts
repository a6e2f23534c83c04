import { HEAD_BYTES, signedType } from '../signatures.js';
import type { PixelSize } from './scan.js';

/** Maximum number of pages of a TIFF that are looked at. */
const MAX_PAGES = 100_000;

/**
 * Returns the size of each page of a picture, from its headers: a few bytes can declare more pixels
 * than fit into memory. Only a TIFF has more than one page.
 *
 * @throws Error if they are damaged
 */
export function pictureSizes(bytes: Uint8Array): readonly PixelSize[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const type = signedType(bytes.subarray(0, HEAD_BYTES))?.type ?? 'image/bmp';
  try {
    const sizes = SIZES[type]?.(view) ?? [];
    if (sizes.length > 0) return sizes;
  } catch (error) {
    // An offset beyond the end.
    if (!(error instanceof RangeError)) throw error;
  }
  throw new Error('its header is cut off');
}

/** The functions that find the sizes, by media type. They throw a RangeError beyond the end. */
const SIZES: Readonly<Record<string, (view: DataView) => readonly PixelSize[]>> = {
  'image/png': (view) => [{ width: view.getUint32(16), height: view.getUint32(20) }],
  'image/jpeg': (view) => [sizeOfJpeg(view)],
  'image/webp': (view) => [sizeOfWebP(view)],
  'image/bmp': (view) => [sizeOfBmp(view)],
  'image/tiff': sizesOfTiff,
};

/** Returns the size in the header of the frame: a marker SOF0 to SOF15, not DHT, JPG or DAC. */
function sizeOfJpeg(view: DataView): PixelSize {
  for (let at = 2; ; ) {
    if (view.getUint8(at) !== 0xff) throw new Error('it has no frame');
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    // A marker may be preceded by any number of bytes 0xff.
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
}

function sizeOfWebP(view: DataView): PixelSize {
  const form = view.getUint32(12);
  // 'VP8 ', lossy
  if (form === 0x56503820)
    return {
      width: view.getUint16(26, true) & 0x3fff,
      height: view.getUint16(28, true) & 0x3fff,
    };
  // 'VP8L', lossless
  if (form === 0x5650384c) {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  // 'VP8X', extended: two numbers of three bytes
  return {
    width: (view.getUint32(24, true) & 0xffffff) + 1,
    height: (view.getUint32(26, true) >>> 8) + 1,
  };
}

function sizeOfBmp(view: DataView): PixelSize {
  const isOld = view.getUint32(14, true) === 12;
  if (isOld) return { width: view.getUint16(18, true), height: view.getUint16(20, true) };
  // The height of a picture that is stored from top to bottom is negative.
  return {
    width: Math.abs(view.getInt32(18, true)),
    height: Math.abs(view.getInt32(22, true)),
  };
}

const WIDTH = 256;
const HEIGHT = 257;
/** The type of a field of two bytes. */
const SHORT = 3;

/** Returns the size of each directory in the list of directories of a TIFF. */
function sizesOfTiff(view: DataView): readonly PixelSize[] {
  const isLittle = view.getUint8(0) === 0x49;
  const sizes: PixelSize[] = [];
  const seen = new Set<number>();
  for (
    let at = view.getUint32(4, isLittle);
    at !== 0 && !seen.has(at) && sizes.length < MAX_PAGES;
  ) {
    seen.add(at);
    const fields = view.getUint16(at, isLittle);
    const size = { width: 0, height: 0 };
    for (let field = at + 2; field < at + 2 + 12 * fields; field += 12) {
      const tag = view.getUint16(field, isLittle);
      if (tag !== WIDTH && tag !== HEIGHT) continue;
      const isShort = view.getUint16(field + 2, isLittle) === SHORT;
      const value = isShort
        ? view.getUint16(field + 8, isLittle)
        : view.getUint32(field + 8, isLittle);
      size[tag === WIDTH ? 'width' : 'height'] = value;
    }
    sizes.push(size);
    at = view.getUint32(at + 2 + 12 * fields, isLittle);
  }
  return sizes;
}
