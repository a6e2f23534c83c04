import { isAscii } from 'node:buffer';

/**
 * How text becomes words, the same for documents, questions and highlighting.
 *
 * The index itself splits at ASCII blanks and punctuation and folds ASCII case only (FTS5's `ascii`
 * tokenizer); what is more than ASCII is prepared here. FTS5's own `unicode61` takes a run of
 * Chinese as one word, breaks Hindi words at vowel signs, and cannot be asked for its folding when
 * a snippet is made; `trigram` needs three characters, finds "art" in "party" and triples the
 * index. So: accents are folded (ü, u and U+0308 are one), and each character of a script written
 * without blanks is a word of its own, asked for as a phrase.
 */

/** Soft hyphens and joiners, which nobody sees or types. */
const WITHIN_WORDS = '\\u00ad\\u200c\\u200d\\u2060\\ufeff';
const BARE_MARKS = new RegExp(`[\\u0300-\\u036f${WITHIN_WORDS}]+`, 'g');
const UNSPACED =
  /(?=[\p{L}\p{N}])[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*/gu;
const OTHER_SEPARATORS = /[^\p{L}\p{N}\p{M}\0-\x7f]+/gu;
const PLAIN = /^[\0-\x7f]*$/;
/**
 * Long texts are prepared in pieces of about so many characters, which bounds what lies beside them
 * in memory.
 */
const PIECE = 65_536;

function prepare(piece: string): string {
  if (PLAIN.test(piece)) return piece;
  return fold(piece).replace(UNSPACED, ' $& ').replace(OTHER_SEPARATORS, ' ');
}

/**
 * One form for all spellings of a word: no accents, no case, compatibility forms (ﬁ, full width)
 * resolved.
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

/** Pieces that end between words where they can, and never within a pair of surrogates. */
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

/** What the index is given for `text`, as UTF-8. */
export function indexable(text: string | Buffer): Buffer {
  if (typeof text !== 'string' && isAscii(text)) return text;
  const prepared: Buffer[] = [];
  for (const piece of pieces(text.toString())) prepared.push(Buffer.from(prepare(piece)));
  return prepared.length === 1 && prepared[0] ? prepared[0] : Buffer.concat(prepared);
}

/** How many words the index sees in what `indexable` gave. */
export function countWords(prepared: Buffer): number {
  let count = 0;
  let inWord = false;
  for (const byte of prepared) {
    const ofWord =
      byte > 127 ||
      (byte > 47 && byte < 58) ||
      (byte > 64 && byte < 91) ||
      (byte > 96 && byte < 123);
    if (ofWord && !inWord) count += 1;
    inWord = ofWord;
  }
  return count;
}

/**
 * Stands before a beginning of a word that is indexed beside words; no word of a text or a query
 * has it.
 */
export const PREFIX_MARK = '\ue000';
/**
 * Letters of the beginnings that are indexed; longer ones are looked for among the words
 * themselves.
 */
export const LONGEST_BEGINNING = 4;

/**
 * The first two to four letters of the words in what `indexable` gave, each with a blank and `mark`
 * before it, as UTF-8.
 */
export function prefixes(prepared: Buffer, mark = ''): Buffer {
  const before = Buffer.from(` ${mark}`);
  // A word of four letters is the longest beside its beginnings.
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
      if (letter === OTHER_LETTER) isPlain &&= length >= LONGEST_BEGINNING;
      if (length < LONGEST_BEGINNING) {
        key = (key << 8) | letter;
        length += 1;
      }
      at += 1;
    }
    if (!isPlain) {
      // Four bytes a letter at most; what is cut off lies behind the fourth.
      const letters = [
        ...prepared.toString('utf8', start, Math.min(at, start + 4 * LONGEST_BEGINNING)),
      ];
      for (let count = 2; count <= Math.min(letters.length, LONGEST_BEGINNING); count += 1)
        others.add(letters.slice(0, count).join('').toLowerCase());
    }
    // With one that is known, its own beginnings are, too.
    else
      for (; length > 1 && !known.has(key); length -= 1, key >>= 8) {
        known.add(key);
        end += before.copy(all, end);
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
 * By byte: its folded ASCII letter or digit, OTHER_LETTER within a longer character, 0 between
 * words.
 */
const LETTERS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte > 127) return OTHER_LETTER;
  const letter = String.fromCharCode(byte).toLowerCase();
  return /[a-z0-9]/.test(letter) ? letter.charCodeAt(0) : 0;
});

/** The words of a few words of text, folded, in order. */
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

/** A character that is a word of its own, or a run of others. */
const WORD = new RegExp(
  `${UNSPACED.source}|(?:(?!${UNSPACED.source})[\\p{L}\\p{N}\\p{M}${WITHIN_WORDS}])+`,
  'gu',
);

/** The words of `text` with their places in it, folded as the index folds them. */
export function* placedWords(text: string): Iterable<PlacedWord> {
  for (const { 0: word, index: start } of text.matchAll(WORD))
    yield { start, end: start + word.length, word: fold(word) };
}
