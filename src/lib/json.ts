/** The first fault of a text that is not JSON. Lines and columns count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** The fault, and what would be right, as one phrase. It quotes only keys. */
  readonly what: string;
}

export type JsonResult = { readonly value: unknown } | { readonly fault: JsonFault };

/** Parses JSON strictly, and shows the position of a fault. A duplicate key is a fault. */
export function parseJson(text: string): JsonResult {
  try {
    const scanner = new JsonScanner(text);
    scanner.begin();
    scanner.value();
    scanner.end();
  } catch (error) {
    if (error instanceof OffsetFault)
      return { fault: { ...positionOf(text, error.offset), what: error.what } };
    throw error;
  }
  return { value: JSON.parse(text) };
}

/**
 * Returns a member of an object in a text, by the keys that lead to it. The text may have a fault
 * behind the member.
 *
 * @returns undefined if there is no such member before the first fault
 */
export function memberOf(text: string, keys: readonly string[]): unknown {
  const scanner = new JsonScanner(text);
  try {
    scanner.begin();
    for (const key of keys) {
      if (text[scanner.at] !== '{' || !hasEntry(scanner, key)) return undefined;
    }
    const start = scanner.at;
    scanner.value();
    return JSON.parse(text.slice(start, scanner.at));
  } catch (error) {
    if (error instanceof OffsetFault) return undefined;
    throw error;
  }
}

/** Moves the scanner to the value of an entry of the object that opens here. */
function hasEntry(scanner: JsonScanner, key: string): boolean {
  for (const { name } of scanner.entries()) {
    if (name === key) return true;
    scanner.value();
  }
  return false;
}

/** The deepest nesting of a text. */
const MAX_DEPTH = 64;

/** Thrown by `parseBounded` for a text that is nested too deeply. Nothing was parsed yet. */
export class NestedTooDeeply extends Error {}

/** Thrown by `parseBounded` for a text with too many values. Nothing was parsed yet. */
export class TooManyValues extends Error {}

/**
 * Calls `JSON.parse` on a text from outside, within limits. Megabytes of nested lists would keep it
 * busy for seconds. Five million empty objects are 16 MiB of text, and take 2 GiB of memory and 15
 * s until they are processed.
 *
 * @throws NestedTooDeeply beyond `deepest`; TooManyValues beyond 200,000 values; SyntaxError if the
 *   text is no JSON
 */
export function parseBounded(text: string, deepest = MAX_DEPTH): unknown {
  checkBounds(text, deepest);
  return JSON.parse(text);
}

/**
 * Counts open brackets and values. The count is right up to the first fault, where `JSON.parse`
 * stops as well.
 */
function checkBounds(text: string, deepest: number): void {
  let depth = 0;
  // Each comma and each opening bracket precedes a value, unless the bracket is empty.
  let values = 1;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === COMMA) values += 1;
    else if (code === BRACE || code === BRACKET) {
      depth += 1;
      values += 1;
      if (depth > deepest) throw new NestedTooDeeply(`more than ${deepest} levels of nesting`);
    } else if (code === BRACE + 2 || code === BRACKET + 2) depth -= 1;
    if (values > MAX_VALUES) throw new TooManyValues(`more than ${MAX_VALUES} values`);
  }
}

/** A fault at an offset of a text. */
export class OffsetFault extends Error {
  constructor(
    readonly offset: number,
    readonly what: string,
  ) {
    super(what);
  }
}

/**
 * The most values of a text. The largest legitimate answer, the citations of a document with 1,000
 * sentences, has about 110,000.
 */
const MAX_VALUES = 200_000;

/** Returns the offset of the quote that closes the string at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even number of backslashes escape each other.
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
/** The codes of `[` and `{`. Those of `]` and `}` are two higher. */
const BRACKET = 0x5b;
const BRACE = 0x7b;
const NUMBER_OR_LITERAL =
  /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)(?![-+.\w])/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these may not stand in a string.
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;
const BLANK = /[ \t\r\n]*/y;

/**
 * Scans a text once. Throws OffsetFault at the first place that is not JSON. It creates no values:
 * the caller slices them out of the text, or leaves them to JSON.parse. JSON.parse alone reports no
 * position, and does not pause in large tables.
 */
export class JsonScanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The current offset. */
  get at(): number {
    return this.#at;
  }

  /** Skips white space up to the value. */
  begin(): void {
    if (this.#next() === '') this.#fail('nothing: the file is empty');
  }

  /** Checks that nothing follows the value. */
  end(): void {
    if (this.#next() !== '')
      this.#fail('something after the end of the value (a "}" or "]" too many)');
  }

  /** Skips a value. */
  value(depth = 0): void {
    if (depth > MAX_DEPTH) this.#fail(`more than ${MAX_DEPTH} levels of nesting`);
    const next = this.#next();
    if (next === '{') for (const _ of this.entries()) this.value(depth + 1);
    else if (next === '[') for (const _ of this.items()) this.value(depth + 1);
    else if (next === '"') this.#string();
    else if (this.#skip(NUMBER_OR_LITERAL)) return;
    else if (next === '') this.#fail('the end of the file where a value should stand');
    else this.#fail('no value: a string in double quotes, a number, true, false, null, {…} or […]');
  }

  /**
   * Iterates over the entries of the object that opens here. At each step the scanner is before the
   * value of the entry, and the caller must skip it. At the end the scanner is behind the "}".
   */
  *entries(): Generator<{ readonly name: string; readonly at: number }, void> {
    const seen = new Set<string>();
    for (const _ of this.#parts('}')) {
      const at = this.#at;
      if (this.#text[at] !== '"') this.#fail('a key without double quotes');
      const name = String(JSON.parse(this.#string()));
      if (seen.has(name))
        this.#fail(`the key ${JSON.stringify(name)} for the second time in one object`, at);
      seen.add(name);
      if (this.#next() !== ':') this.#fail('a key without ":" and a value after it');
      this.#at += 1;
      this.#next();
      yield { name, at };
    }
  }

  /**
   * Iterates over the items of the list that opens here. At each step the scanner is before the
   * item, and the caller must skip it. At the end the scanner is behind the "]".
   */
  items(): Generator<void, void> {
    return this.#parts(']');
  }

  /** Iterates over the parts between commas, up to the end of the object or list. */
  *#parts(end: '}' | ']'): Generator<void, void> {
    const opened = this.#at;
    for (let comma: number | undefined; ; comma = this.#at) {
      this.#at += 1;
      if (this.#nextWithin(opened) === end) {
        if (comma !== undefined) this.#fail(`a comma before "${end}": remove the comma`, comma);
        break;
      }
      yield;
      const next = this.#nextWithin(opened);
      if (next === end) break;
      if (next !== ',')
        this.#fail(`neither "," nor "${end}" after a value (is a comma missing before?)`);
    }
    this.#at += 1;
  }

  /** Skips a string. @returns its source, with the quotes */
  #string(): string {
    const start = this.#at;
    this.#at += 1;
    do this.#skip(PLAIN_CHARACTERS);
    while (this.#skip(ESCAPE));
    const next = this.#text.charAt(this.#at);
    if (/^[\r\n]?$/.test(next)) this.#fail('a string that is not closed on its line', start);
    if (next !== '"')
      this.#fail('no character of a string: write "\\\\" for a backslash, "\\t" for a tab');
    this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  /** Returns the next character in the object or list that opened at `opened`. */
  #nextWithin(opened: number): string {
    const next = this.#next();
    if (next !== '') return next;
    const { line } = positionOf(this.#text, opened);
    const what = this.#text[opened] === '{' ? 'object' : 'list';
    return this.#fail(`the end of the file within the ${what} opened in line ${line}`);
  }

  /** Skips a match of the pattern. @param pattern sticky @returns whether it matched */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.test(this.#text);
    if (found) this.#at = pattern.lastIndex;
    return found;
  }

  /** Skips white space. @returns the character behind it; empty at the end */
  #next(): string {
    this.#skip(BLANK);
    const next = this.#text.charAt(this.#at);
    if (next === '#' || /^\/[/*]/.test(this.#text.slice(this.#at, this.#at + 2)))
      this.#fail('a comment: JSON has none, so remove it');
    return next;
  }

  #fail(what: string, offset = this.#at): never {
    throw new OffsetFault(offset, what);
  }
}

/** Returns the line and the column (in characters) of an offset, both from 1. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const lines = text.slice(0, offset).split('\n');
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 };
}
