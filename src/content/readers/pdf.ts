import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PDFDocumentProxy, PDFPageProxy } from 'pdfjs-dist';
import type { ExtractedBy } from '../../lib/file.js';
import { PACKAGE_ROOT } from '../../lib/process.js';
import type { PageSize } from '../helpers/ocr.js';
import type { ReadAttachment } from './attachments.js';
import {
  DocumentError,
  type DocumentReader,
  type Extract,
  isReadWhole,
  joinHyphenated,
  joinPages,
  mayGoOn,
  type ReadContext,
  TextCollector,
} from './document-reader.js';
import { PdfAttachments } from './pdf-attachments.js';
import { pageText } from './pdf-text.js';
import { lackOf, noOcr, pageList, Scan } from './scan.js';

/**
 * The directory of the code tables (CMaps) by which fonts of Asian scripts number their characters.
 * The build copies it; the source uses that of PDF.js.
 */
const CODE_TABLES = ['dist/cmaps/', 'node_modules/pdfjs-dist/cmaps/']
  .map((directory) => join(PACKAGE_ROOT, directory))
  .find((directory) => existsSync(directory));

/** Ten letters or digits. A page with fewer of them is read by OCR. */
const MANY_CHARACTERS = /(?:[\p{L}\p{N}][^\p{L}\p{N}]*){10}/u;

/**
 * Size of a PDF, in bytes, above which the copy for OCR is written before PDF.js has its content.
 * Later, the content would be in memory twice for a moment.
 */
const LARGE_BYTES = 32 * 2 ** 20;

/**
 * Returns the reader of PDF. It reads page by page; a page without text is drawn and read by OCR.
 * Then it reads the files that are attached. No code in the file is run.
 */
export const pdfReader = (readAttachment: ReadAttachment): DocumentReader => ({
  name: 'PDF',
  read: async (bytes, context): Promise<Extract> => {
    const { getDocument, PDFDateString, VerbosityLevel } = await pdfJs();
    let document: PDFDocumentProxy | undefined;
    const { ocr } = context;
    const scan =
      isReadWhole(context) && ocr?.drawsPages
        ? new Scan(ocr, 'pdf', () => document?.getData() ?? bytes)
        : undefined;
    const attachments = new PdfAttachments(bytes);
    if (bytes.length > LARGE_BYTES) await scan?.copy();
    const task = getDocument({
      cMapUrl: CODE_TABLES,
      // PDF.js takes over the memory of an array that covers its whole buffer, and copies it
      // otherwise.
      data: new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength),
      disableFontFace: true,
      isEvalSupported: false,
      useSystemFonts: false,
      stopAtErrors: false,
      verbosity: VerbosityLevel.ERRORS,
    });
    try {
      document = await task.promise;
      const { found, pages } = await readPages({ attachments, document, scan }, context);
      const info = (await document.getMetadata()).info as Readonly<Record<string, unknown>>;
      const field = (name: string) => {
        const value = info[name];
        return typeof value === 'string' ? value.trim() || undefined : undefined;
      };
      const date = PDFDateString.toDateObject(
        field('ModDate') ?? field('CreationDate') ?? '',
      )?.getTime();
      const isOfTex = /TeX|dvips|dvipdf/.test(`${field('Creator')} ${field('Producer')}`);
      const lettered = isOfTex ? pages.map((page) => withAccents(joinHyphenated(page))) : undefined;
      return {
        ...joinPages(lettered ?? pages.map(joinHyphenated)),
        title: field('Title'),
        author: field('Author'),
        date,
        language: field('Language'),
        found,
        ...(isReadWhole(context) && {
          attached: await attachments.readAll(document, readAttachment, context),
        }),
      };
    } catch (error) {
      if (error instanceof Error && error.name === 'PasswordException')
        throw new DocumentError('DOCUMENT_ENCRYPTED', { why: 'it needs a password' });
      throw error;
    } finally {
      scan?.close();
      await task.destroy();
    }
  },
});

/** A PDF that is being read. */
interface OpenPdf {
  readonly document: PDFDocumentProxy;
  /** Takes the files of comments. */
  readonly attachments: PdfAttachments;
  /** Reads the pages without text; undefined if they are not read. */
  readonly scan: Scan | undefined;
}

/**
 * Reads the pages, up to the number of characters that is enough.
 * @throws DocumentError NO_OCR if no page has text, and OCR is missing
 */
async function readPages(
  { attachments, document, scan }: OpenPdf,
  context: ReadContext,
): Promise<{ readonly pages: readonly string[]; readonly found: Partial<ExtractedBy> }> {
  const { numPages: pages } = document;
  const { programs } = context.tools ?? {};
  const isOcrMissing = scan === undefined && programs?.ocr?.pdftoppm === undefined;
  const text = new TextCollector();
  const texts: string[] = [];
  const unread: number[] = [];
  let pagesWithoutText = 0;
  /** Why the first damaged page could not be read. */
  let damage: unknown;
  for (let number = 1; number <= pages && text.length <= context.enoughCharacters; number += 1) {
    if (!mayGoOn(context)) break;
    const page = await readPage(document, number, attachments);
    const isScan = page.size !== undefined && isNearlyEmpty(page.text);
    const drawn = isScan ? ((await scan?.pageOfPdf(number, page.size)) ?? '') : '';
    text.add(`${combined(page.text, drawn)}${page.notes}`);
    texts.push(text.takePage());
    if (isScan) pagesWithoutText += 1;
    damage ??= page.damage;
    const isDamaged = page.damage !== undefined && drawn === '';
    if (isDamaged || (isScan && isOcrMissing) || scan?.unread.at(-1) === number)
      unread.push(number);
    context.onPage({ page: number, pages });
  }
  const isEmpty = texts.every((each) => each.trim() === '');
  const failure = damage ?? scan?.failure;
  // The other pages of a document with damaged ones are worth more than nothing.
  if (isEmpty && failure !== undefined) throw failure;
  const isLacking = isOcrMissing && pagesWithoutText > 0;
  if (isLacking) context.tools?.lacks.add('ocr of pdf');
  if (isEmpty && isLacking) throw noOcr('a scan', programs);
  const leftOut = isLacking
    ? `Pages without text were not read, because ${lackOf(programs).missing}.`
    : scan?.leftOut;
  return {
    pages: texts,
    found: {
      pages,
      ...(unread.length > 0 && { unreadPages: pageList(unread) }),
      ...(leftOut !== undefined && { leftOut }),
    },
  };
}

/** The text of a page of a PDF; empty if the page is damaged. */
interface PdfPage {
  readonly text: string;
  /** Its comments, and what is filled in its forms. */
  readonly notes: string;
  /** Undefined if the page cannot be drawn. */
  readonly size?: PageSize;
  /** Why it could not be read. */
  readonly damage?: unknown;
}

async function readPage(
  document: PDFDocumentProxy,
  number: number,
  attachments: PdfAttachments,
): Promise<PdfPage> {
  let size: PageSize | undefined;
  try {
    const page = await document.getPage(number);
    size = sizeOf(page);
    try {
      const text = pageText((await page.getTextContent()).items);
      return { text, notes: await notesOf(page, attachments), size };
    } finally {
      page.cleanup();
    }
  } catch (damage) {
    return { text: '', notes: '', ...(size && { size }), damage };
  }
}

async function notesOf(page: PDFPageProxy, attachments: PdfAttachments): Promise<string> {
  const pieces: string[] = [];
  for (const note of (await page.getAnnotations()) as readonly Annotation[]) {
    attachments.add(note.file);
    for (const written of [
      note.contentsObj?.str,
      note.fieldType === 'Btn' ? '' : note.fieldValue,
    ].flat())
      if (typeof written === 'string' && written !== '') pieces.push(`\n${written}\n`);
  }
  return pieces.join('');
}

function sizeOf({ userUnit, view }: PDFPageProxy): PageSize {
  const [left = 0, bottom = 0, right = 0, top = 0] = view;
  return { width: (right - left) * userUnit, height: (top - bottom) * userUnit };
}

/** Whether a page has so little text that there may be a picture of its text. */
function isNearlyEmpty(text: string): boolean {
  return !MANY_CHARACTERS.test(text);
}

/**
 * Returns the text of a page together with what OCR read on it. Usually, OCR also reads the few
 * characters of the page.
 */
function combined(text: string, drawn: string): string {
  if (drawn === '' || drawn.includes(text.trim())) return drawn || text;
  return `${text}\n${drawn}`;
}

/** Accents of the fonts of TeX that have no letters with accents (OT1), and their marks. */
const ACCENTS: Readonly<Record<string, string>> = {
  '`': '\u0300',
  '´': '\u0301',
  ˆ: '\u0302',
  '˜': '\u0303',
  '¯': '\u0304',
  '˘': '\u0306',
  '˙': '\u0307',
  '¨': '\u0308',
  '˚': '\u030a',
  '˝': '\u030b',
  ˇ: '\u030c',
  '¸': '\u0327',
};

/**
 * Makes one letter of an accent and the letter that it is drawn over, which follows it. Only TeX
 * writes like this: elsewhere the same character is an apostrophe, as in `geht´s`.
 */
function withAccents(text: string): string {
  return text.replace(/([`´ˆ˜¯˘˙¨˚˝ˇ¸])(\p{L})/gu, (both, accent: string, letter: string) => {
    // Letters below an accent have no dot.
    const base = letter === 'ı' ? 'i' : letter;
    const composed = `${base}${ACCENTS[accent]}`.normalize('NFC');
    return composed.length === 1 ? composed : both;
  });
}

/** A comment, a link, or a form field. */
interface Annotation {
  readonly contentsObj?: { readonly str: string };
  readonly fieldType?: string;
  /** The file of a comment that is one. */
  readonly file?: unknown;
  readonly fieldValue?: unknown;
}

/**
 * Loads the text extraction of PDF.js, in the legacy build, which Node 20 needs. Its worker runs in
 * this thread, which is already separate from the daemon.
 */
async function pdfJs() {
  /**
   * Stands in for classes that PDF.js looks up when it is loaded and uses only to draw. It would
   * otherwise load a native package of 30 MB.
   */
  class Unused {}
  const globals: Record<string, unknown> = globalThis as never;
  for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) globals[name] ??= Unused;
  // @ts-expect-error It has no types.
  await import('pdfjs-dist/legacy/build/pdf.worker.mjs');
  return await import('pdfjs-dist/legacy/build/pdf.mjs');
}
