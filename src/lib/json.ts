/** Where a text stops being JSON, and why; lines and columns count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** What stands there and what would be right, as one phrase. It quotes nothing but keys. */
  readonly what: string;
}

export type JsonResult = { readonly value: unknown } | { readonly fault: JsonFault };

const DEEPEST = 64;

/** Reads JSON, strictly, and says of what is wrong where it stands; a key that stands twice is wrong too. */
export function parseJson(text: string): JsonResult {
  try {
    new JsonScanner(text).document();
  } catch (error) {
    if (error instanceof OffsetFault)
      return { fault: { ...positionOf(text, error.offset), what: error.what } };
    throw error;
  }
  return { value: JSON.parse(text) };
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
 * Walks over a text once; throws an OffsetFault at the first thing that is not JSON. It makes no values: who wants one slices
 * it out of the text, or lets JSON.parse make it.
 */
export class JsonScanner {
  readonly #text: string;
  #at: number;

  constructor(text: string, from = 0) {
    this.#text = text;
    this.#at = from;
  }

  /** Where it stands. */
  get at(): number {
    return this.#at;
  }

  document(): void {
    this.begin();
    this.value();
    this.end();
  }

  /** Goes to the value. */
  begin(): void {
    this.#blank();
    if (this.#at === this.#text.length) this.#fail('nothing: the file is empty');
  }

  /** After the value nothing follows. */
  end(): void {
    this.#blank();
    if (this.#at < this.#text.length)
      this.#fail('something after the end of the value (a "}" or "]" too many)');
  }

  /** Passes over a value. */
  value(depth = 0): void {
    if (depth > DEEPEST) this.#fail(`more than ${DEEPEST} levels of nesting`);
    const next = this.#next();
    if (next === '{') for (const _ of this.entries()) this.value(depth + 1);
    else if (next === '[') for (const _ of this.items()) this.value(depth + 1);
    else if (next === '"') this.#string();
    else if (/[-+.\d]/.test(next)) this.#number();
    else this.#literal();
  }

  /** At "{": stands before the value of each entry in turn, which the caller passes over; then behind the "}". */
  *entries(): Generator<{ readonly name: string; readonly at: number }, void> {
    const opened = this.#at;
    const seen = new Set<string>();
    this.#at += 1;
    this.#blank();
    while (this.#next() !== '}') {
      const keyAt = this.#at;
      if (this.#next() !== '"') this.#failAtKey(opened);
      const name = String(JSON.parse(this.#string()));
      if (seen.has(name))
        this.#fail(`the key ${JSON.stringify(name)} for the second time in one object`, keyAt);
      seen.add(name);
      this.#blank();
      if (this.#next() !== ':') this.#fail('a key without ":" and a value after it');
      this.#at += 1;
      this.#blank();
      yield { name, at: keyAt };
      this.#separator('}', opened);
    }
    this.#at += 1;
  }

  /** At "[": stands before each item in turn, which the caller passes over; then behind the "]". */
  *items(): Generator<void, void> {
    const opened = this.#at;
    this.#at += 1;
    this.#blank();
    while (this.#next() !== ']') {
      yield;
      this.#separator(']', opened);
    }
    this.#at += 1;
  }

  /** After a value: a comma and something more, or the end of the object or list. */
  #separator(end: '}' | ']', opened: number): void {
    this.#blank();
    if (this.#next() === end) return;
    if (this.#next() !== ',') {
      this.#failAtEnd(opened);
      this.#fail(`neither "," nor "${end}" after a value (is a comma missing before?)`);
    }
    const comma = this.#at;
    this.#at += 1;
    this.#blank();
    if (this.#next() === end) this.#fail(`a comma before "${end}": remove the comma`, comma);
    this.#failAtEnd(opened);
  }

  /** @returns the string as it stands, with its quotes */
  #string(): string {
    const start = this.#at;
    this.#at += 1;
    for (;;) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these may not stand in a string.
      this.#pass(/[^"\\\u0000-\u001f]*/y);
      const next = this.#next();
      if (next === '"') break;
      if (next === '') this.#fail('a string that is never closed', start);
      if (next === '\n' || next === '\r') this.#fail('a string that is not closed on its line', start);
      if (next !== '\\') this.#fail('a control character in a string: write it as an escape such as "\\t"');
      this.#escape();
    }
    this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  #escape(): void {
    const [found] = /^\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/.exec(this.#text.slice(this.#at, this.#at + 6)) ?? [];
    if (found === undefined)
      this.#fail('a backslash that begins no escape of JSON: write "\\\\" for a backslash');
    this.#at += found.length;
  }

  #number(): void {
    const word = this.#word();
    if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(word))
      this.#fail('no number as JSON writes them');
    this.#at += word.length;
  }

  #literal(): void {
    const word = this.#word();
    if (word === 'true' || word === 'false' || word === 'null') {
      this.#at += word.length;
      return;
    }
    this.#failAtComment();
    if (this.#next() === "'") this.#fail("a single quote: JSON's strings stand in double quotes");
    if (this.#next() === '') this.#fail('the end of the file where a value should stand');
    this.#fail(
      'no value: a string stands in double quotes, the rest is a number, true, false, null, {…} or […]',
    );
  }

  #failAtKey(opened: number): void {
    this.#failAtEnd(opened);
    this.#failAtComment();
    this.#fail('a key without double quotes');
  }

  #failAtEnd(opened: number): void {
    if (this.#next() !== '') return;
    const { line } = positionOf(this.#text, opened);
    this.#fail(
      `the end of the file within the ${this.#text[opened] === '{' ? 'object' : 'list'} opened in line ${line}`,
    );
  }

  #failAtComment(): void {
    if (/^(?:\/[/*]|#)/.test(this.#text.slice(this.#at, this.#at + 2))) {
      this.#fail('a comment: JSON has none, so remove it');
    }
  }

  /** Passes over white space, and stops at a comment with the right words. */
  #blank(): void {
    this.#pass(/[ \t\r\n]*/y);
    this.#failAtComment();
  }

  /** @param pattern sticky */
  #pass(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    pattern.test(this.#text);
    this.#at = pattern.lastIndex;
  }

  #word(): string {
    return /^[-+.\w]*/.exec(this.#text.slice(this.#at, this.#at + 400))?.[0] ?? '';
  }

  #next(): string {
    return this.#text.charAt(this.#at);
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
