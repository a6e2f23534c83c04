import { isAscii } from 'node:buffer';

/**
 * Tokenizes and folds text, in the same way for documents, queries and highlights.
 *
 * FTS5's tokenizer `ascii` splits at ASCII spaces and punctuation, and folds ASCII case. This file
 * prepares all other text for it. Accents are folded: ü, u and U+0308 are one letter. Each
 * character of a script without spaces is a word of its own, and a query searches a run of them as
 * a phrase.
 *
 * FTS5's other tokenizers do not fit. `unicode61` takes a run of Chinese as one word, breaks Hindi
 * words at vowel signs, and does not offer its folding to snippets. `trigram` needs three
 * characters, finds "art" in "party", and triples the index.
 */

/** Soft hyphens and joiners, which are invisible. */
const WITHIN_WORDS = '\\u00ad\\u200c\\u200d\\u2060\\ufeff';
const BARE_MARKS = new RegExp(`[\\u0300-\\u036f${WITHIN_WORDS}]+`, 'g');
/** Matches a character that is a word of its own. */
export const UNSPACED =
  /(?=[\p{L}\p{N}])[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*/gu;
const OTHER_SEPARATORS = /[^\p{L}\p{N}\p{M}\0-\x7f]+/gu;
const PLAIN = /^[\0-\x7f]*$/;
/** The characters of a text that are prepared at a time, which bounds the memory. */
const PIECE = 65_536;

function prepare(piece: string): string {
  if (PLAIN.test(piece)) return piece;
  return fold(piece).replace(UNSPACED, ' $& ').replace(OTHER_SEPARATORS, ' ');
}

/**
 * Folds a text: without case, accents and compatibility forms (ﬁ, full width).
 */
export function fold(text: string): string {
  if (PLAIN.test(text)) return text.toLowerCase();
  return text
    .normalize('NFKD')
    .replace(BARE_MARKS, '')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .replaceAll('ς', 'σ');
}

/** Cuts a text between words if possible, and never within a surrogate pair. */
function* pieces(text: string): Iterable<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE, text.length);
    if (end < text.length) {
      const blank = text.lastIndexOf(' ', end);
      if (blank > start + PIECE / 2) end = blank;
      else if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
    }
    yield text.slice(start, end);
    start = end;
  }
}

/** Returns a text as FTS5 indexes it, in UTF-8. */
export function indexable(text: string | Buffer): Buffer {
  if (typeof text !== 'string' && isAscii(text)) return text;
  const prepared: Buffer[] = [];
  for (const piece of pieces(text.toString())) prepared.push(Buffer.from(prepare(piece)));
  return prepared.length === 1 && prepared[0] ? prepared[0] : Buffer.concat(prepared);
}

/** Counts the words as FTS5 does. @param prepared the result of `indexable` */
export function countWords(prepared: Buffer): number {
  let count = 0;
  let inWord = false;
  for (let at = 0; at < prepared.length; at += 1) {
    const isOfWord = LETTERS[prepared[at] ?? 0] !== 0;
    if (isOfWord && !inWord) count += 1;
    inWord = isOfWord;
  }
  return count;
}

/**
 * Passes the place of each word to `take`, in order, as FTS5 finds them.
 *
 * @param prepared the result of `indexable`
 */
export function forEachWord(prepared: Buffer, take: (start: number, end: number) => void): void {
  for (let at = 0; at < prepared.length; at += 1) {
    const start = at;
    while (at < prepared.length && LETTERS[prepared[at] ?? 0] !== 0) at += 1;
    if (at > start) take(start, at);
  }
}

/** Precedes a prefix that is indexed among words. No word of a text or a query contains it. */
export const PREFIX_MARK = '\ue000';
/** The longest prefix that is indexed, in letters. A longer one is expanded in the index. */
export const MAX_PREFIX_LETTERS = 4;

/**
 * Returns the prefixes of two to four letters of all words, each once, as UTF-8. Each follows a
 * space and `mark`.
 *
 * @param prepared the result of `indexable`
 */
export function prefixes(prepared: Buffer, mark = ''): Buffer {
  const before = Buffer.from(` ${mark}`);
  // A word of four letters has the most prefixes for its length.
  const all = Buffer.allocUnsafe((prepared.length + 1) * (before.length + 2));
  const known = new Set<number>();
  const others = new Set<string>();
  let end = 0;
  for (let at = 0; at < prepared.length; at += 1) {
    const start = at;
    let isPlain = true;
    let key = 0;
    let length = 0;
    for (let letter = LETTERS[prepared[at] ?? 0]; letter; letter = LETTERS[prepared[at] ?? 0]) {
      if (letter === OTHER_LETTER) isPlain &&= length >= MAX_PREFIX_LETTERS;
      if (length < MAX_PREFIX_LETTERS) {
        key = (key << 8) | letter;
        length += 1;
      }
      at += 1;
    }
    if (!isPlain) {
      // A letter has at most four bytes, so the first four letters are not cut.
      const letters = [
        ...prepared.toString('utf8', start, Math.min(at, start + 4 * MAX_PREFIX_LETTERS)),
      ];
      for (let count = 2; count <= Math.min(letters.length, MAX_PREFIX_LETTERS); count += 1)
        others.add(letters.slice(0, count).join('').toLowerCase());
    }
    // If a prefix is known, so are the shorter ones.
    else
      for (; length > 1 && !known.has(key); length -= 1, key >>= 8) {
        known.add(key);
        for (let i = 0; i < before.length; i += 1, end += 1) all[end] = before[i] ?? 0;
        for (let shift = 8 * (length - 1); shift >= 0; shift -= 8) {
          all[end] = (key >> shift) & 255;
          end += 1;
        }
      }
  }
  const plain = all.subarray(0, end);
  if (others.size === 0) return plain;
  return Buffer.concat([
    plain,
    ...[...others].flatMap((letters) => [before, Buffer.from(letters)]),
  ]);
}

const OTHER_LETTER = 255;
/**
 * Maps a byte to its folded ASCII letter or digit, to OTHER_LETTER inside a longer character, or to
 * 0 between words.
 */
const LETTERS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte > 127) return OTHER_LETTER;
  const letter = String.fromCharCode(byte).toLowerCase();
  return /[a-z0-9]/.test(letter) ? letter.charCodeAt(0) : 0;
});

/** Returns the folded words of a short text, in order. */
export function wordsOf(text: string): string[] {
  return prepare(text)
    .toLowerCase()
    .split(/[\0-\x2f\x3a-\x60\x7b-\x7f]+/)
    .filter((word) => word !== '');
}

export interface PlacedWord {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** Matches a text that begins with a character that is a word of its own. */
export const UNSPACED_WORD = new RegExp(`^${UNSPACED.source}`, 'u');

/** Matches a character that is a word of its own, or a run of others. */
const WORD = new RegExp(
  `${UNSPACED.source}|(?:(?!${UNSPACED.source})[\\p{L}\\p{N}\\p{M}${WITHIN_WORDS}])+`,
  'gu',
);

/** Yields the folded words of a text with their positions. */
export function* placedWords(text: string): Iterable<PlacedWord> {
  for (const { 0: word, index: start } of text.matchAll(WORD))
    yield { start, end: start + word.length, word: fold(word) };
}
