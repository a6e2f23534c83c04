/** What a document says, and what it tells of itself. */
export interface Extract {
  readonly text: string;
  readonly title?: string | undefined;
  readonly author?: string | undefined;
  /** When it was written or last changed, in ms since the epoch. */
  readonly date?: number | undefined;
  /** As in BCP 47: `de`, `en-GB`. */
  readonly language?: string | undefined;
}

/**
 * Reads one format. A new format is one of these, and a line in `readers.ts` and `signatures.ts`.
 */
export interface Reader {
  /** As `peersync why` names it. */
  readonly name: string;
  /**
   * Reads a whole file. What is no text in it (pictures, sound) is left out.
   *
   * @param depth in how many other documents it is, as the attachment of a message
   * @param enough characters after which the rest may be left out
   * @throws DocumentError for what it can name; any other error means that the file is damaged
   */
  read(bytes: Uint8Array, depth: number, enough: number): Promise<Extract> | Extract;
}

/** Characters of one document; more is no document that anybody reads. */
const MOST_TEXT = 32_000_000;

/** Why a document was not read. */
export class DocumentError extends Error {
  constructor(
    readonly code: 'DOCUMENT_ENCRYPTED' | 'DOCUMENT_BROKEN' | 'DOCUMENT_TOO_LARGE',
    message: string,
  ) {
    super(message);
  }
}

/** Gathers text, as much as one document may have. */
export class TextCollector {
  readonly #pieces: string[] = [];
  #length = 0;

  /** Characters that were gathered. */
  get length(): number {
    return this.#length;
  }

  /** @throws DocumentError DOCUMENT_TOO_LARGE */
  add(text: string): void {
    this.#length += text.length;
    if (this.#length > MOST_TEXT)
      throw new DocumentError(
        'DOCUMENT_TOO_LARGE',
        `it has more than ${MOST_TEXT / 1e6} million characters`,
      );
    this.#pieces.push(text);
  }

  /**
   * With whole words, no blanks at the ends of lines, and no more than one empty line between two
   * others.
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

/** A date as documents write it; undefined where it is none. */
export function dateOf(text: string | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : at;
}
