import { isUtf8 } from 'node:buffer';

/**
 * Repairs a message that `msgconvert` wrote, line by line. It mixes letters with bytes of UTF-8:
 *
 * - A header field that needs Latin-1 is in Latin-1, while bodies are in UTF-8.
 * - If a field has any other letter, such as a dash, the whole message is encoded in UTF-8 once
 *   more.
 */
export function repairedMessage(written: Buffer): Buffer {
  const lines = written.toString('latin1').split('\n').map(repairedLine);
  return Buffer.from(lines.join('\n'), 'latin1');
}

/** @param line each character stands for a byte */
function repairedLine(line: string): string {
  const bytes = Buffer.from(line, 'latin1');
  if (!isUtf8(bytes)) return Buffer.from(line).toString('latin1');
  const inner = bytes.toString();
  const isTwice = /[\x80-\xff]/.test(inner) && !/[^\0-\xff]/.test(inner);
  return isTwice && isUtf8(Buffer.from(inner, 'latin1')) ? inner : line;
}
