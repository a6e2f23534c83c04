import { indexable, type PlacedWord, UNSPACED, UNSPACED_WORD } from './words.js';

/**
 * Finds symbol words: words whose meaning depends on a sign next to them, such as C++, C#, .NET,
 * #tag and @name.
 *
 * - One to three `+` or `#` directly follow the word, and no letter or digit follows them. After
 *   `++`, digits may follow: C++17 has the symbol word C++.
 * - One `.`, `#` or `@` directly precedes the word, and follows the start of the text, a space, an
 *   opening bracket, a quotation mark or another character of OPENING. The target of a Markdown
 *   link, as in `[Usage](#usage)`, has none.
 *
 * FTS5's tokenizer drops the signs, so each symbol word is indexed as one more term, in which
 * characters for private use stand for the signs. These terms follow all words of a column, so
 * they change neither positions nor phrases. Ordinary words never contain such characters (see
 * `words.ts`). All terms begin with SYMBOL_MARK, so a range of terms with the same first letters
 * has none of them.
 */

/** Begins the term of each symbol word. */
const SYMBOL_MARK = '\ue001';
/** The signs, and the characters that stand for them in terms. */
const SIGNS: Readonly<Record<string, string>> = {
  '+': '\ue002',
  '#': '\ue003',
  '.': '\ue004',
  '@': '\ue005',
};
const LEADING = '.#@';
const TRAILING = '+#';
/** The characters that may precede a leading sign, besides control characters and the space. */
const OPENING = '([{<>"\'`/\\,;:=|*~';
const MAX_TRAILING = 3;
/** A longer word is no symbol word. */
const MAX_WORD_BYTES = 64;
/** The most symbol words of a text that are indexed. */
const MAX_SYMBOL_WORDS = 200_000;

const IS_WORD = 1;
const IS_LEADING = 2;
const IS_TRAILING = 4;
const IS_OPENING = 8;

/** The roles of each byte. In prepared text, all bytes above 127 are of words. */
const ROLES = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte > 127) return IS_WORD;
  const character = String.fromCharCode(byte);
  if (/[a-z0-9]/i.test(character)) return IS_WORD;
  return (
    (LEADING.includes(character) ? IS_LEADING : 0) |
    (TRAILING.includes(character) ? IS_TRAILING : 0) |
    (byte <= 32 || OPENING.includes(character) ? IS_OPENING : 0)
  );
});
/** The roles of signs; 0 for other bytes. */
const SIGN_ROLES = ROLES.map((roles) => roles & (IS_LEADING | IS_TRAILING));
const [PLUS, PARENTHESIS, BRACKET] = [0x2b, 0x28, 0x5d];

/**
 * Returns the terms of the symbol words as UTF-8, in order and as often as they occur. Each follows
 * a space.
 *
 * @param prepared the result of `indexable`
 */
export function symbolTerms(prepared: Buffer): Buffer {
  const terms: Buffer[] = [];
  for (let at = 0; at < prepared.length && terms.length < MAX_SYMBOL_WORDS; at += 1) {
    const sign = SIGN_ROLES[prepared[at] ?? 0] ?? 0;
    if (sign !== 0) terms.push(...termsAt(prepared, at, sign));
  }
  return Buffer.concat(terms);
}

/** Returns the terms of a symbol word that has this sign. */
function termsAt(prepared: Buffer, at: number, sign: number): readonly Buffer[] {
  if ((sign & IS_TRAILING) !== 0 && (roleAt(prepared, at - 1) & IS_WORD) !== 0) {
    const end = endOfTrailing(prepared, at);
    const start = startOfWord(prepared, at);
    if (end === undefined || start === undefined) return [];
    const term = termOf(prepared, start, end);
    return isLeading(prepared, start - 1) ? [termOf(prepared, start - 1, end), term] : [term];
  }
  if (!isLeading(prepared, at)) return [];
  const end = endOfWord(prepared, at + 1);
  // With a sign on either side, the word is found at the second one.
  if (end === undefined || endOfTrailing(prepared, end) !== undefined) return [];
  return [termOf(prepared, at, end)];
}

function roleAt(prepared: Buffer, at: number): number {
  return ROLES[prepared[at] ?? 0] ?? 0;
}

/** Whether a sign before a word is at a place. */
function isLeading(prepared: Buffer, at: number): boolean {
  if ((roleAt(prepared, at) & IS_LEADING) === 0 || at < 0) return false;
  if ((roleAt(prepared, at - 1) & IS_OPENING) === 0) return false;
  return prepared[at - 1] !== PARENTHESIS || prepared[at - 2] !== BRACKET;
}

/** Returns the end of the signs that follow a word; undefined if these are none. */
function endOfTrailing(prepared: Buffer, start: number): number | undefined {
  let end = start;
  while ((roleAt(prepared, end) & IS_TRAILING) !== 0) end += 1;
  const count = end - start;
  if (count === 0 || count > MAX_TRAILING) return undefined;
  if ((roleAt(prepared, end) & IS_WORD) === 0) return end;
  const isDigit = /\d/.test(String.fromCharCode(prepared[end] ?? 0));
  return count > 1 && prepared[start] === PLUS && isDigit ? end : undefined;
}

/** Returns the start of the word that ends at a place; undefined if it is too long. */
function startOfWord(prepared: Buffer, end: number): number | undefined {
  let start = end;
  while ((roleAt(prepared, start - 1) & IS_WORD) !== 0) {
    start -= 1;
    if (end - start > MAX_WORD_BYTES) return undefined;
  }
  return start;
}

/** Returns the end of the word that starts at a place; undefined if there is none. */
function endOfWord(prepared: Buffer, start: number): number | undefined {
  let end = start;
  while ((roleAt(prepared, end) & IS_WORD) !== 0) {
    end += 1;
    if (end - start > MAX_WORD_BYTES) return undefined;
  }
  return end > start ? end : undefined;
}

function termOf(prepared: Buffer, start: number, end: number): Buffer {
  return Buffer.from(` ${termFor(prepared.toString('utf8', start, end))}`);
}

/** Returns the term of a symbol word as it is written. */
function termFor(written: string): string {
  return SYMBOL_MARK + written.replace(/[+#.@]/g, (sign) => SIGNS[sign] ?? sign).toLowerCase();
}

/** Returns the terms of the symbol words of a short text, in order. */
export function symbolTermsOf(text: string): string[] {
  return symbolTerms(indexable(text))
    .toString()
    .split(' ')
    .filter((term) => term !== '');
}

export function isSymbolTerm(word: string): boolean {
  return word.startsWith(SYMBOL_MARK);
}

/** Returns a symbol word without its signs; another word as it is. */
export function plainWord(word: string): string {
  return word.replace(/[\ue001-\ue005]/g, '');
}

/** Returns a symbol word as it is written, folded; another word as it is. */
export function writtenWord(word: string): string {
  return word.replace(/[\ue001-\ue005]/g, (mark) => {
    const found = Object.entries(SIGNS).find(([, character]) => character === mark);
    return found?.[0] ?? '';
  });
}

/** Matches the signs that follow a word in a text that is not prepared. */
const TRAILING_SIGNS = new RegExp(
  `[+#]{1,3}(?![+#]|(?!${UNSPACED.source})[\\p{L}\\p{N}\\p{M}])|\\+[+#]{1,2}(?=\\d)`,
  'uy',
);
/** Characters beyond ASCII that separate words. */
const SEPARATOR = /[^\p{L}\p{N}\p{M}\0-\x7f]/u;

/**
 * Returns the symbol words whose letters stand at this place of a text, the longest first. In
 * them, `word` is the term of the index.
 */
export function symbolWordsAt(
  text: string,
  { end, start, word }: PlacedWord,
): readonly PlacedWord[] {
  const hasSign = SIGNS[text.charAt(start - 1)] ?? SIGNS[text.charAt(end)];
  if (hasSign === undefined || Buffer.byteLength(word) > MAX_WORD_BYTES) return [];
  // In prepared text, a character that is a word of its own stands between spaces.
  if (UNSPACED_WORD.test(word)) return [];
  TRAILING_SIGNS.lastIndex = end;
  const trailing = TRAILING_SIGNS.exec(text)?.[0] ?? '';
  const leading = isLeadingIn(text, start - 1) ? text.charAt(start - 1) : '';
  return [...new Set([leading, ''])]
    .map((sign) => ({
      start: start - sign.length,
      end: end + trailing.length,
      word: termFor(`${sign}${word}${trailing}`),
    }))
    .filter((found) => found.end - found.start > end - start);
}

/** Whether a sign before a word is at a place of a text that is not prepared. */
function isLeadingIn(text: string, at: number): boolean {
  const [sign, before] = [text.charAt(at), text.charAt(at - 1)];
  if (sign === '' || !LEADING.includes(sign)) return false;
  if (before === '(' && text.charAt(at - 2) === ']') return false;
  if (before <= ' ' || OPENING.includes(before)) return true;
  return SEPARATOR.test(before) || UNSPACED_WORD.test(before);
}

/** Removes the signs of the symbol words from a text. */
export function withoutSigns(text: string, words: Iterable<PlacedWord>): string {
  let plain = '';
  let at = 0;
  for (const word of words) {
    const found = symbolWordsAt(text, word)[0] ?? word;
    plain += `${text.slice(at, found.start)}${text.slice(word.start, word.end)}`;
    at = found.end;
  }
  return plain + text.slice(at);
}
