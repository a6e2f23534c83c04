import { DocumentError, type Extract, type Reader, TextCollector } from './reader.js';

/** PDF, page by page. Fonts and pictures are not drawn, and nothing in the file is run. */
export const pdf: Reader = {
  name: 'PDF',
  read: async (bytes): Promise<Extract> => {
    const { getDocument, VerbosityLevel } = await import('./pdfjs.js');
    let missing: string | undefined;
    /** Code tables for old fonts of Asian scripts; they are larger than all of peersync, and not shipped. */
    class CMapReaderFactory {
      async fetch({ name }: { readonly name: string }): Promise<never> {
        missing ??= name;
        throw new Error(`the code table ${name} is missing`);
      }
    }
    const task = getDocument({
      CMapReaderFactory,
      // It keeps what it is given.
      data: new Uint8Array(bytes),
      ...{ disableFontFace: true, isEvalSupported: false, useSystemFonts: false, stopAtErrors: false },
      verbosity: VerbosityLevel.ERRORS,
    });
    try {
      const document = await task.promise;
      const text = new TextCollector();
      for (let number = 1; number <= document.numPages; number += 1) {
        const page = await document.getPage(number);
        const { items } = await page.getTextContent();
        for (const item of items) if ('str' in item) text.add(item.hasEOL ? `${item.str}\n` : item.str);
        text.add('\n\n');
        page.cleanup();
      }
      if (missing !== undefined)
        throw new DocumentError(
          'DOCUMENT_BROKEN',
          `its letters are coded by "${missing}", which is not known here`,
        );
      const { info } = await document.getMetadata();
      return { text: joined(text.end()), ...described(info as Readonly<Record<string, unknown>>) };
    } catch (error) {
      if (error instanceof Error && error.name === 'PasswordException')
        throw new DocumentError('DOCUMENT_ENCRYPTED', 'it needs a password');
      throw error;
    } finally {
      await task.destroy();
    }
  },
};

/** Words that are divided at the end of a line, in one again. */
function joined(text: string): string {
  return text.replace(/(\p{Ll})[-\u00ad]\n(\p{Ll})/gu, '$1$2');
}

function described({ Author, CreationDate, Language, ModDate, Title }: Readonly<Record<string, unknown>>) {
  const text = (value: unknown) => (typeof value === 'string' ? value.trim() || undefined : undefined);
  return {
    title: text(Title),
    author: text(Author),
    date: pdfDate(text(ModDate)) ?? pdfDate(text(CreationDate)),
    language: text(Language),
  };
}

/** `D:20260131093000+01'00'` */
function pdfDate(text: string | undefined): number | undefined {
  const [
    ,
    year,
    month = '01',
    day = '01',
    hour = '00',
    minute = '00',
    second = '00',
    zone = 'Z',
    h = '00',
    m = '00',
  ] = /^D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?([-+Z])?(\d\d)?'?(\d\d)?/.exec(text ?? '') ?? [];
  if (year === undefined) return undefined;
  const at = Date.parse(
    `${year}-${month}-${day}T${hour}:${minute}:${second}${zone === 'Z' ? 'Z' : `${zone}${h}:${m}`}`,
  );
  return Number.isNaN(at) ? undefined : at;
}
