import { deflateSync } from 'node:zlib';
import { strToU8, zipSync } from 'fflate';

/**
 * Files of all formats that readers read, made by hand. Each contains the words that it is given.
 */

type Parts = Readonly<Record<string, string>>;

export function zipped(parts: Parts): Uint8Array {
  const entries = Object.entries(parts).map(([name, text]) => [name, strToU8(text)] as const);
  // OpenDocument and EPUB require their type first and uncompressed.
  return zipSync(
    Object.fromEntries(
      entries.map(([name, bytes]) => [name, [bytes, { level: name === 'mimetype' ? 0 : 6 }]]),
    ),
  );
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const CORE = `<cp:coreProperties><dc:title>Minutes &amp; more</dc:title><dc:creator>Ada L.</dc:creator>
  <dcterms:created>2025-02-03T04:05:06Z</dcterms:created><dc:language>en-GB</dc:language></cp:coreProperties>`;

export function docx(...paragraphs: readonly string[]): Uint8Array {
  const body = paragraphs.map(
    (text) =>
      `<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>${escaped(text)}</w:t></w:r></w:p>`,
  );
  return zipped({
    '[Content_Types].xml': '<Types/>',
    'word/document.xml': `<?xml version="1.0"?><w:document><w:body>${body.join('')}
      <w:p><w:r><w:t>left</w:t><w:tab/><w:t>right</w:t><w:br/><w:t>below</w:t><w:delText>struck</w:delText></w:r></w:p></w:body></w:document>`,
    'word/footnotes.xml': '<w:footnotes><w:p><w:r><w:t>a footnote</w:t></w:r></w:p></w:footnotes>',
    'docProps/core.xml': CORE,
  });
}

export function pptx(...slides: readonly string[]): Uint8Array {
  const all = slides.map((text, i) => [
    `ppt/slides/slide${i + 1}.xml`,
    `<p:sld><a:p><a:r><a:t>${escaped(text)}</a:t></a:r></a:p></p:sld>`,
  ]);
  return zipped({
    '[Content_Types].xml': '<Types/>',
    ...Object.fromEntries(all),
    'ppt/notesSlides/notesSlide1.xml': '<p:notes><a:p><a:r><a:t>a note</a:t></a:r></a:p></p:notes>',
    'docProps/core.xml': CORE,
  });
}

export function xlsx(strings: readonly string[]): Uint8Array {
  const cells = strings.map((_, i) => `<c t="s"><v>${i}</v></c>`).join('');
  return zipped({
    '[Content_Types].xml': '<Types/>',
    'xl/workbook.xml': '<workbook><sheets><sheet name="Prices"/></sheets></workbook>',
    'xl/sharedStrings.xml': `<sst>${strings.map((text) => `<si><r><t>${escaped(text)}</t></r><rPh><t>spoken</t></rPh></si>`).join('')}</sst>`,
    'xl/worksheets/sheet1.xml': `<worksheet><row>${cells}<c><v>12.5</v></c></row>
      <row><c t="inlineStr"><is><t>inline</t></is></c></row></worksheet>`,
    'docProps/core.xml': CORE,
  });
}

export function openDocument(
  kind: 'text' | 'spreadsheet' | 'presentation',
  ...paragraphs: readonly string[]
): Uint8Array {
  const body = paragraphs.map((text) => `<text:p>${escaped(text)}</text:p>`).join('');
  return zipped({
    mimetype: `application/vnd.oasis.opendocument.${kind}`,
    'content.xml': `<office:document-content><text:tracked-changes><text:p>struck</text:p></text:tracked-changes>${body}
      <text:p>left<text:tab/>right<text:line-break/><text:span>below</text:span></text:p></office:document-content>`,
    'meta.xml': `<office:meta><dc:title>Minutes</dc:title><meta:initial-creator>Ada L.</meta:initial-creator><dc:date>2025-02-03T04:05:06</dc:date></office:meta>`,
    'META-INF/manifest.xml': '<manifest:manifest/>',
  });
}

export function epub(...pages: readonly string[]): Uint8Array {
  const names = pages.map((_, i) => `page ${i}.xhtml`);
  return zipped({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml':
      '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    'OPS/book.opf': `<package><metadata><dc:title>A book</dc:title><dc:creator>Ada L.</dc:creator><dc:language>de</dc:language></metadata>
      <manifest>${names.map((name, i) => `<item id="p${i}" href="${encodeURIComponent(name)}"/>`).join('')}</manifest>
      <spine>${names
        .map((_, i) => `<itemref idref="p${i}"/>`)
        .reverse()
        .join('')}</spine></package>`,
    ...Object.fromEntries(
      pages.map((text, i) => [
        `OPS/${names[i]}`,
        `<html><head><title>t</title></head><body><p>${escaped(text)}</p></body></html>`,
      ]),
    ),
  });
}

/** @param text in Latin-1 */
export function rtf(text: string): Uint8Array {
  return Buffer.from(
    `{\\rtf1\\ansi\\ansicpg1252\\deff0{\\fonttbl{\\f0\\fswiss Arial;}{\\f1\\fcharset204 Arial Cyr;}}
{\\info{\\title Minutes}{\\author Ada L.}}\\pard ${text}\\par
{\\f1 \\'cf\\'f0\\'e8\\'e2\\'e5\\'f2} \\u8364? {\\*\\generator Nobody;}{\\pict\\pngblip 89504e47}M\\'fcller\\par}`,
    'latin1',
  );
}

/** Makes a PDF with one page per text. */
export function pdf(...pages: readonly string[]): Uint8Array {
  return pdfWith(
    pages.map((text) => ({
      stream: Buffer.from(
        text === '' ? '' : `BT /F1 12 Tf 72 720 Td (${text.replace(/[()\\]/g, '\\$&')}) Tj ET`,
        'latin1',
      ),
    })),
  );
}

/** Makes a PDF of one page with this content stream, as it is stored in the file. */
export function pdfOf(
  stream: Uint8Array,
  filter: string,
  font?: string,
  producer?: string,
): Uint8Array {
  return pdfWith([{ stream, filter }], font, producer);
}

/** Makes a PDF whose pages have no text but take long to read: they draw many empty shapes. */
export function slowPdf(pages: number, shapes: number): Uint8Array {
  const stream = deflateSync(Buffer.from('q Q '.repeat(shapes)));
  return pdfWith(Array.from({ length: pages }, () => ({ stream, filter: '/Filter /FlateDecode' })));
}

const HELVETICA = '/Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding';
/** A font of TeX: no letters with accents, but accents and ligatures. */
export const CMR10 = `/Subtype /Type1 /BaseFont /CMR10 /Encoding << /Type /Encoding /Differences
  [16 /dotlessi 18 /grave /acute /caron 24 /cedilla 28 /fi /fl /ffi 94 /circumflex 126 /tilde /dieresis] >>`;
/** A font of Japanese characters, whose code table is not in the PDF. */
export const RYUMIN = `/Subtype /Type0 /BaseFont /Ryumin-Light /Encoding /90ms-RKSJ-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0
  /BaseFont /Ryumin-Light /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> /FontDescriptor << /Type /FontDescriptor
  /FontName /Ryumin-Light /Flags 6 >> >>]`;

function pdfWith(
  pages: readonly { readonly stream: Uint8Array; readonly filter?: string }[],
  font = HELVETICA,
  producer = 'by hand',
): Uint8Array {
  const objects: (string | Uint8Array)[][] = [
    ['<< /Type /Catalog /Pages 2 0 R /Lang (en) >>'],
    [
      `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, i) => `${5 + 2 * i} 0 R`).join(' ')}] >>`,
    ],
    [`<< /Type /Font ${font} >>`],
    [
      `<< /Title (Minutes) /Author (Ada L.) /Producer (${producer}) /CreationDate (D:20250203040506+01'00') >>`,
    ],
  ];
  for (const { stream, filter = '' } of pages) {
    const content = objects.length + 2;
    objects.push(
      [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${content} 0 R >>`,
      ],
      [`<< /Length ${stream.length} ${filter} >>\nstream\n`, stream, '\nendstream'],
    );
  }
  return pdfOfObjects(objects);
}

/** Makes a PDF of these objects. The first is its catalog, and the fourth what describes it. */
export function pdfOfObjects(objects: readonly (readonly (string | Uint8Array)[])[]): Uint8Array {
  const pieces = [Buffer.from('%PDF-1.4\n')];
  let size = pieces[0]?.length ?? 0;
  const add = (piece: string | Uint8Array) => {
    const bytes = typeof piece === 'string' ? Buffer.from(piece, 'latin1') : Buffer.from(piece);
    pieces.push(bytes);
    size += bytes.length;
  };
  const starts = objects.map((object, i) => {
    const at = size;
    for (const piece of [`${i + 1} 0 obj\n`, ...object, '\nendobj\n']) add(piece);
    return at;
  });
  const table = starts.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  const last = size;
  add(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`);
  add(
    `trailer << /Size ${objects.length + 1} /Root 1 0 R /Info 4 0 R >>\nstartxref\n${last}\n%%EOF\n`,
  );
  return Buffer.concat(pieces);
}

/** Returns the archive with another declared size for one entry. */
export function declaring(archive: Uint8Array, name: string, bytes: number): Uint8Array {
  const changed = Buffer.from(archive);
  // In the central directory, the name is 46 bytes after its signature, and the size 24.
  for (
    let at = changed.indexOf('PK\x01\x02');
    at !== -1;
    at = changed.indexOf('PK\x01\x02', at + 1)
  )
    if (changed.toString('latin1', at + 46, at + 46 + name.length) === name)
      changed.writeUInt32LE(bytes, at + 24);
  return changed;
}

export function eml(
  body: string,
  attachment?: { readonly name: string; readonly bytes: Uint8Array },
): Uint8Array {
  const head = `From: Ada Lovelace <ada@example.org>\r\nTo: bob@example.org\r\nSubject: =?utf-8?q?Br=C3=BCcke?=\r\nDate: Mon, 3 Feb 2025 04:05:06 +0000\r\nMIME-Version: 1.0\r\n`;
  if (attachment === undefined)
    return Buffer.from(`${head}Content-Type: text/plain; charset=utf-8\r\n\r\n${body}\r\n`);
  return Buffer.from(
    `${head}Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>${body}</p>\r\n` +
      `--x\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename="${attachment.name}"\r\n` +
      `Content-Transfer-Encoding: base64\r\n\r\n${Buffer.from(attachment.bytes).toString('base64')}\r\n--x--\r\n`,
  );
}
