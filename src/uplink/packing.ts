import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { EncodingBuffer } from '../peer/form.js';
import { type FileStat, sameStat, type Version } from '../state/entry.js';
import { decoderOf } from './decoding.js';

/** Files to be read whole, as arrays of plain values: they cross to another thread at little cost. */
export interface Order {
  /** Absolute. */
  readonly paths: readonly string[];
  readonly sha256: readonly string[];
  readonly encodings: readonly Version['encoding'][];
  /** Four for each file: size, mtimeMs, ctimeMs, ino. */
  readonly stats: Float64Array<ArrayBuffer>;
}

/** What came of an order. */
export interface Delivery {
  /** The encoded texts, one after the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Two for each file: bytes of its text, and where its encoded text ends. Size -1 stands for a file that is not that version. */
  readonly figures: Float64Array<ArrayBuffer>;
  /** sha256 of each text that was converted; undefined where it is that of the file. */
  readonly digests: readonly (string | undefined)[];
  /** The system's code for each file that could not be read. */
  readonly errors: readonly (string | undefined)[];
}

let scratch = Buffer.allocUnsafe(64 * 1024);

/**
 * Reads files, each of which proves to be the version it should be (its times, size and inode after the read, and its
 * sha256), converts them to UTF-8 and encodes them for their way. Blocks while it reads: meant for a thread of its own.
 */
export function pack(order: Order): Delivery {
  const encoded = new EncodingBuffer();
  const figures = new Float64Array(order.paths.length * 2);
  const digests: (string | undefined)[] = [];
  const errors: (string | undefined)[] = [];
  order.paths.forEach((path, i) => {
    figures[2 * i] = -1;
    try {
      const bytes = readVersion(path, order, i);
      if (bytes !== undefined) {
        const encoding = order.encodings[i] ?? 'utf-8';
        const text = encoding === 'utf-8' ? bytes : Buffer.from(decoderOf(encoding).decode(bytes));
        if (encoding !== 'utf-8') digests[i] = hash('sha256', text, 'hex');
        encoded.add(text);
        figures[2 * i] = text.length;
      }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === undefined) throw error;
      errors[i] = code;
    }
    figures[2 * i + 1] = encoded.length;
  });
  return { bytes: encoded.take(), figures, digests, errors };
}

/** The file's bytes, good until the next call; undefined when it is not that version any more. */
function readVersion(path: string, order: Order, i: number): Uint8Array | undefined {
  const [size = 0, mtimeMs = 0, ctimeMs = 0, ino = 0] = order.stats.subarray(4 * i, 4 * i + 4);
  const version: FileStat = { size, mtimeMs, ctimeMs, ino };
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
    if (!sameStat(fstatSync(fd), version)) return undefined;
  } finally {
    closeSync(fd);
  }
  const bytes = scratch.subarray(0, size);
  return hash('sha256', bytes, 'hex') === order.sha256[i] ? bytes : undefined;
}
