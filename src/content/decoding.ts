import type { Encoding } from '../lib/file.js';

export interface Decoder {
  /** As TextDecoder's; without arguments it ends the stream. */
  decode(chunk?: Uint8Array, options?: { readonly stream?: boolean }): string;
}

/** What turns the bytes of a text file into text; a byte order mark is left out. */
export function decoderOf(encoding: Encoding): Decoder {
  if (encoding === 'binary' || encoding === 'document')
    throw new Error(`${encoding} content has no text of its own`);
  return encoding === 'windows-1252' ? windows1252 : new TextDecoder(encoding);
}

/** What the bytes 0x80 to 0x9F stand for (WHATWG Encoding, index windows-1252). */
const WINDOWS_1252_HIGH = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ';

/** Our own, for Node's TextDecoder takes windows-1252 for ISO 8859-1 in some versions (seen in 20.20). */
const windows1252: Decoder = {
  decode: (chunk = new Uint8Array()) =>
    Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      .toString('latin1')
      .replace(/[\u0080-\u009f]/g, (c) => WINDOWS_1252_HIGH.charAt(c.charCodeAt(0) - 0x80)),
};
