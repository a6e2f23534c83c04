import { isUtf8 } from 'node:buffer';
import type { TableFault } from './read.js';

const LINE_FEED = 10;

/** The text of a file in UTF-8, without its byte order mark; or where it is not UTF-8. */
export function decode(bytes: Uint8Array): { readonly text: string } | { readonly fault: TableFault } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return { text: buffer.toString().replace(/^\ufeff/, '') };
  const [first, second] = buffer;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return { fault: { line: 1, column: 1, what: 'UTF-16: save the file as UTF-8' } };
  }
  for (let from = 0, line = 1; ; line += 1) {
    const lineFeed = buffer.indexOf(LINE_FEED, from);
    const bytesOfLine = buffer.subarray(from, lineFeed === -1 ? buffer.length : lineFeed);
    if (!isUtf8(bytesOfLine)) {
      return {
        fault: { line, column: columnOfFault(bytesOfLine), what: 'no UTF-8: save the file as UTF-8' },
      };
    }
    from = lineFeed + 1;
  }
}

/** The column of the first byte that does not come back as it was. */
function columnOfFault(line: Buffer): number {
  const back = Buffer.from(line.toString());
  const at = line.findIndex((byte, i) => byte !== back[i]);
  return [...line.subarray(0, at).toString()].length + 1;
}
