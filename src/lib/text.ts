/** A text as a sentence of its own: with a full stop, unless it ends like one. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/**
 * A whole number for a person: `1,204,311`. By hand: the tables of `Intl` take 7 MB for as long as
 * the process runs.
 */
export function numberText(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ',');
}

/**
 * A number that need not be whole, with as many digits as mean something: `0.25`, `17.4`, `1,204`.
 */
export function amountText(n: number): string {
  if (n >= 100) return numberText(Math.round(n));
  return String(Number(n.toFixed(n < 1 ? 2 : 1)));
}

/** A number with its noun: `1 file`, `1,204 files`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${numberText(n)} ${n === 1 ? one : many}`;
}

/** A name as it is typed into a shell. */
export function shellWord(name: string): string {
  return /^[\w./:@%+,-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

/**
 * Characters that act on a terminal, turn the words around or are not seen: controls, marks of
 * direction, joiners, fillers, tags, the empty Braille pattern, lone surrogates. U+FE0F is part of
 * many emoji.
 */
const UNSEEN = /(?!\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/**
 * A text for a person, with what would not be seen as it is written out: `\x1b`, `\u200b`,
 * `\u{e0041}`.
 */
export function visible(text: string): string {
  return text.replace(UNSEEN, writtenOut);
}

function writtenOut(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code > 0xffff) return `\\u{${digits}}`;
  return code < 256 ? `\\x${digits.padStart(2, '0')}` : `\\u${digits.padStart(4, '0')}`;
}

/**
 * The same in pieces, for a page that marks what is written out: the first, third, … as they are,
 * the others written out. A name can hold the letters `\u200b` themselves.
 */
export function visibleParts(text: string): readonly string[] {
  const parts = text.split(new RegExp(`(${UNSEEN.source})`, 'u'));
  return parts.map((part, i) => (i % 2 === 0 ? part : writtenOut(part)));
}

/** An address for a person: with its letters, but with the escapes of what would not be seen. */
export function readableUrl(url: string): string {
  try {
    return decodeURI(url).replace(UNSEEN, encodeURIComponent);
  } catch {
    return url;
  }
}

/**
 * Writes the characters of a JSON text that `visible` writes out as `\\uXXXX`, which JSON reads as
 * the same.
 */
export function escapeUnseen(json: string): string {
  return json.replace(UNSEEN, (character) =>
    Array.from({ length: character.length }, (_, i) => {
      const unit = character.charCodeAt(i).toString(16).padStart(4, '0');
      return `\\u${unit}`;
    }).join(''),
  );
}

/** The name of a folder in a sentence, where it could be taken for a word of it: `folder "the"`. */
export function quoted(name: string): string {
  return `"${visible(name)}"`;
}

/** One character as `visible` writes it. */
const WRITTEN_OUT = /\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\u\{([0-9a-f]{5,6})\}/g;

/**
 * The text that `visible` shows like this; a text that holds such spellings itself is taken for
 * that, too.
 */
export function fromVisible(text: string): string {
  return text.replace(WRITTEN_OUT, (written, byte, unit, point) => {
    const code = Number.parseInt(byte ?? unit ?? point, 16);
    if (code === 0 || code > 0x10ffff) return written;
    const character = String.fromCodePoint(code);
    return visible(character) === written ? character : written;
  });
}

/** Whether an absolute path is `directory` or lies below it. */
export function isWithin(path: string, directory: string): boolean {
  return (
    path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
  );
}

/**
 * The URL that a text is, beside another one where it is relative; undefined where it is none. Node
 * 20's `URL.canParse` says so of `https://bücher.example` too, once V8 has compiled its caller (it
 * takes Latin-1 for UTF-8).
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/**
 * A file's path as it stands in its URL: each name in NFC, percent-encoded, `/` between them. The
 * state on disk leaves out what follows from it: another encoding would be another schema there.
 */
export function encodePath(path: string): string {
  return /^[\w\-.~/]*$/.test(path) ? path : path.split('/').map(encodeName).join('/');
}

function encodeName(name: string): string {
  return encodeURIComponent(name.toWellFormed().normalize('NFC')).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * The relative path, in NFC, of which `encodePath` makes this URL with this base; undefined where
 * there is none.
 */
export function pathBelow(base: string, url: string): string | undefined {
  if (!url.startsWith(base)) return undefined;
  try {
    return decodeURIComponent(url.slice(base.length));
  } catch {
    // The URL is one with a longer base, which may have other escapes.
    return undefined;
  }
}

/**
 * Compares by code point, which is the order of the bytes in UTF-8. JavaScript's `<` compares
 * UTF-16 units and puts what is beyond U+FFFF before U+E000.
 *
 * @returns less than, equal to or more than 0, as `sort` wants it
 */
export function compareByCodePoint(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}

/** Whether a text stands for every name that it matches: it holds `*` or `?`. */
export function isWildcard(text: string): boolean {
  return /[*?]/.test(text);
}

/**
 * What a wildcard takes: `*` for any characters, also none, and `?` for one; everything else for
 * itself.
 */
export function wildcard(text: string): RegExp {
  const source = text
    .replace(/[\\^$.+()[\]{}|]/g, (character) => `\\${character}`)
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'su');
}

/** The word of `words` that was probably meant by `given`: a typing error or two away. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const meant = plain(given);
  const limit = Math.max(1, Math.floor(meant.length / 3));
  return words
    .map((word) => ({ word, distance: editDistance(meant, plain(word)) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)[0]?.word;
}

/** `maxitems` is as near to `maxItems` as can be; a whole text in place of a key costs no time. */
function plain(word: string): string {
  return word.toLowerCase().slice(0, 40);
}

/** How many characters must be put in, left out or replaced; one for letters in another order. */
function editDistance(a: string, b: string): number {
  if (a !== b && [...a].toSorted().join() === [...b].toSorted().join()) return 1;
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, x] of [...a].entries()) {
    const row = [i + 1];
    for (const [j, y] of [...b].entries()) {
      const replaced = (above[j] ?? 0) + (x === y ? 0 : 1);
      row.push(Math.min(replaced, (above[j + 1] ?? 0) + 1, (row[j] ?? 0) + 1));
    }
    above = row;
  }
  return above.at(-1) ?? 0;
}
