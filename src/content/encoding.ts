import { isUtf8 } from 'node:buffer';
import type { Encoding } from '../lib/file.js';
import { legacyEncodingOf, SAMPLE_BYTES, withoutAsciiHead } from './legacy-encoding.js';
import { isSigned, SIGNATURE_BYTES } from './signatures.js';

/**
 * Marks the control characters that text rarely contains: C0 except BEL to CR, SUB (the end of old
 * DOS files) and ESC.
 */
const IS_CONTROL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 && (byte < 0x07 || byte > 0x0d) && byte !== 0x1a && byte !== 0x1b ? 1 : 0,
);

/** Size of the beginning in which git looks for signs of a binary file, in bytes. */
const WINDOW_BYTES = 8_000;
/** Largest share of control characters in text, as in `isbinaryfile`. */
const MAX_CONTROL_SHARE = 0.1;
/**
 * Size of the beginning that WHATWG's MIME sniffing reads, in bytes. If bytes are not valid UTF-8,
 * a control character in it means that they are not text.
 */
const SNIFFED_BYTES = 1_445;
/** Largest share of control characters after that beginning. */
const MAX_CONTROL_SHARE_AFTER = 0.01;

/** The longest UTF-8 sequence, in bytes. */
const LONGEST_SEQUENCE = 4;

/**
 * Detects the encoding of a file from its bytes, in pieces of any size:
 *
 * - `binary` if it begins with the signature of a type (see signatures.ts);
 * - `utf-16le` or `utf-16be` by its byte order mark, `utf-8` if all of it is valid UTF-8. In both
 *   cases at most one character in ten may be a control character, in the first 8,000 bytes and in
 *   the whole file;
 * - an older encoding by its letters (see legacy-encoding.ts), such as `windows-1252`, if the first
 *   1,445 bytes contain no control characters and at most one byte in a hundred after them is one;
 * - `binary` otherwise.
 */
export class EncodingDetector {
  /** The first piece, while it is shorter than a signature. */
  #begin: Buffer = Buffer.alloc(0);
  #size = 0;
  #isBegun = false;
  #signed = false;
  #utf16: 'utf-16le' | 'utf-16be' | undefined;
  #read = 0;
  #controls = 0;
  #controlsInWindow = 0;
  #controlsSniffed = 0;
  #validUtf8 = true;
  /** An incomplete UTF-8 sequence or UTF-16 unit at the end of the last piece. */
  #cut: Buffer = Buffer.alloc(0);
  /** The beginning of the text, from its first byte above 0x7F. */
  #sample: Buffer = Buffer.alloc(0);

  /** Processes the next piece. Keeps no reference to it. */
  write(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#isBegun) {
      this.#writeOn(piece);
      return;
    }
    this.#begin = Buffer.concat([this.#begin, piece]);
    if (this.#size >= SIGNATURE_BYTES) this.#start();
  }

  /** Returns the encoding; `utf-8` for an empty file. */
  end(): Encoding {
    if (!this.#isBegun) this.#start();
    if (this.#signed) return 'binary';
    if (this.#utf16 !== undefined) {
      const isWhole = this.#size % 2 === 0;
      return isWhole && this.#isText(2) ? this.#utf16 : 'binary';
    }
    if (this.#validUtf8 && this.#cut.length === 0) return this.#isText(1) ? 'utf-8' : 'binary';
    const isText =
      this.#controlsSniffed === 0 && this.#controls <= this.#size * MAX_CONTROL_SHARE_AFTER;
    return isText ? legacyEncodingOf(this.#sample) : 'binary';
  }

  #isText(bytesPerCharacter: number): boolean {
    const most = MAX_CONTROL_SHARE / bytesPerCharacter;
    return (
      this.#controls <= this.#size * most &&
      this.#controlsInWindow <= Math.min(this.#size, WINDOW_BYTES) * most
    );
  }

  #start(): void {
    this.#isBegun = true;
    this.#signed = isSigned(this.#begin);
    this.#utf16 = markOf(this.#begin);
    this.#writeOn(this.#begin);
    this.#begin = Buffer.alloc(0);
  }

  #writeOn(piece: Buffer): void {
    if (this.#signed) return;
    if (this.#utf16 !== undefined) this.#writeUtf16(piece, this.#utf16);
    else this.#writeBytes(piece);
  }

  #writeBytes(piece: Buffer): void {
    this.#countControls(piece);
    this.#addToSample(piece);
    if (!this.#validUtf8) return;
    const rest = this.#cut.length > 0 ? Buffer.concat([this.#cut, piece]) : piece;
    const whole = rest.length - cutLength(rest);
    this.#validUtf8 = isUtf8(rest.subarray(0, whole));
    this.#cut = Buffer.from(rest.subarray(whole));
  }

  #addToSample(piece: Buffer): void {
    const room = SAMPLE_BYTES - this.#sample.length;
    if (room === 0) return;
    const part = this.#sample.length === 0 ? withoutAsciiHead(piece) : piece;
    if (part.length > 0) this.#sample = Buffer.concat([this.#sample, part.subarray(0, room)]);
  }

  #countControls(piece: Buffer): void {
    const controls = controlsIn(piece, piece.length);
    if (controls > 0) {
      this.#controls += controls;
      this.#controlsInWindow += controlsIn(piece, WINDOW_BYTES - this.#read);
      this.#controlsSniffed += controlsIn(piece, SNIFFED_BYTES - this.#read);
    }
    this.#read += piece.length;
  }

  #writeUtf16(piece: Buffer, encoding: 'utf-16le' | 'utf-16be'): void {
    const units = this.#cut.length > 0 ? Buffer.concat([this.#cut, piece]) : piece;
    const end = units.length - (units.length % 2);
    const [high, low] = encoding === 'utf-16le' ? [1, 0] : [0, 1];
    for (let i = 0; i < end; i += 2) {
      if (units[i + high] !== 0 || IS_CONTROL[units[i + low] ?? 0] !== 1) continue;
      this.#controls += 1;
      if (this.#read + i < WINDOW_BYTES) this.#controlsInWindow += 1;
    }
    this.#read += end;
    this.#cut = Buffer.from(units.subarray(end));
  }
}

/** Counts the control characters in the first `end` bytes. */
function controlsIn(bytes: Buffer, end: number): number {
  let controls = 0;
  for (let i = Math.min(bytes.length, end) - 1; i >= 0; i -= 1)
    controls += IS_CONTROL[bytes[i] ?? 0] ?? 0;
  return controls;
}

function markOf(head: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  return undefined;
}

/**
 * Returns the length in bytes of the UTF-8 sequence that begins with `lead`; 1 if no sequence
 * begins with it.
 */
function sequenceLength(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 1;
}

/** Returns the number of bytes at the end of `bytes` that begin an incomplete sequence. */
function cutLength(bytes: Buffer): number {
  for (let length = 1; length < LONGEST_SEQUENCE && length <= bytes.length; length += 1) {
    const lead = bytes[bytes.length - length] ?? 0;
    if (lead >= 0x80 && lead <= 0xbf) continue;
    return sequenceLength(lead) > length ? length : 0;
  }
  return 0;
}

export interface Decoder {
  /** Like `TextDecoder.decode`. Without arguments it ends the stream. */
  decode(chunk?: Uint8Array, options?: { readonly stream?: boolean }): string;
}

/** Returns a decoder of text files. It drops a byte order mark. */
export function decoderOf(encoding: Encoding): Decoder {
  if (encoding === 'binary' || encoding === 'document' || encoding === 'unknown-8bit')
    throw new Error(`${encoding} content has no text of its own`);
  return encoding === 'windows-1252' ? windows1252 : new TextDecoder(encoding);
}

/** Characters of the bytes 0x80 to 0x9F (WHATWG Encoding, index windows-1252). */
const WINDOWS_1252_HIGH = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/**
 * Corrects windows-1252 text that was decoded as ISO 8859-1. That encoding has control characters
 * at 0x80 to 0x9F, which nobody writes. Some versions of Node's TextDecoder decode windows-1252
 * that way (seen in 20.20).
 */
export function fromLatin1(text: string): string {
  return text.replace(/[\u0080-\u009f]/g, (c) => WINDOWS_1252_HIGH.charAt(c.charCodeAt(0) - 0x80));
}

const windows1252: Decoder = {
  decode: (chunk = new Uint8Array()) =>
    fromLatin1(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')),
};
