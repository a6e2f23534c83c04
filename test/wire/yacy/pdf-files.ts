/** A PDF that shows one line. */
export function pdfOf(line: string): string {
  return fileOf(`BT /F1 12 Tf 72 720 Td (${line}) Tj ET`);
}

/** The same in hexadecimal: the file is ASCII, and no word of the line is in it. */
export function hexPdfOf(line: string): string {
  return fileOf(`BT /F1 12 Tf 72 720 Td <${Buffer.from(line, 'latin1').toString('hex')}> Tj ET`);
}

/** The same with U+FFFF behind the line: the index of the peer refuses it. */
export function poisonPdfOf(line: string): string {
  const text = Buffer.from(`\ufeff${line} \uffff`, 'utf16le').swap16().toString('hex');
  return fileOf(`BT /F1 12 Tf 72 720 Td <${text}> Tj ET`);
}

function fileOf(stream: string): string {
  return [
    '%PDF-1.4',
    '1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj',
    '2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj',
    '3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R >> endobj',
    `4 0 obj\n<< /Length ${stream.length} >>\nstream\n${stream}\nendstream\nendobj`,
    'trailer << /Root 1 0 R >>',
    '%%EOF\n',
  ].join('\n');
}
