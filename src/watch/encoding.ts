import { isUtf8 } from 'node:buffer';
import type { Encoding } from '../state/entry.js';

/** Control characters that no text file contains: all of C0 but BEL to CR, SUB (the end of old DOS files) and ESC. */
const TELL_TALE = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 && (byte < 0x07 || byte > 0x0d) && byte !== 0x1a && byte !== 0x1b ? 1 : 0,
);

/** A byte order mark of UTF-16, in bytes. */
const MARK_BYTES = 2;
/** The longest UTF-8 sequence, in bytes. */
const LONGEST_SEQUENCE = 4;

/**
 * Finds out how a file is encoded, from its bytes in pieces of any size:
 *
 * - `utf-16le` or `utf-16be` by its byte order mark, unless what follows cannot be text: `binary`;
 * - with a NUL: `binary`;
 * - valid UTF-8: `utf-8`, also with other rare control characters (chat logs have them);
 * - with a control character that text does not have: `binary`;
 * - anything else: `windows-1252`, in which every byte means something.
 */
export class EncodingDetector {
  /** The first piece, as long as it is shorter than a byte order mark. */
  #begin: Buffer = Buffer.alloc(0);
  #size = 0;
  #utf16: 'utf-16le' | 'utf-16be' | undefined;
  #nul = false;
  #tellTale = false;
  #validUtf8 = true;
  /** The beginning of a UTF-8 sequence, or of a UTF-16 unit, whose end is yet to come. */
  #cut: Buffer = Buffer.alloc(0);

  /** Takes the next piece. The piece is not kept. */
  write(piece: Buffer): void {
    if (piece.length === 0) return;
    const isBegun = this.#size >= MARK_BYTES;
    this.#size += piece.length;
    if (isBegun) {
      this.#writeOn(piece);
      return;
    }
    this.#begin = Buffer.concat([this.#begin, piece]);
    if (this.#size < MARK_BYTES) return;
    this.#utf16 = markOf(this.#begin);
    this.#writeOn(this.#begin);
  }

  /** What it was; for no bytes at all `utf-8`. */
  end(): Encoding {
    if (this.#size < MARK_BYTES) this.#writeOn(this.#begin);
    if (this.#utf16 !== undefined) {
      return this.#tellTale || this.#size % 2 === 1 ? 'binary' : this.#utf16;
    }
    if (this.#nul) return 'binary';
    if (this.#validUtf8 && this.#cut.length === 0) return 'utf-8';
    return this.#tellTale ? 'binary' : 'windows-1252';
  }

  #writeOn(piece: Buffer): void {
    if (this.#utf16 !== undefined) {
      this.#writeUtf16(piece, this.#utf16);
      return;
    }
    if (!this.#nul && piece.includes(0)) this.#nul = true;
    this.#writeBytes(piece);
  }

  #writeBytes(piece: Buffer): void {
    if (!this.#nul && !this.#tellTale) this.#tellTale = hasTellTale(piece);
    if (!this.#validUtf8 || this.#nul) return;
    let rest = piece;
    if (this.#cut.length > 0) {
      const missing = sequenceLength(this.#cut[0] ?? 0) - this.#cut.length;
      const joined = Buffer.concat([this.#cut, piece.subarray(0, missing)]);
      if (piece.length < missing && isCutSequence(joined)) {
        this.#cut = joined;
        return;
      }
      this.#cut = Buffer.alloc(0);
      if (!isUtf8(joined)) {
        this.#validUtf8 = false;
        return;
      }
      rest = piece.subarray(missing);
    }
    const whole = rest.length - cutLength(rest);
    this.#validUtf8 = isUtf8(rest.subarray(0, whole));
    this.#cut = Buffer.from(rest.subarray(whole));
  }

  #writeUtf16(piece: Buffer, encoding: 'utf-16le' | 'utf-16be'): void {
    if (this.#tellTale) return;
    const units = this.#cut.length > 0 ? Buffer.concat([this.#cut, piece]) : piece;
    const end = units.length - (units.length % 2);
    const [high, low] = encoding === 'utf-16le' ? [1, 0] : [0, 1];
    for (let i = 0; i < end; i += 2) {
      if (units[i + high] === 0 && TELL_TALE[units[i + low] ?? 0] === 1) {
        this.#tellTale = true;
        return;
      }
    }
    this.#cut = Buffer.from(units.subarray(end));
  }
}

function hasTellTale(bytes: Buffer): boolean {
  for (let i = 0; i < bytes.length; i += 1) if (TELL_TALE[bytes[i] ?? 0] === 1) return true;
  return false;
}

function markOf(head: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be';
  return undefined;
}

/** How many bytes the UTF-8 sequence has that begins with `lead`; 1 for a byte that begins none. */
function sequenceLength(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 1;
}

/** How many bytes at the end of `bytes` begin a sequence that is not complete. */
function cutLength(bytes: Buffer): number {
  for (let length = 1; length < LONGEST_SEQUENCE && length <= bytes.length; length += 1) {
    const lead = bytes[bytes.length - length] ?? 0;
    if (lead >= 0x80 && lead <= 0xbf) continue;
    return sequenceLength(lead) > length ? length : 0;
  }
  return 0;
}

/** Whether the bytes can still become a valid sequence: all after the first are continuations. */
function isCutSequence(bytes: Buffer): boolean {
  return bytes.subarray(1).every((byte) => byte >= 0x80 && byte <= 0xbf);
}
