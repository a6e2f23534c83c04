import { type ErrorTable, tableError } from '../../lib/errors.js';

/** The text and the metadata of a document. */
export interface Extract {
  readonly text: string;
  readonly title?: string | undefined;
  readonly author?: string | undefined;
  /** When the document was last changed or, if unknown, written, in ms since the epoch. */
  readonly date?: number | undefined;
  /** A BCP 47 tag: `de`, `en-GB`. */
  readonly language?: string | undefined;
}

/** The parameters of a reading besides the content. */
export interface ReadContext {
  /** The name of the file, without its directory. */
  readonly name: string;
  /** Called after each page, by a reader of pages. */
  readonly onPage: () => void;
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
   * @param depth how many other documents this one is nested in, as the attachment of a message
   * @param enoughCharacters number of characters after which the rest may be left out
   * @throws DocumentError for a known cause; any other error means that the file is damaged
   */
  read(
    bytes: Uint8Array,
    depth: number,
    enoughCharacters: number,
    context: ReadContext,
  ): Promise<Extract> | Extract;
}

/** Maximum number of characters of one document. Nobody reads longer ones. */
const MAX_CHARACTERS = 32_000_000;

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
} as const satisfies ErrorTable;

/** Thrown when a document cannot be read. The value `why` is a reason without a full stop. */
export class DocumentError extends tableError(ERRORS) {}

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
    const lines = this.#pieces.join('').replaceAll('\u00ad', '').split('\n');
    return lines
      .map((line) => line.trimEnd())
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
  }
}

/** Names that office programs give to sheets, slides and presentations by themselves. */
const DEFAULT_NAME =
  /^(?:(?:sheet|slide|tabelle|folie|feuil|diapositive|hoja|diapositiva|foglio|planilha|blad|arkusz|лист|слайд|工作表|シート) ?\d{1,3}|powerpoint[- ]pr[eä]sentation|untitled|unbenannt)$/iu;

/** Returns whether a name says something about the content of a document. */
export function isOwnName(name: string): boolean {
  return !DEFAULT_NAME.test(name.trim());
}

/** Parses a date of a document, in ms since the epoch; undefined if it is not a date. */
export function dateOf(text: string | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : at;
}
