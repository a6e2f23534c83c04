/** Returns the text with a full stop, unless it already ends like a sentence. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/**
 * Formats a whole number for a person: `1,204,311`. Does not use `Intl`, whose tables take 7 MB as
 * long as the process runs.
 */
export function numberText(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Formats a number with its meaningful digits: `0.25`, `17.4`, `1,204`. */
export function amountText(n: number): string {
  if (n >= 100) return numberText(Math.round(n));
  return String(Number(n.toFixed(n < 1 ? 2 : 1)));
}

/** Formats a number with its noun: `1 file`, `1,204 files`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${numberText(n)} ${n === 1 ? one : many}`;
}

/** Quotes a name for a shell, if it needs quotes. */
export function shellWord(name: string): string {
  return /^[\w./:@%+,-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

/**
 * Characters that control a terminal, change the direction of text, or are invisible: controls,
 * direction marks, joiners, fillers, tags, the empty Braille pattern, lone surrogates. U+FE0F is
 * excluded, because many emoji contain it.
 */
const INVISIBLE =
  /(?!\ufe0f)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/**
 * Returns a text for a person, with invisible characters written as escapes: `\x1b`, `\u200b`,
 * `\u{e0041}`.
 */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, escapeOf);
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code > 0xffff) return `\\u{${digits}}`;
  return code < 256 ? `\\x${digits.padStart(2, '0')}` : `\\u${digits.padStart(4, '0')}`;
}

/**
 * Returns the same text in parts, for a page that highlights the escapes. Even positions are plain
 * text, odd positions are escapes. A name can contain the letters `\u200b` themselves.
 */
export function visibleParts(text: string): readonly string[] {
  const parts = text.split(new RegExp(`(${INVISIBLE.source})`, 'u'));
  return parts.map((part, i) => (i % 2 === 0 ? part : escapeOf(part)));
}

/** Returns a URL for a person: decoded, except for the escapes of invisible characters. */
export function readableUrl(url: string): string {
  try {
    return decodeURI(url).replace(INVISIBLE, encodeURIComponent);
  } catch {
    return url;
  }
}

/**
 * Escapes the invisible characters of a JSON text as `\\uXXXX`. JSON reads the same values from it.
 */
export function escapeUnseen(json: string): string {
  return json.replace(INVISIBLE, (character) =>
    Array.from({ length: character.length }, (_, i) => {
      const unit = character.charCodeAt(i).toString(16).padStart(4, '0');
      return `\\u${unit}`;
    }).join(''),
  );
}

/** Quotes a name in a sentence where it could be read as a word: `folder "the"`. */
export function quoted(name: string): string {
  return `"${escapeInvisible(name)}"`;
}

/** One character as `visible` escapes it. */
const ESCAPE = /\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\u\{([0-9a-f]{5,6})\}/g;

/** Reverses `visible`. A text that contained such escapes itself is decoded too. */
export function fromVisible(text: string): string {
  return text.replace(ESCAPE, (written, byte, unit, point) => {
    const code = Number.parseInt(byte ?? unit ?? point, 16);
    if (code === 0 || code > 0x10ffff) return written;
    const character = String.fromCodePoint(code);
    return escapeInvisible(character) === written ? character : written;
  });
}

/** Whether an absolute path is `directory` or is below it. */
export function isWithin(path: string, directory: string): boolean {
  return (
    path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
  );
}

/**
 * Parses a URL, relative to `base` if that is given; undefined if the text is no URL.
 * `URL.canParse` of Node 20 is not reliable: once V8 has compiled its caller, it refuses
 * `https://bücher.example`, because it takes Latin-1 for UTF-8.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/**
 * Encodes the path of a file for its URL: each name in NFC and percent-encoded, `/` between names.
 * The state on disk leaves out what this can derive, so a change here needs a new schema there.
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

/** Decodes the escapes in a part of a URL. Returns it unchanged if they are not UTF-8. */
export function decodedPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Returns the relative path, in NFC, that `encodePath` turns into this URL below this base;
 * undefined if there is none.
 */
export function pathBelow(base: string, url: string): string | undefined {
  if (!url.startsWith(base)) return undefined;
  try {
    return decodeURIComponent(url.slice(base.length));
  } catch {
    // The URL belongs to a longer base, which may have other escapes.
    return undefined;
  }
}

/**
 * Compares two texts by code point, which is the byte order of UTF-8. JavaScript's `<` compares
 * UTF-16 units, and puts characters beyond U+FFFF before U+E000.
 *
 * @returns a number below, equal to or above 0, for `sort`
 */
export function compareByCodePoint(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}

/** Whether a text is a wildcard: it contains `*` or `?`. */
export function isWildcard(text: string): boolean {
  return /[*?]/.test(text);
}

/**
 * Returns the pattern of a wildcard: `*` matches any characters or none, `?` matches one, and
 * others match themselves.
 */
export function wildcard(text: string): RegExp {
  const source = text
    .replace(/[\\^$.+()[\]{}|]/g, (character) => `\\${character}`)
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'su');
}

/**
 * Returns the edit distance of two words (optimal string alignment): the number of characters to
 * insert, remove, replace, or swap with their neighbour. The count ends early beyond the limit.
 *
 * @param limit the largest distance of interest
 * @returns at most `limit + 1`
 */
export function editDistance(a: readonly string[], b: readonly string[], limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let twoAbove: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const replaced = (above[j - 1] ?? 0) + (isSame ? 0 : 1);
      let least = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, (twoAbove[j - 2] ?? 0) + 1);
      row.push(least);
    }
    if (Math.min(...row) > limit) return limit + 1;
    twoAbove = above;
    above = row;
  }
  return Math.min(above[b.length] ?? 0, limit + 1);
}

/** The characters that are compared. Cutting keeps a long text cheap. */
const COMPARED_CHARS = 40;

/** Returns the word that was probably meant by `given`; undefined if none is similar enough. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const meant = comparable(given);
  const limit = Math.max(1, Math.floor(meant.length / 3));
  return words
    .map((word) => ({ word, distance: editDistance(meant, comparable(word), limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)[0]?.word;
}

/** Returns the characters of a word for a comparison that ignores case. */
function comparable(word: string): readonly string[] {
  return [...word.toLowerCase().slice(0, COMPARED_CHARS)];
}
