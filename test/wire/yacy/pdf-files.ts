import { deflateSync } from 'node:zlib';

/** A PDF that shows one line. */
export function pdfOf(line: string): string {
  return fileOf('', `BT /F1 12 Tf 72 720 Td (${line}) Tj ET`);
}

/** The same without a byte that is not ASCII, as reportlab writes it. */
export function asciiPdfOf(line: string): string {
  const stream = deflateSync(`BT /F1 12 Tf 72 720 Td (${line}) Tj ET`);
  return fileOf('/Filter [ /ASCII85Decode /FlateDecode ] ', ascii85(stream));
}

/** The same with U+FFFF behind the line: the index of the peer refuses it. */
export function poisonPdfOf(line: string): string {
  const text = Buffer.from(`\ufeff${line} \uffff`, 'utf16le').swap16().toString('hex');
  return fileOf('', `BT /F1 12 Tf 72 720 Td <${text}> Tj ET`);
}

/** As programs write PDF that is to be ASCII. */
export function ascii85(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 4) {
    const group = bytes.subarray(at, at + 4);
    let value = Buffer.concat([group, Buffer.alloc(4 - group.length)]).readUInt32BE();
    let digits = '';
    for (let n = 0; n < 5; n += 1) {
      digits = String.fromCharCode((value % 85) + 33) + digits;
      value = Math.floor(value / 85);
    }
    text += digits === '!!!!!' && group.length === 4 ? 'z' : digits.slice(0, group.length + 1);
  }
  return `${text}~>`;
}

function fileOf(filter: string, stream: string): string {
  return [
    '%PDF-1.4',
    '1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj',
    '2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj',
    '3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R >> endobj',
    `4 0 obj\n<< ${filter}/Length ${stream.length} >>\nstream\n${stream}\nendstream\nendobj`,
    'trailer << /Root 1 0 R >>',
    '%%EOF\n',
  ].join('\n');
}
