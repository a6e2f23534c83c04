import { strToU8, zipSync } from 'fflate';
import { escapeText } from '../lib/markup.js';

/**
 * Tiny documents in several formats that programs and the parsers of peers read. Each contains some
 * lines of ASCII.
 */

/** A PDF of one page. */
export function pdfOf(lines: readonly string[]): Uint8Array {
  const shown = lines.map((line) => `(${line.replace(/[\\()]/g, '\\$&')}) Tj T*`).join('\n');
  const stream = `BT /F1 10 Tf 14 TL 72 720 Td\n${shown}\nET`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
  ];
  let file = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n';
  const places: string[] = [];
  objects.forEach((object, i) => {
    places.push(`${String(file.length).padStart(10, '0')} 00000 n \n`);
    file += `${i + 1} 0 obj\n${object}\nendobj\n`;
  });
  const size = objects.length + 1;
  const end = `xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}trailer\n<< /Size ${size} /Root 1 0 R >>\n`;
  return Buffer.from(`${file}${end}startxref\n${file.length}\n%%EOF\n`, 'latin1');
}

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const WORD = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';
const SHEET = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const TYPE = 'application/vnd.openxmlformats-officedocument';

/** A Word document with a paragraph for each line. */
export function wordOf(lines: readonly string[]): Uint8Array {
  const body = lines.map((line) => `<w:p><w:r><w:t>${escapeText(line)}</w:t></w:r></w:p>`).join('');
  return packageOf('word/document.xml', `${TYPE}.wordprocessingml.document.main+xml`, {
    'word/document.xml': `<w:document xmlns:w="${WORD}"><w:body>${body}</w:body></w:document>`,
  });
}

/** An Excel workbook of one sheet, with a row for each line. */
export function sheetOf(lines: readonly string[]): Uint8Array {
  const rows = lines.map(
    (line, i) =>
      `<row r="${i + 1}"><c r="A${i + 1}" t="inlineStr"><is><t>${escapeText(line)}</t></is></c></row>`,
  );
  const sheets = '<sheets><sheet name="Canary" sheetId="1" r:id="rId1"/></sheets>';
  return packageOf('xl/workbook.xml', `${TYPE}.spreadsheetml.sheet.main+xml`, {
    'xl/workbook.xml': `<workbook xmlns="${SHEET}" xmlns:r="${OFFICE}">${sheets}</workbook>`,
    'xl/_rels/workbook.xml.rels': relationOf(`${OFFICE}/worksheet`, 'worksheets/sheet1.xml'),
    'xl/worksheets/sheet1.xml': `<worksheet xmlns="${SHEET}"><sheetData>${rows.join('')}</sheetData></worksheet>`,
  });
}

/** An e-mail of plain text. */
export function mailOf(lines: readonly string[]): Uint8Array {
  const head = [
    'From: peersync <canary@peersync.invalid>',
    'To: canary@peersync.invalid',
    'Subject: Canary',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=us-ascii',
  ];
  return Buffer.from([...head, '', ...lines, ''].join('\r\n'));
}

/**
 * @param main the main part of the package
 * @param type the content type of that part
 */
function packageOf(
  main: string,
  type: string,
  parts: Readonly<Record<string, string>>,
): Uint8Array {
  const sheet = `<Override PartName="/xl/worksheets/sheet1.xml" ContentType="${TYPE}.spreadsheetml.worksheet+xml"/>`;
  const types = [
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>',
    '<Default Extension="xml" ContentType="application/xml"/>',
    `<Override PartName="/${main}" ContentType="${type}"/>`,
    'xl/worksheets/sheet1.xml' in parts ? sheet : '',
  ];
  const all: Readonly<Record<string, string>> = {
    '[Content_Types].xml': `<Types xmlns="${PACKAGE}/content-types">${types.join('')}</Types>`,
    '_rels/.rels': relationOf(`${OFFICE}/officeDocument`, main),
    ...parts,
  };
  const files = Object.entries(all).map(([name, xml]) => [name, strToU8(XML + xml)] as const);
  return zipSync(Object.fromEntries(files), { mtime: '2026-01-01T00:00:00' });
}

function relationOf(type: string, target: string): string {
  const relation = `<Relationship Id="rId1" Type="${type}" Target="${target}"/>`;
  return `<Relationships xmlns="${PACKAGE}/relationships">${relation}</Relationships>`;
}
