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
