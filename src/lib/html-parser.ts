import { type Handler, Parser, type ParserOptions } from 'htmlparser2';

/**
 * Open elements, which the parser moves and searches at each tag; with more of them the page is
 * read on as another one.
 */
const MOST_OPEN = 500;
/** Characters that are parsed before the open elements are counted again. */
const PIECE = 4_096;

/**
 * Reads HTML or XML that comes in pieces, in a time that follows its length, also where elements
 * are opened and never closed.
 */
export class HtmlParser {
  readonly #handler: Partial<Handler>;
  #parser: Parser;
  #open = 0;

  constructor(
    { onopentag, onclosetag, ...handler }: Partial<Handler>,
    readonly options: ParserOptions = {},
  ) {
    this.#handler = {
      ...handler,
      onopentag: (...tag) => {
        this.#open += 1;
        onopentag?.(...tag);
      },
      onclosetag: (...tag) => {
        this.#open -= 1;
        onclosetag?.(...tag);
      },
    };
    this.#parser = new Parser(this.#handler, this.options);
  }

  write(text: string): void {
    for (let from = 0; from < text.length; ) {
      const tag = text.indexOf('<', from + PIECE);
      const to = tag === -1 ? text.length : tag;
      // A tag may be cut at the end of what came, and never before one.
      if (this.#open > MOST_OPEN && text[from] === '<') {
        this.#parser.end();
        this.#parser = new Parser(this.#handler, this.options);
      }
      this.#parser.write(text.slice(from, to));
      from = to;
    }
  }

  end(): void {
    this.#parser.end();
  }
}
