/** One way in that a server offers: `Digest realm="…", nonce="…"`. Names of scheme and parameters are in lower case. */
export interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=[\t ]*(?:,|$))/y;
const BLANKS = /[\t ]*/y;
const SEPARATORS = /[\t ,]*/y;
const EQUALS = /[\t ]*=[\t ]*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/sy;

/**
 * Reads WWW-Authenticate: several challenges in one header or in several, quoted texts that hold commas and quotes
 * (RFC 9110, 11.6.1). What cannot be read ends the reading of that header; what was read before it stands.
 */
export function parseChallenges(header: string | readonly string[] | undefined): readonly Challenge[] {
  if (header === undefined) return [];
  return (typeof header === 'string' ? [header] : header).flatMap(parseHeader);
}

function parseHeader(text: string): Challenge[] {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  const scanner = new Scanner(text);
  for (;;) {
    scanner.take(SEPARATORS);
    const name = scanner.take(TOKEN);
    if (name === undefined) return challenges;
    const current = challenges.at(-1);
    if (current !== undefined && scanner.take(EQUALS) !== undefined) {
      const value = scanner.quoted() ?? scanner.take(TOKEN);
      if (value === undefined) return challenges;
      const key = name.toLowerCase();
      if (!current.parameters.has(key)) current.parameters.set(key, value);
      continue;
    }
    challenges.push({ scheme: name.toLowerCase(), parameters: new Map() });
    scanner.take(BLANKS);
    scanner.take(TOKEN68);
  }
}

class Scanner {
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  take(pattern: RegExp): string | undefined {
    return this.#match(pattern)?.[0];
  }

  quoted(): string | undefined {
    return this.#match(QUOTED)?.[1]?.replace(/\\(.)/gs, '$1');
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match;
  }
}
