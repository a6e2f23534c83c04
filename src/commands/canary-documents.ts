import { strToU8, zipSync } from 'fflate';
import { escapeText } from '../lib/markup.js';

/**
 * Tiny documents in several formats that programs and the parsers of peers read. Each contains some
 * lines of ASCII.
 */

/** A PDF of one page. */
function pdfOf(lines: readonly string[]): Uint8Array {
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
function wordOf(lines: readonly string[]): Uint8Array {
  const body = lines.map((line) => `<w:p><w:r><w:t>${escapeText(line)}</w:t></w:r></w:p>`).join('');
  return packageOf('word/document.xml', `${TYPE}.wordprocessingml.document.main+xml`, {
    'word/document.xml': `<w:document xmlns:w="${WORD}"><w:body>${body}</w:body></w:document>`,
  });
}

/** An Excel workbook of one sheet, with a row for each line. */
function sheetOf(lines: readonly string[]): Uint8Array {
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
function mailOf(lines: readonly string[]): Uint8Array {
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

/** A tiny document that shows whether a peer takes its kind, and the addresses of some folders. */
export type Canary = ReturnType<typeof canaryPlan>[number];

const GULLS = 'Gulls sleep on one leg and count the waves until morning.';
const GREETINGS =
  'Greetings from afar: Grüße aus Łódź und Kraków, with one word in each of two tongues.';
const ADDRESS = 'It shows whether this peer takes documents with an address such as this one.';
const GULLS_LOOK = { ascii: 'Gulls sleep on one leg', whole: 'Gulls sleep on one leg' };
const GREETINGS_LOOK = { ascii: 'Greetings from afar', whole: 'Grüße aus Łódź und Kraków' };

/** The functions that make a document of lines, by its kind. Other kinds are text. */
const DOCUMENTS: Readonly<Record<string, (lines: readonly string[]) => Uint8Array>> = {
  PDF: pdfOf,
  Word: wordOf,
  Excel: sheetOf,
  'e-mail': mailOf,
};

/**
 * Returns the documents to push: six kinds below `base`, and one below the URL of each folder that
 * lies elsewhere.
 */
export function canaryPlan(
  base: string,
  folders: readonly { readonly name: string; readonly url: string }[],
  now: number,
) {
  // The stamp distinguishes this canary from an earlier one.
  const stamp = new Date(now).toISOString();
  const canary = (what: string, url: string, text: string, sentence = GULLS_LOOK) => {
    const lines = [
      `This document (${what}) was pushed by peersync at ${stamp}.`,
      'It is a canary: it shows what this peer does with documents of its kind, and means nothing else.',
      text,
    ];
    const bytes = DOCUMENTS[what]?.(lines) ?? Buffer.from(`${lines.join('\n')}\n`);
    const name = url.slice(url.lastIndexOf('/') + 1);
    const wordsSent = lines.join(' ').split(/\s+/).length;
    return {
      /** `address`: only to show whether the peer takes the addresses of its folders. */
      kind: 'canary' as 'canary' | 'address',
      /** Whose addresses it has. */
      folders: [] as readonly string[],
      /** A part of a sentence in ASCII, and the rest of that sentence. */
      sentence,
      what,
      name,
      url,
      bytes,
      wordsSent,
    };
  };
  const below = folders.filter(({ url }) => base.startsWith(url));
  return [
    { ...canary('plain text', `${base}plain.txt`, GULLS), folders: below.map(({ name }) => name) },
    canary('PDF', `${base}document.pdf`, GULLS),
    canary('Word', `${base}document.docx`, GULLS),
    canary('Excel', `${base}table.xlsx`, GULLS),
    canary('e-mail', `${base}message.eml`, GULLS),
    canary('non-ASCII text', `${base}greetings.txt`, GREETINGS, GREETINGS_LOOK),
    ...folders
      .filter((folder) => !below.includes(folder))
      .map(({ name, url }) => ({
        ...canary('plain text', `${url}peersync-canary.txt`, ADDRESS),
        kind: 'address' as const,
        folders: [name],
      })),
  ];
}
