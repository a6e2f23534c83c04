/** Bytes that are encoded at once; a multiple of 3, so that only the last piece of a text is padded. */
const PIECE_BYTES = 48 * 1024;

/** How long so many bytes become in base64, with padding. */
export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/**
 * Writes a text into `target` from `start` on: base64 with padding, in one line.
 *
 * @returns where it ends
 */
export function base64Into(bytes: Uint8Array, target: Uint8Array, start: number): number {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const into = Buffer.from(target.buffer, target.byteOffset, target.byteLength);
  let at = start;
  for (let from = 0; from < source.length; from += PIECE_BYTES) {
    at += into.write(source.toString('base64', from, from + PIECE_BYTES), at, 'latin1');
  }
  return at;
}

/** Bytes in base64. */
export function ofBytes(bytes: Uint8Array): Buffer {
  const target = Buffer.allocUnsafe(base64Length(bytes.length));
  return target.subarray(0, base64Into(bytes, target, 0));
}

/** One text that comes in pieces cut anywhere: up to two bytes wait for the next. */
export class Base64Pieces {
  #waiting: Uint8Array = Buffer.alloc(0);

  take(piece: Uint8Array): Buffer {
    const bytes = this.#waiting.length === 0 ? piece : Buffer.concat([this.#waiting, piece]);
    const whole = bytes.length - (bytes.length % 3);
    // A copy: whoever gave the piece may use its memory again.
    this.#waiting = Buffer.from(bytes.subarray(whole));
    return ofBytes(bytes.subarray(0, whole));
  }

  end(): Buffer {
    return ofBytes(this.#waiting);
  }
}
