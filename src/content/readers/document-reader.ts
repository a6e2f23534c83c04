import { type ErrorTable, tableError } from '../../lib/errors.js';
import type { ExtractedBy } from '../../lib/file.js';
import type { Ocr } from '../helpers/ocr.js';
import type { Tools } from '../helpers/tools.js';
import { MemberBudget } from './budget.js';

/** The text and the metadata of a document. */
export interface Extract {
  readonly text: string;
  /** The positions in the text at which its pages end, if it has pages, in order. */
  readonly pageEnds?: readonly number[] | undefined;
  /** The text of the files that are attached to a PDF. A peer that reads the PDF has none of it. */
  readonly attached?: string | undefined;
  readonly title?: string | undefined;
  readonly author?: string | undefined;
  /** When the document was last changed or, if unknown, written, in ms since the epoch. */
  readonly date?: number | undefined;
  /** A BCP 47 tag: `de`, `en-GB`. */
  readonly language?: string | undefined;
  /** The name of the reader, if it is not that of the `DocumentReader`. */
  readonly reader?: string;
  /** How it was found, besides the reader, its words and its time. */
  readonly found?: Partial<ExtractedBy> | undefined;
}

/** The parameters of a reading besides the content. */
export interface ReadContext {
  /** The name of the file, without its directory. */
  readonly name: string;
  /** How many other documents this one is nested in, as the attachment of a message. */
  readonly depth: number;
  /** Number of characters after which the rest may be left out. */
  readonly enoughCharacters: number;
  /** Called after each page, by a reader of pages. */
  readonly onPage: (progress: PageProgress) => void;
  /** The programs that may be used; undefined if there are none. */
  readonly tools?: Tools | undefined;
  /** OCR for this document and those nested in it; undefined if there is none. */
  readonly ocr?: Ocr | undefined;
  /** The limits that are left for archives in the document; undefined for the usual ones. */
  readonly budget?: MemberBudget | undefined;
}

/** Returns the context of a document that is nested in another one, which is read whole. */
export function nestedIn({
  budget = new MemberBudget(),
  depth,
  ocr,
  onPage,
  tools,
}: ReadContext): Omit<ReadContext, 'name'> {
  const enoughCharacters = Number.POSITIVE_INFINITY;
  return { budget, depth: depth + 1, enoughCharacters, ocr, onPage, tools };
}

/**
 * Whether there is time for the next part of a document, such as a page. There always is, unless it
 * is in an archive. Records it if there is not.
 */
export function mayGoOn({ budget }: Pick<ReadContext, 'budget'>): boolean {
  return budget?.hasTime() ?? true;
}

/**
 * Whether a document is read to its end. If only its words are counted, a part of it is read, and
 * OCR is not used.
 */
export function isReadWhole({ enoughCharacters }: ReadContext): boolean {
  return enoughCharacters === Number.POSITIVE_INFINITY;
}

/** How far a document with pages is read. */
export interface PageProgress {
  readonly page: number;
  readonly pages: number;
}

/**
 * The reader of one kind of document. To add a kind:
 *
 * - name it in `DocumentKind` of `lib/file.ts`;
 * - write its reader, and add it to `READERS` of `registry.ts`;
 * - add its media types to `KINDS` of `signatures.ts`, and its first bytes to `SIGNATURES`. A kind
 *   that is text and has no signature has a line in `TEXT_DOCUMENTS` instead;
 * - name it in `convertHere` of each dialect in `peer/dialects/` whose peers cannot read it. Peers
 *   that take only text get every document as text.
 */
export interface DocumentReader {
  /** Name in `peersync why`. */
  readonly name: string;
  /**
   * Reads a whole file. Content other than text (pictures, sound) is left out.
   *
   * @throws DocumentError for a known cause; any other error means that the file is damaged
   */
  read(bytes: Uint8Array, context: ReadContext): Promise<Extract> | Extract;
}

/** Maximum number of characters of one document. Nobody reads longer ones. */
const MAX_CHARACTERS = 32_000_000;

const NO_HELPER = {
  message: 'The file is {why}, and the program that reads it is not installed ({missing}).',
  hint: '{how} The file is then taken up by itself.',
} as const;
const UNREADABLE = 'No text can be read from the file: {why}.';
const ERRORS = {
  DOCUMENT_ENCRYPTED: {
    message: UNREADABLE,
    hint: 'Save it without a password, or keep it out with `ignore`.',
  },
  DOCUMENT_BROKEN: {
    message: UNREADABLE,
    hint: 'Open it in its own program and save it anew, or keep it out with `ignore`.',
  },
  DOCUMENT_TOO_LARGE: {
    message: UNREADABLE,
    hint: 'Split it, or keep it out with `ignore`; `peersync retry PATH` tries it again.',
  },
  NO_OCR: {
    message: 'The file is {why}, and {missing}.',
    hint: 'Install it: `sudo apt-get install tesseract-ocr poppler-utils`. The file is then taken up by itself.',
  },
  NO_HELPER,
  /** Its first bytes show which program reads the file, whatever its name is. */
  NO_HELPER_BY_CONTENT: NO_HELPER,
} as const satisfies ErrorTable;

/**
 * Thrown when a document cannot be read. The value `why` is a reason without a full stop, or what
 * people call the file. A file with NO_OCR, NO_HELPER or NO_HELPER_BY_CONTENT is skipped until the
 * program is there.
 */
export class DocumentError extends tableError(ERRORS) {}

/** Thrown when another try may succeed: a program took too long, or memory ran out. */
export class MomentaryError extends DocumentError {}

/** Returns the text of a document, with that of its attachments. */
export function wholeText({ attached, text }: Extract): string {
  return attached === undefined ? text : `${text}\n\n${attached}`.trim();
}

/** Collects the text of one document, up to `MAX_CHARACTERS` characters. */
export class TextCollector {
  readonly #pieces: string[] = [];
  #length = 0;

  /** Number of characters collected. */
  get length(): number {
    return this.#length;
  }

  /** @throws DocumentError DOCUMENT_TOO_LARGE */
  add(text: string): void {
    this.#length += text.length;
    if (this.#length > MAX_CHARACTERS)
      throw new DocumentError('DOCUMENT_TOO_LARGE', {
        why: `it has more than ${MAX_CHARACTERS / 1e6} million characters`,
      });
    this.#pieces.push(text);
  }

  /**
   * Returns the text without soft hyphens and trailing blanks, with at most one empty line in a
   * row.
   */
  end(): string {
    return this.takePage().trim();
  }

  /** Returns the text since the last call, as `end` does but for blanks at its start. */
  takePage(): string {
    const lines = this.#pieces.splice(0).join('').replaceAll('\u00ad', '').split('\n');
    return lines
      .map((line) => line.trimEnd())
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .replace(/^\n+|\n+$/g, '');
  }
}

/** The class of the rule (`<hr>`) where a page ends, in a document that is sent as HTML. */
export const PAGE_END_CLASS = 'peersync-page-end';

/** Joins the texts of pages, with an empty line between two of them. */
export function joinPages(pages: readonly string[]): Required<Pick<Extract, 'pageEnds' | 'text'>> {
  let text = '';
  const pageEnds: number[] = [];
  for (const page of pages) {
    if (page !== '') text += text === '' ? page.trimStart() : `\n\n${page}`;
    pageEnds.push(text.length);
  }
  return { text, pageEnds };
}

/** Joins words that were hyphenated at the end of a line. */
export function joinHyphenated(text: string): string {
  return text.replace(/(\p{Ll})[-\u2010]\n(\p{Ll})/gu, '$1$2');
}

/** Parses a date of a document, in ms since the epoch; undefined if it is not a date. */
export function dateOf(text: string | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : at;
}
