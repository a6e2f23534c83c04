import {
  DocumentError,
  type DocumentReader,
  type Extract,
  TextCollector,
} from './document-reader.js';

/** PDF, page by page. Fonts and pictures are not drawn, and no code in the file is run. */
export const pdf: DocumentReader = {
  name: 'PDF',
  read: async (bytes, _depth, enoughCharacters): Promise<Extract> => {
    const { getDocument, PDFDateString, VerbosityLevel } = await pdfJs();
    let missing: string | undefined;
    /**
     * Stands in for the code tables (CMaps) of old fonts of Asian scripts. They are larger than all
     * of peersync and not shipped.
     */
    class CMapReaderFactory {
      async fetch({ name }: { readonly name: string }): Promise<never> {
        missing ??= name;
        throw new Error(`the code table ${name} is missing`);
      }
    }
    const task = getDocument({
      CMapReaderFactory,
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
      for (
        let number = 1;
        number <= document.numPages && text.length <= enoughCharacters;
        number += 1
      ) {
        const page = await document.getPage(number);
        const { items } = await page.getTextContent();
        // A soft hyphen in a PDF is a visible one.
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
        throw new DocumentError('DOCUMENT_BROKEN', {
          why: `its letters are coded by "${missing}", which is not known here`,
        });
      const info = (await document.getMetadata()).info as Readonly<Record<string, unknown>>;
      const field = (name: string) => {
        const value = info[name];
        return typeof value === 'string' ? value.trim() || undefined : undefined;
      };
      const date = PDFDateString.toDateObject(
        field('ModDate') ?? field('CreationDate') ?? '',
      )?.getTime();
      // Joins words that were hyphenated at the end of a line.
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
        throw new DocumentError('DOCUMENT_ENCRYPTED', { why: 'it needs a password' });
      throw error;
    } finally {
      await task.destroy();
    }
  },
};

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
