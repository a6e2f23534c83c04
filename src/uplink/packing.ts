import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { HEAD_BYTES } from '../content/signatures.js';
import { ENCODINGS } from '../lib/encodings.js';
import { systemCode } from '../lib/errors.js';
import { EncodingBuffer, type TextEncoding } from '../peer/form.js';
import { sameStat } from '../state/entry.js';
import { fileContent, textContent, treated, wordCounterOf } from './treatment.js';

/** Files to be read whole, in few large values, which cross to another thread at little cost. */
export interface Order {
  /** How they are encoded for their way. */
  readonly encoding: TextEncoding;
  /** Whether they travel as files with a type, or as text. */
  readonly asFiles: boolean;
  /** Absolute, with a NUL between two. */
  readonly paths: string;
  /** 64 hex digits each, one after the other. */
  readonly sha256: string;
  /** Five for each file: size, mtimeMs, ctimeMs, ino, and which of `ENCODINGS`. */
  readonly figures: Float64Array<ArrayBuffer>;
}

/** What came of an order. */
export interface Delivery {
  /** The encoded contents, one after the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * Three for each file: bytes of its content, where that ends when it is encoded, and how many words it has, -1 where that is not
   * known. A size of -1 stands for a file that is not that version, `WORDLESS` for a text without words.
   */
  readonly figures: Float64Array<ArrayBuffer>;
  /** sha256 of each content that is not the file's bytes, by the file's position. */
  readonly digests: ReadonlyMap<number, string>;
  /** The type of each file that travels as one, with a NUL between two. */
  readonly types: string;
  /** The system's code for each file that could not be read, by the file's position. */
  readonly errors: ReadonlyMap<number, string>;
}

export const WORDLESS = -2;
const FIGURES = 5;
/** Figures of a delivery for each file. */
export const DELIVERED = 3;
const SHA256_DIGITS = 64;

/** Memory for one file, and for the encoded contents of one order; used again for the next, for orders are packed in turn. */
let scratch = Buffer.allocUnsafe(64 * 1024);
let encoded: { readonly encoding: TextEncoding; readonly buffer: EncodingBuffer } | undefined;

/**
 * Reads files, each of which proves to be the version it should be (its times, size and inode after the read, and its
 * sha256), treats them as their way asks for (see treatment.ts) and encodes them. Blocks while it reads: meant for a thread
 * of its own.
 */
export function pack(order: Order): Delivery {
  const count = order.figures.length / FIGURES;
  const figures = new Float64Array(count * DELIVERED);
  const digests = new Map<number, string>();
  const errors = new Map<number, string>();
  const types: string[] = [];
  const paths = order.paths.split('\0');
  if (encoded?.encoding !== order.encoding)
    encoded = { encoding: order.encoding, buffer: new EncodingBuffer(order.encoding) };
  const { buffer } = encoded;
  for (let i = 0; i < count; i += 1) {
    figures[DELIVERED * i] = -1;
    const path = paths[i] ?? '';
    try {
      const bytes = readVersion(path, order, i);
      if (bytes !== undefined) {
        const encoding = ENCODINGS[order.figures[FIGURES * i + 4] ?? 0] ?? 'utf-8';
        const way = order.asFiles
          ? fileContent(path, encoding, bytes.subarray(0, HEAD_BYTES))
          : textContent(encoding);
        const content = treated(bytes, way.treatment, encoding);
        const counter = wordCounterOf(way, encoding);
        counter?.write(content);
        const words = counter?.end();
        if (counter !== undefined && words === undefined) {
          figures[DELIVERED * i] = WORDLESS;
        } else {
          if (content !== bytes) digests.set(i, hash('sha256', content, 'hex'));
          buffer.add(content);
          figures[DELIVERED * i] = content.length;
          figures[DELIVERED * i + 2] = words ?? -1;
          types[i] = way.type;
        }
      }
    } catch (error) {
      const code = systemCode(error);
      if (code === undefined) throw error;
      errors.set(i, code);
    }
    figures[DELIVERED * i + 1] = buffer.length;
  }
  return { bytes: buffer.take(), figures, digests, errors, types: order.asFiles ? types.join('\0') : '' };
}

/** The file's bytes, good until the next call; undefined when it is not that version any more. */
function readVersion(path: string, order: Order, i: number): Uint8Array | undefined {
  const [size = 0, mtimeMs = 0, ctimeMs = 0, ino = 0] = order.figures.subarray(FIGURES * i, FIGURES * i + 4);
  if (scratch.length < size) scratch = Buffer.allocUnsafe(size);
  // Without O_NONBLOCK a FIFO that took the file's place would hang the open.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    let length = 0;
    while (length < size) {
      const read = readSync(fd, scratch, length, size - length, null);
      if (read === 0) return undefined;
      length += read;
    }
    if (!sameStat(fstatSync(fd), { size, mtimeMs, ctimeMs, ino })) return undefined;
  } finally {
    closeSync(fd);
  }
  const bytes = scratch.subarray(0, size);
  const sha256 = order.sha256.slice(SHA256_DIGITS * i, SHA256_DIGITS * (i + 1));
  return hash('sha256', bytes, 'hex') === sha256 ? bytes : undefined;
}
