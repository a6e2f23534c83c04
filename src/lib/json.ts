/** Where a text stops being JSON, and why; lines and columns count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** What stands there and what would be right, as one phrase. It quotes nothing but keys. */
  readonly what: string;
}

export type JsonResult = { readonly value: unknown } | { readonly fault: JsonFault };

/**
 * Reads JSON, strictly, and says of what is wrong where it stands; a key that stands twice is wrong
 * too.
 */
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

/** Levels of nesting that a text may have. */
const DEEPEST = 64;

/** Thrown by `parseBounded` before it reads anything. */
export class NestedTooDeeply extends Error {}

/** Thrown by `parseBounded` before it reads anything. */
export class TooManyValues extends Error {}

/**
 * `JSON.parse` for a text from outside. Nested lists of megabytes would keep it busy for seconds;
 * five million empty objects, which are 16 MiB of text, take 2 GiB of memory and 15 s with what is
 * made of them.
 *
 * @throws NestedTooDeeply for what is nested more deeply than `deepest`; TooManyValues for more
 *   than 200,000 values; SyntaxError for what is no JSON
 */
export function parseBounded(text: string, deepest = DEEPEST): unknown {
  checkBounds(text, deepest);
  return JSON.parse(text);
}

/**
 * Counts open brackets and values; right up to the first fault of the text, where `JSON.parse`
 * ends.
 */
function checkBounds(text: string, deepest: number): void {
  let depth = 0;
  // A value stands behind each comma and each opening bracket, unless a bracket is empty.
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
    if (values > MOST_VALUES) throw new TooManyValues(`more than ${MOST_VALUES} values`);
  }
}

/** What is wrong with a text, at an offset of it. */
export class OffsetFault extends Error {
  constructor(
    readonly offset: number,
    readonly what: string,
  ) {
    super(what);
  }
}

/**
 * The largest honest answer, the citations of a document with 1,000 sentences, has some 110,000.
 */
const MOST_VALUES = 200_000;

/** Finds the quote that closes the string begun at `start`, or the end of the text. */
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
/** The codes of `[` and `{`; those of `]` and `}` are two higher. */
const BRACKET = 0x5b;
const BRACE = 0x7b;
const NUMBER_OR_LITERAL =
  /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)(?![-+.\w])/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these may not stand in a string.
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;
const BLANK = /[ \t\r\n]*/y;

/**
 * Walks over a text once; throws an OffsetFault at the first thing that is not JSON. It makes no
 * values: who wants one slices it out of the text, or lets JSON.parse make it. JSON.parse alone
 * tells no place, and reads large tables without a pause.
 */
export class JsonScanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where it stands. */
  get at(): number {
    return this.#at;
  }

  /** Goes to the value. */
  begin(): void {
    if (this.#next() === '') this.#fail('nothing: the file is empty');
  }

  /** After the value nothing follows. */
  end(): void {
    if (this.#next() !== '')
      this.#fail('something after the end of the value (a "}" or "]" too many)');
  }

  /** Passes over a value. */
  value(depth = 0): void {
    if (depth > DEEPEST) this.#fail(`more than ${DEEPEST} levels of nesting`);
    const next = this.#next();
    if (next === '{') for (const _ of this.entries()) this.value(depth + 1);
    else if (next === '[') for (const _ of this.items()) this.value(depth + 1);
    else if (next === '"') this.#string();
    else if (this.#pass(NUMBER_OR_LITERAL)) return;
    else if (next === '') this.#fail('the end of the file where a value should stand');
    else this.#fail('no value: a string in double quotes, a number, true, false, null, {…} or […]');
  }

  /**
   * At "{": stands before the value of each entry in turn, which the caller passes over; then
   * behind the "}".
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

  /** At "[": stands before each item in turn, which the caller passes over; then behind the "]". */
  items(): Generator<void, void> {
    return this.#parts(']');
  }

  /** What stands between commas, up to the end of the object or list. */
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

  /** @returns the string as it stands, with its quotes */
  #string(): string {
    const start = this.#at;
    this.#at += 1;
    do this.#pass(PLAIN_CHARACTERS);
    while (this.#pass(ESCAPE));
    const next = this.#text.charAt(this.#at);
    if (/^[\r\n]?$/.test(next)) this.#fail('a string that is not closed on its line', start);
    if (next !== '"')
      this.#fail('no character of a string: write "\\\\" for a backslash, "\\t" for a tab');
    this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  /** The next character, within the object or list that begins there. */
  #nextWithin(opened: number): string {
    const next = this.#next();
    if (next !== '') return next;
    const { line } = positionOf(this.#text, opened);
    const what = this.#text[opened] === '{' ? 'object' : 'list';
    return this.#fail(`the end of the file within the ${what} opened in line ${line}`);
  }

  /** @param pattern sticky @returns whether it was there */
  #pass(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.test(this.#text);
    if (found) this.#at = pattern.lastIndex;
    return found;
  }

  /** Passes over white space. @returns what stands behind it; empty at the end */
  #next(): string {
    this.#pass(BLANK);
    const next = this.#text.charAt(this.#at);
    if (next === '#' || /^\/[/*]/.test(this.#text.slice(this.#at, this.#at + 2)))
      this.#fail('a comment: JSON has none, so remove it');
    return next;
  }

  #fail(what: string, offset = this.#at): never {
    throw new OffsetFault(offset, what);
  }
}

/** Line and column (characters) of an offset, from 1. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const lines = text.slice(0, offset).split('\n');
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 };
}
