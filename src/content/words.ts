import { Parser } from 'htmlparser2';
import type { Encoding } from '../lib/encodings.js';
import { decoderOf } from './decoding.js';

/** The code of what is said of a text without words. */
export const NO_WORDS = 'NO_WORDS';

/** So many words are counted, and no more. */
const MOST_WORDS = 100;

/** Letters and digits, with what some peers take for a part of a word. */
const RUN = /[\p{L}\p{N}\p{M}.,-]+/gu;
/** Peers leave out words of one letter. */
const WORD = /[\p{L}\p{Nd}]{2}/u;
const ANY = /[\p{L}\p{N}]/u;
/** What people find of a page beside its text. */
const SHOWN_ATTRIBUTES = new Set(['alt', 'title', 'content']);

/**
 * Counts the words of a text that comes in pieces: runs of two letters or digits or more, joined by `-`, `.` and `,`. A peer
 * counts at least as many, whatever it takes for a word. Stops at 100.
 */
export class WordCounter {
  readonly #decoder: { decode(bytes?: Uint8Array, options?: { readonly stream?: boolean }): string };
  readonly #html: Parser | undefined;
  #isHidden = false;
  #rest = '';
  #words = 0;
  #any = false;

  constructor(encoding: Encoding, isHtml: boolean) {
    this.#decoder = decoderOf(encoding);
    if (isHtml)
      this.#html = new Parser({
        onopentag: (name, attributes) => {
          this.#isHidden = name === 'script' || name === 'style';
          this.#count(' ');
          for (const [attribute, value] of Object.entries(attributes))
            if (SHOWN_ATTRIBUTES.has(attribute)) this.#count(value);
        },
        onclosetag: () => {
          this.#isHidden = false;
          this.#count(' ');
        },
        ontext: (text) => {
          if (!this.#isHidden) this.#count(text);
        },
      });
  }

  write(bytes: Uint8Array): void {
    if (this.#words < MOST_WORDS) this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /** How many words there are, up to 100; undefined where there is not even one letter or digit. */
  end(): number | undefined {
    if (this.#words < MOST_WORDS) this.#read(this.#decoder.decode());
    this.#html?.end();
    this.#count(' ');
    return this.#any ? this.#words : undefined;
  }

  #read(text: string): void {
    if (this.#html === undefined) this.#count(text);
    else this.#html.write(text);
  }

  /** The last run may go on in the next piece. */
  #count(text: string): void {
    const whole = this.#rest + text;
    this.#rest = '';
    for (const { 0: run, index } of whole.matchAll(RUN)) {
      if (index + run.length === whole.length && run.length < 1_000) {
        this.#rest = run;
        return;
      }
      this.#any ||= ANY.test(run);
      if (WORD.test(run)) this.#words += 1;
      if (this.#words >= MOST_WORDS) return;
    }
  }
}

/** How many words a text has, as `WordCounter` says. */
export function wordsOf(bytes: Uint8Array, encoding: Encoding, isHtml: boolean): number | undefined {
  const counter = new WordCounter(encoding, isHtml);
  counter.write(bytes);
  return counter.end();
}
