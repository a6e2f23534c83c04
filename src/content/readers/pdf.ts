import { DocumentError, type Extract, type Reader, TextCollector } from './reader.js';

/** PDF, page by page. Fonts and pictures are not drawn, and nothing in the file is run. */
export const pdf: Reader = {
  name: 'PDF',
  read: async (bytes, _depth, enough): Promise<Extract> => {
    const { getDocument, PDFDateString, VerbosityLevel } = await pdfJs();
    let missing: string | undefined;
    /**
     * Code tables for old fonts of Asian scripts; they are larger than all of peersync, and not
     * shipped.
     */
    class CMapReaderFactory {
      async fetch({ name }: { readonly name: string }): Promise<never> {
        missing ??= name;
        throw new Error(`the code table ${name} is missing`);
      }
    }
    const task = getDocument({
      CMapReaderFactory,
      // PDF.js takes the memory of an array that is all of it, and copies a part of one.
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
      for (let number = 1; number <= document.numPages && text.length <= enough; number += 1) {
        const page = await document.getPage(number);
        const { items } = await page.getTextContent();
        // A soft hyphen in a PDF is one that is shown.
        for (const item of items)
          if ('str' in item)
            text.add(item.str.replaceAll('\u00ad', '-') + (item.hasEOL ? '\n' : ''));
        for (const note of (await page.getAnnotations()) as readonly Annotation[])
          for (const written of [
            note.contentsObj?.str,
            note.fieldType === 'Btn' ? '' : note.fieldValue,
          ].flat())
            if (typeof written === 'string' && written !== '') text.add(`\n${written}\n`);
        text.add('\n\n');
        page.cleanup();
      }
      if (missing !== undefined)
        throw new DocumentError(
          'DOCUMENT_BROKEN',
          `its letters are coded by "${missing}", which is not known here`,
        );
      const info = (await document.getMetadata()).info as Readonly<Record<string, unknown>>;
      const field = (name: string) => {
        const value = info[name];
        return typeof value === 'string' ? value.trim() || undefined : undefined;
      };
      const date = PDFDateString.toDateObject(
        field('ModDate') ?? field('CreationDate') ?? '',
      )?.getTime();
      // Words that are divided at the end of a line are in one again.
      const whole = text.end().replace(/(\p{Ll})-\n(\p{Ll})/gu, '$1$2');
      return {
        text: whole,
        title: field('Title'),
        author: field('Author'),
        date,
        language: field('Language'),
      };
    } catch (error) {
      if (error instanceof Error && error.name === 'PasswordException')
        throw new DocumentError('DOCUMENT_ENCRYPTED', 'it needs a password');
      throw error;
    } finally {
      await task.destroy();
    }
  },
};

/** A remark, a link, or a field that is filled in. */
interface Annotation {
  readonly contentsObj?: { readonly str: string };
  readonly fieldType?: string;
  readonly fieldValue?: unknown;
}

/**
 * The part of PDF.js that reads text, in its build for older engines, which Node 20 is. Its worker
 * runs in this thread, which is one of its own already.
 */
async function pdfJs() {
  /**
   * What it looks for as soon as it is loaded, and uses only to draw: it would take it from a
   * native package of 30 MB.
   */
  class Unused {}
  const globals: Record<string, unknown> = globalThis as never;
  for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) globals[name] ??= Unused;
  // @ts-expect-error It has no types.
  await import('pdfjs-dist/legacy/build/pdf.worker.mjs');
  return await import('pdfjs-dist/legacy/build/pdf.mjs');
}
