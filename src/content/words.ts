import type { Encoding } from '../lib/file.js';
import { HtmlParser } from '../lib/html-parser.js';
import { decoderOf } from './encoding.js';

/** Code for a text without words. */
export const NO_WORDS = 'NO_WORDS';

/** Counting stops at this number of words. */
const MOST_WORDS = 100;

const [BLANK, LETTER] = [1, 2];
/** Class of each byte of UTF-8: ASCII white space, ASCII letter or digit, or neither. */
const BYTE_CLASSES = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if (/[\b\t\n\v\f\r ]/.test(character)) return BLANK;
  return /[A-Za-z0-9]/.test(character) ? LETTER : 0;
});
const [AMPERSAND, SEMICOLON, HASH] = [0x26, 0x3b, 0x23];
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
/** Elements of a page that are not shown. */
const NOT_SHOWN = new Set(['script', 'style']);
/** Elements whose text a peer may leave out. Their words are not counted. */
const UNCOUNTED = new Set(['title', 'noscript', 'template']);
/**
 * Attributes whose text may make a page findable, besides the content of `meta` elements that
 * describe it.
 */
const FINDABLE_ATTRIBUTES = new Set([
  'alt',
  'title',
  'value',
  'placeholder',
  'label',
  'summary',
  'aria-label',
]);
const NOT_DESCRIBED = /^(viewport|generator|robots|theme-color|format-detection|referrer)$/i;

/** Counts the words of a text that arrives in pieces, up to a maximum. */
export interface WordCounter {
  write(bytes: Uint8Array): void;
  /**
   * Returns the number of words; undefined if there is nothing to find, in the text or beside it.
   */
  end(): number | undefined;
}

/**
 * Counts the words of plain text in UTF-8. A word is text between white space that contains a
 * letter or a digit. Entities (`&nbsp;` is a blank) do not count. YaCy reports at least as many,
 * because it counts the blanks of a text.
 */
export class PlainWords implements WordCounter {
  readonly #most: number;
  #isWord = false;
  #isEntity = false;
  /** An entity may stand for a letter. */
  #hasEntity = false;
  #words = 0;

  constructor(most = MOST_WORDS) {
    this.#most = most;
  }

  write(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length && this.#words < this.#most; i += 1) {
      const byte = bytes[i] ?? 0;
      if (this.#isEntity) {
        this.#isEntity = BYTE_CLASSES[byte] === LETTER || byte === HASH;
        if (this.#isEntity || byte === SEMICOLON) continue;
      }
      if (BYTE_CLASSES[byte] === BLANK) this.#endWord();
      else if (this.#isWord) continue;
      else if (byte === AMPERSAND) this.#isEntity = this.#hasEntity = true;
      else if (BYTE_CLASSES[byte] === LETTER) this.#isWord = true;
      else if (byte >= 0x80) {
        let end = i + 1;
        while ((bytes[end] ?? 0) >= 0x80) end += 1;
        this.#isWord = LETTER_OR_DIGIT.test(
          Buffer.from(bytes.buffer, bytes.byteOffset + i, end - i).toString(),
        );
        i = end - 1;
      }
    }
  }

  end(): number | undefined {
    this.#endWord();
    return this.#words === 0 && !this.#hasEntity ? undefined : this.#words;
  }

  #endWord(): void {
    if (this.#isWord) this.#words += 1;
    this.#isWord = false;
  }
}

/**
 * Counts the words in the text of a page. A page with only a title or a description has no words
 * but can be found: `end` returns 0.
 */
export class HtmlWords implements WordCounter {
  readonly #decoder: ReturnType<typeof decoderOf>;
  readonly #plain = new PlainWords();
  readonly #parser: HtmlParser;
  /** The element whose text is being read. */
  #element = '';
  /** Number of open elements whose text does not count. */
  #uncountedDepth = 0;
  #isFindable = false;

  constructor(encoding: Encoding) {
    this.#decoder = decoderOf(encoding);
    this.#parser = new HtmlParser({
      onopentag: (name, attributes) => {
        this.#element = name;
        if (UNCOUNTED.has(name)) this.#uncountedDepth += 1;
        this.#count(' ');
        this.#isFindable ||= Object.entries(attributes).some(
          ([attribute, value]) => FINDABLE_ATTRIBUTES.has(attribute) && LETTER_OR_DIGIT.test(value),
        );
        const described = NOT_DESCRIBED.test(attributes.name ?? '')
          ? undefined
          : attributes.content;
        const isNamed = attributes.name !== undefined || attributes.property !== undefined;
        this.#isFindable ||= name === 'meta' && isNamed && LETTER_OR_DIGIT.test(described ?? '');
      },
      onclosetag: (name) => {
        this.#element = '';
        if (UNCOUNTED.has(name)) this.#uncountedDepth -= 1;
        this.#count(' ');
      },
      ontext: (text) => {
        if (NOT_SHOWN.has(this.#element)) return;
        if (this.#uncountedDepth > 0) this.#isFindable ||= LETTER_OR_DIGIT.test(text);
        else this.#count(text);
      },
    });
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): number | undefined {
    this.#parser.write(this.#decoder.decode());
    this.#parser.end();
    return this.#plain.end() ?? (this.#isFindable ? 0 : undefined);
  }

  #count(text: string): void {
    this.#plain.write(Buffer.from(text));
  }
}
