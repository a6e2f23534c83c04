import { type Handler, Parser, type ParserOptions } from 'htmlparser2';

/**
 * The most open elements. The parser moves and searches them at each tag. Beyond that number, a new
 * parser reads the rest of the page.
 */
const MAX_OPEN_ELEMENTS = 500;
/** The number of characters that are parsed before the open elements are counted again. */
const PIECE_CHARS = 4_096;

/**
 * Parses HTML or XML that arrives in pieces. The time is linear in the length, also if elements are
 * opened and never closed.
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
      const tag = text.indexOf('<', from + PIECE_CHARS);
      const to = tag === -1 ? text.length : tag;
      // A piece may end inside a tag, but only a piece that begins with `<` starts a new parser.
      if (this.#open > MAX_OPEN_ELEMENTS && text[from] === '<') {
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
