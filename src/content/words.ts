import { Parser } from 'htmlparser2';
import type { Encoding } from '../lib/encodings.js';
import { decoderOf } from './decoding.js';

/** The code of what is said of a text without words. */
export const NO_WORDS = 'NO_WORDS';

/** So many words are counted, and no more. */
const MOST_WORDS = 100;

const PART = /[\b\t\n\v\f\r ]+|[^\b\t\n\v\f\r ]+/g;
const BLANK = /^[\b\t\n\v\f\r ]/;
const ANY = /[\p{L}\p{N}]/u;
/** What is not shown of a page. */
const HIDDEN = new Set(['script', 'style']);
/** Names of `meta` elements by whose content a page is found. */
const DESCRIPTION = /description|keywords|title|author|creator/i;

/**
 * Counts the words of a text that comes in pieces: what stands between white space and has a letter or a digit. YaCy shows at
 * least as many: it counts the blanks of a text. Stops at 100.
 */
export class WordCounter {
  readonly #decoder: { decode(bytes?: Uint8Array, options?: { readonly stream?: boolean }): string };
  readonly #html: Parser | undefined;
  /** The element whose text is read, as far as that matters. */
  #element = '';
  #any = false;
  #isWord = false;
  #words = 0;

  constructor(encoding: Encoding, isHtml: boolean) {
    this.#decoder = decoderOf(encoding);
    if (isHtml)
      this.#html = new Parser({
        onopentag: (name, attributes) => {
          this.#element = name;
          this.#count(' ');
          const { alt = '', title = '', content = '' } = attributes;
          const described = DESCRIPTION.test(attributes.name ?? '') ? content : '';
          this.#any ||= [alt, title, described].some((value) => ANY.test(value));
        },
        onclosetag: () => {
          this.#element = '';
          this.#count(' ');
        },
        ontext: (text) => {
          if (this.#element === 'title') this.#any ||= ANY.test(text);
          else if (!HIDDEN.has(this.#element)) this.#count(text);
        },
      });
  }

  write(bytes: Uint8Array): void {
    if (this.#words < MOST_WORDS) this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /** How many words there are, up to 100; undefined where there are none, nor any beside the text. */
  end(): number | undefined {
    if (this.#words < MOST_WORDS) this.#read(this.#decoder.decode());
    this.#html?.end();
    this.#count(' ');
    return this.#words > 0 || this.#any ? this.#words : undefined;
  }

  #read(text: string): void {
    if (this.#html === undefined) this.#count(text);
    else this.#html.write(text);
  }

  /** The last word may go on in the next piece. */
  #count(text: string): void {
    for (const [part] of text.matchAll(PART)) {
      if (BLANK.test(part)) {
        if (this.#isWord) this.#words += 1;
        this.#isWord = false;
        if (this.#words >= MOST_WORDS) return;
      } else this.#isWord ||= ANY.test(part);
    }
  }
}

/** How many words a text has, as `WordCounter` says. */
export function wordsOf(bytes: Uint8Array, encoding: Encoding, isHtml: boolean): number | undefined {
  const counter = new WordCounter(encoding, isHtml);
  counter.write(bytes);
  return counter.end();
}
