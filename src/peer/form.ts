import { base64Into, base64Length } from './base64.js';
import type { Body } from './body.js';
import {
  HELD_BYTES,
  inPieces,
  otherSize,
  type PieceEncoder,
  StreamedBody,
  type StreamedText,
  unreadable,
} from './streamed-body.js';
import type { Text, TextEncoding, TextSource } from './text.js';

/** One parameter of a form, in the order in which it is to be sent. */
export interface FormField {
  readonly name: string;
  readonly value: string | Text;
  /** The number of the item that it belongs to, named in errors. */
  readonly item?: number;
}

const FORM_TYPE = 'application/x-www-form-urlencoded';
const PIECE_BYTES = 64 * 1024;
/** An encoded byte takes at most `%XX`. */
const GROWTH = 3;

/** What one byte becomes where one is enough: letters, digits, `*-._` as they are, a blank as `+`; else 0. */
const SINGLE = new Uint8Array(256);
const HIGH = new Uint8Array(256);
const LOW = new Uint8Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  const character = String.fromCharCode(byte);
  if (/[A-Za-z0-9*\-._]/.test(character)) SINGLE[byte] = byte;
  const hex = byte.toString(16).toUpperCase().padStart(2, '0');
  HIGH[byte] = hex.charCodeAt(0);
  LOW[byte] = hex.charCodeAt(1);
}
SINGLE[0x20] = 0x2b;

/**
 * Encodes fields as `application/x-www-form-urlencoded` (the encoding that URLSearchParams decodes).
 *
 * What is in memory is encoded at once into few buffers. A TextSource is read once here, to know its length, and once
 * more whenever the body is sent; memory does not grow with it.
 *
 * @param url of the request, for errors
 * @throws PeerError PEER_SOURCE when a text cannot be read or has another size than it says
 */
export async function formBody(fields: readonly FormField[], url: string): Promise<Body> {
  const parts: (Buffer | StreamedText)[] = [];
  let held = new Encoder(roomFor(fields));
  let separator = '';
  for (const { name, value, item } of fields) {
    held.raw(separator);
    separator = '&';
    held.encoded(Buffer.from(name));
    held.raw('=');
    const text = typeof value === 'string' ? Buffer.from(value) : value;
    if ('encoded' in text) {
      if (text.encoding !== 'form') throw new TypeError(`a form carries no text in ${text.encoding}`);
      held.ready(text.encoded);
      continue;
    }
    if (text instanceof Uint8Array && text.length <= HELD_BYTES) {
      held.encoded(text);
      continue;
    }
    const source = text instanceof Uint8Array ? inPieces(text) : text;
    parts.push(held.take(), {
      source,
      length: await measure(source, item, url),
      item,
      encoder: pieceEncoder,
    });
    held = new Encoder();
  }
  parts.push(held.take());
  return new StreamedBody(FORM_TYPE, parts, url);
}

/** About as many bytes as the fields in memory will take, so that the buffer need not grow. */
function roomFor(fields: readonly FormField[]): number {
  let bytes = 0;
  for (const { name, value } of fields) {
    bytes += name.length + 2;
    if (typeof value === 'string') bytes += value.length * GROWTH;
    else if ('encoded' in value) bytes += value.encoded.length;
    else if (value instanceof Uint8Array && value.length <= HELD_BYTES) bytes += value.length * GROWTH;
  }
  return bytes;
}

/** A buffer that grows, and encodes what is put into it. */
class Encoder {
  #buffer: Buffer;
  #length = 0;

  constructor(bytes = PIECE_BYTES) {
    this.#buffer = Buffer.allocUnsafe(bytes);
  }

  raw(ascii: string): void {
    this.#reserve(ascii.length);
    this.#length += this.#buffer.write(ascii, this.#length, 'latin1');
  }

  encoded(bytes: Uint8Array): void {
    this.#reserve(bytes.length * GROWTH);
    this.#length = encodeInto(bytes, this.#buffer, this.#length);
  }

  /** Puts in bytes that are encoded already. */
  ready(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  take(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

/** How long a text becomes at most, and how it is encoded. */
const WAYS = {
  form: { room: (bytes: number) => bytes * GROWTH, into: encodeInto },
  base64: { room: base64Length, into: base64Into },
} as const;

/**
 * Encodes texts one after the other into memory of its own, which can be handed to another thread. In base64 each has
 * its own padding.
 */
export class EncodingBuffer {
  readonly #way: (typeof WAYS)[TextEncoding];
  #bytes = new Uint8Array(PIECE_BYTES);
  #length = 0;

  constructor(encoding: TextEncoding = 'form') {
    this.#way = WAYS[encoding];
  }

  /** Bytes so far, encoded. */
  get length(): number {
    return this.#length;
  }

  add(text: Uint8Array): void {
    const needed = this.#length + this.#way.room(text.length);
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#length = this.#way.into(text, this.#bytes, this.#length);
  }

  /** A copy of everything so far, of just its size; then it begins anew, in the same memory. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    return taken;
  }
}

function encodeInto(bytes: Uint8Array, target: Uint8Array, start: number): number {
  let at = start;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i] as number;
    const single = SINGLE[byte] as number;
    if (single !== 0) {
      target[at] = single;
      at += 1;
    } else {
      target[at] = 0x25;
      target[at + 1] = HIGH[byte] as number;
      target[at + 2] = LOW[byte] as number;
      at += 3;
    }
  }
  return at;
}

function encodedLength(bytes: Uint8Array): number {
  let length = bytes.length * GROWTH;
  for (let i = 0; i < bytes.length; i += 1) if (SINGLE[bytes[i] as number] !== 0) length -= 2;
  return length;
}

const NOTHING = Buffer.alloc(0);

/** Each byte is encoded by itself. */
function pieceEncoder(): PieceEncoder {
  return {
    take(piece) {
      const target = Buffer.allocUnsafe(piece.length * GROWTH);
      return target.subarray(0, encodeInto(piece, target, 0));
    },
    end: () => NOTHING,
  };
}

async function measure(source: TextSource, item: number | undefined, url: string): Promise<number> {
  let size = 0;
  let length = 0;
  try {
    for await (const chunk of source.chunks()) {
      size += chunk.length;
      length += encodedLength(chunk);
    }
  } catch (cause) {
    throw unreadable(cause, item, url);
  }
  if (size !== source.size) throw otherSize(size, { source, item }, url);
  return length;
}
