import { spawnSync } from 'node:child_process';
import { deflateSync } from 'node:zlib';
import { DPI, type Picture, pictureOfPgm } from './pictures.js';

/** Pages of text: as a PDF, and as a picture of such a page, as a scanner makes it. */

/** A page of a PDF. */
export interface Page {
  /** The text that is drawn, as a content stream. */
  readonly text?: string;
  /** A picture of 300 dpi, which is as large as the page. */
  readonly picture?: Picture | Jpeg;
}

/** A picture that is compressed already. */
export interface Jpeg {
  readonly width: number;
  readonly height: number;
  readonly jpeg: Buffer;
}

/** The size of a page, in points (Letter). */
const WIDTH = 612;
const HEIGHT = 792;
const MARGIN = 66;
const FONT_POINTS = 11;
const LINE_POINTS = 15;
/** Number of characters that fit into a line, and into one of two columns. */
const LINE_CHARACTERS = 82;
const COLUMN_CHARACTERS = 38;
const COLUMN_GAP = 30;

/** Returns the content stream of a page with one column. @param degrees by which it is askew */
export function oneColumn(text: string, degrees = 0): string {
  return drawn(wrapped(text, LINE_CHARACTERS), MARGIN, degrees);
}

/** Returns the content stream of a page with two columns. */
export function twoColumns(text: string): string {
  const lines = wrapped(text, COLUMN_CHARACTERS);
  const half = Math.ceil(lines.length / 2);
  const second = MARGIN + (WIDTH - 2 * MARGIN + COLUMN_GAP) / 2;
  return `${drawn(lines.slice(0, half), MARGIN)}\n${drawn(lines.slice(half), second)}`;
}

function wrapped(text: string, characters: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > characters) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function drawn(lines: readonly string[], left: number, degrees = 0): string {
  const angle = (degrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle).toFixed(5), Math.sin(angle).toFixed(5)];
  const matrix = `${cos} ${sin} ${(-Number(sin)).toFixed(5)} ${cos} ${left} ${HEIGHT - MARGIN}`;
  const shown = lines.map((line) => `(${line.replace(/[()\\]/g, '\\$&')}) Tj T*`);
  return `BT /F1 ${FONT_POINTS} Tf ${LINE_POINTS} TL ${matrix} Tm ${shown.join(' ')} ET`;
}

/** Makes a PDF of pages. */
export function pdfOfPages(pages: readonly Page[]): Buffer {
  const objects: Buffer[] = [];
  const add = (...parts: readonly (string | Uint8Array)[]): number => {
    objects.push(
      Buffer.concat(
        parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
      ),
    );
    return objects.length;
  };
  const catalog = add('<< /Type /Catalog /Pages 2 0 R >>');
  // The list of pages is known at the end.
  const list = add('');
  const font = add(
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
  );
  const numbers = pages.map(({ picture, text = '' }) => {
    const image = picture === undefined ? undefined : add(...imageObject(picture));
    const points = (pixels: number) => Math.round((pixels * 72) / DPI);
    const [width, height] =
      picture === undefined ? [WIDTH, HEIGHT] : [points(picture.width), points(picture.height)];
    const stream = image === undefined ? text : `q ${width} 0 0 ${height} 0 0 cm /P1 Do Q ${text}`;
    const content = Buffer.from(stream, 'latin1');
    const contents = add(`<< /Length ${content.length} >>\nstream\n`, content, '\nendstream');
    const images = image === undefined ? '' : `/XObject << /P1 ${image} 0 R >>`;
    return add(
      `<< /Type /Page /Parent ${list} 0 R /MediaBox [0 0 ${width} ${height}] /Contents ${contents} 0 R`,
      ` /Resources << /Font << /F1 ${font} 0 R >> ${images} >> >>`,
    );
  });
  const kids = numbers.map((number) => `${number} 0 R`).join(' ');
  objects[list - 1] = Buffer.from(`<< /Type /Pages /Count ${pages.length} /Kids [${kids}] >>`);
  return fileOf(objects, catalog);
}

function imageObject(picture: Picture | Jpeg): readonly (string | Uint8Array)[] {
  const { height, width } = picture;
  const [bytes, filter, colours] =
    'jpeg' in picture
      ? [picture.jpeg, '/DCTDecode', '/DeviceRGB']
      : [deflateSync(picture.pixels, { level: 1 }), '/FlateDecode', '/DeviceGray'];
  return [
    `<< /Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace ${colours}`,
    ` /BitsPerComponent 8 /Filter ${filter} /Length ${bytes.length} >>\nstream\n`,
    bytes,
    '\nendstream',
  ];
}

function fileOf(objects: readonly Buffer[], catalog: number): Buffer {
  const pieces: Buffer[] = [Buffer.from('%PDF-1.4\n')];
  let size = 9;
  const add = (piece: Buffer) => {
    pieces.push(piece);
    size += piece.length;
  };
  const starts = objects.map((object, i) => {
    const at = size;
    add(Buffer.concat([Buffer.from(`${i + 1} 0 obj\n`), object, Buffer.from('\nendobj\n')]));
    return at;
  });
  const table = starts.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  const end = size;
  const count = objects.length + 1;
  add(Buffer.from(`xref\n0 ${count}\n0000000000 65535 f \n${table}`));
  add(Buffer.from(`trailer << /Size ${count} /Root ${catalog} 0 R >>\nstartxref\n${end}\n%%EOF\n`));
  return Buffer.concat(pieces);
}

/** Draws a page as a scanner would see it. Needs `pdftoppm`. */
export function pictureOf(stream: string): Picture {
  return pictureOfPgm(painted(stream, []));
}

/** Draws a page as a JPEG file. Needs `pdftoppm`. */
export function jpegOf(stream: string): Jpeg {
  const dots = (points: number) => Math.ceil((points * DPI) / 72);
  return {
    width: dots(WIDTH),
    height: dots(HEIGHT),
    jpeg: painted(stream, ['-jpeg', '-jpegopt', 'quality=85']),
  };
}

function painted(stream: string, options: readonly string[]): Buffer {
  const args = ['-gray', '-r', String(DPI), '-singlefile', ...options, '-'];
  const input = pdfOfPages([{ text: stream }]);
  const { error, status, stderr, stdout } = spawnSync('pdftoppm', args, {
    input,
    maxBuffer: 64 * 2 ** 20,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`pdftoppm failed: ${stderr}`);
  return stdout;
}
