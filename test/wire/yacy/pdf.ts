/**
 * The strings that a simple PDF shows, in parentheses or hexadecimal; undefined for one that is
 * broken, or shows none.
 */
export function pdfText(data: Buffer): string | undefined {
  const file = data.toString('latin1');
  if (!file.startsWith('%PDF-') || !file.includes('%%EOF')) return undefined;
  const shown = [...file.matchAll(/(?:\(([^)]*)\)|<([\da-f]*)>) Tj/gi)].map(
    ([, literal, hex = '']) =>
      textOf(literal === undefined ? Buffer.from(hex, 'hex') : Buffer.from(literal, 'latin1')),
  );
  return shown.join(' ') || undefined;
}

/** UTF-16 where it begins with U+FEFF, else a byte a character. */
function textOf(bytes: Buffer): string {
  if (bytes[0] !== 0xfe || bytes[1] !== 0xff) return bytes.toString('latin1');
  return new TextDecoder('utf-16be').decode(bytes);
}
