import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PDFPageProxy } from 'pdfjs-dist';
import { PACKAGE_ROOT } from '../../lib/process.js';
import {
  DocumentError,
  type DocumentReader,
  type Extract,
  TextCollector,
} from './document-reader.js';

/**
 * The directory of the code tables (CMaps) by which fonts of Asian scripts number their characters.
 * The build copies it; the source uses that of PDF.js.
 */
const CODE_TABLES = ['dist/cmaps/', 'node_modules/pdfjs-dist/cmaps/']
  .map((directory) => join(PACKAGE_ROOT, directory))
  .find((directory) => existsSync(directory));

/** PDF, page by page. Fonts and pictures are not drawn, and no code in the file is run. */
export const pdf: DocumentReader = {
  name: 'PDF',
  read: async (bytes, _depth, enoughCharacters, { onPage }): Promise<Extract> => {
    const { getDocument, PDFDateString, VerbosityLevel } = await pdfJs();
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
      const document = await task.promise;
      const text = new TextCollector();
      /** Why the first damaged page could not be read. */
      let damage: unknown;
      for (
        let number = 1;
        number <= document.numPages && text.length <= enoughCharacters;
        number += 1
      ) {
        try {
          await addPage(await document.getPage(number), text);
        } catch (error) {
          if (error instanceof DocumentError) throw error;
          damage ??= error;
        }
        text.add('\n\n');
        onPage();
      }
      const whole = text.end();
      // The other pages of a document with damaged ones are worth more than nothing.
      if (whole === '' && damage !== undefined) throw damage;
      const info = (await document.getMetadata()).info as Readonly<Record<string, unknown>>;
      const field = (name: string) => {
        const value = info[name];
        return typeof value === 'string' ? value.trim() || undefined : undefined;
      };
      const date = PDFDateString.toDateObject(
        field('ModDate') ?? field('CreationDate') ?? '',
      )?.getTime();
      const isOfTex = /TeX|dvips|dvipdf/.test(`${field('Creator')} ${field('Producer')}`);
      // Joins words that were hyphenated at the end of a line.
      const joined = whole.replace(/(\p{Ll})[-\u2010]\n(\p{Ll})/gu, '$1$2');
      return {
        text: isOfTex ? withAccents(joined) : joined,
        title: field('Title'),
        author: field('Author'),
        date,
        language: field('Language'),
      };
    } catch (error) {
      if (error instanceof Error && error.name === 'PasswordException')
        throw new DocumentError('DOCUMENT_ENCRYPTED', { why: 'it needs a password' });
      throw error;
    } finally {
      await task.destroy();
    }
  },
};

/** Adds the text of a page, its comments, and what is filled in its forms. */
async function addPage(page: PDFPageProxy, into: TextCollector): Promise<void> {
  const { items } = await page.getTextContent();
  // A soft hyphen in a PDF is a visible one.
  for (const item of items)
    if ('str' in item) into.add(item.str.replaceAll('\u00ad', '-') + (item.hasEOL ? '\n' : ''));
  for (const note of (await page.getAnnotations()) as readonly Annotation[])
    for (const written of [
      note.contentsObj?.str,
      note.fieldType === 'Btn' ? '' : note.fieldValue,
    ].flat())
      if (typeof written === 'string' && written !== '') into.add(`\n${written}\n`);
  page.cleanup();
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
