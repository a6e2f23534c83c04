/** Rewrites a text that arrives in pieces, in one pass. */
export interface Rewriting {
  /**
   * Rewrites the next piece. Keeps back an end that may belong to a match in the following piece.
   */
  piece(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

/** The rules of a rewriting. They match bytes, read as Latin-1 whatever the encoding is. */
export interface RewritingRules {
  /** The pattern, with the flag `g`. */
  readonly pattern: RegExp;
  /** Returns the replacement of a match. Further arguments are the groups of the pattern. */
  readonly replacer: (found: string, ...groups: readonly (string | undefined)[]) => string;
  /** Matches text at the end of a piece that may be the beginning of a match. */
  readonly cut: RegExp;
  /** The longest match, in bytes. */
  readonly longest: number;
  /** A prefix that is removed from the text. @default none */
  readonly leftOut?: string;
}

export function rewriting({
  cut,
  leftOut = '',
  longest,
  pattern,
  replacer,
}: RewritingRules): Rewriting {
  let rest = '';
  let isBegun = false;
  const rewritten = (text: string): Uint8Array => {
    if (text === '') return new Uint8Array();
    const from = !isBegun && leftOut !== '' && text.startsWith(leftOut) ? leftOut.length : 0;
    isBegun = true;
    // The offset and the whole text follow the groups.
    const replaced = text
      .slice(from)
      .replace(pattern, (found, ...groups) =>
        replacer(found, ...groups.map((group) => (typeof group === 'string' ? group : undefined))),
      );
    return Buffer.from(replaced, 'latin1');
  };
  return {
    piece(bytes) {
      const text =
        rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
      rest = cut.exec(text.slice(-longest))?.[0] ?? '';
      return rewritten(text.slice(0, text.length - rest.length));
    },
    end() {
      const last = rest;
      rest = '';
      return rewritten(last);
    },
  };
}

/** Applies one rewriting after another. */
export function inTurn(first: Rewriting, next: Rewriting): Rewriting {
  return {
    piece: (bytes) => next.piece(first.piece(bytes)),
    end: () => Buffer.concat([next.piece(first.end()), next.end()]),
  };
}

/** The longest operating system command, in characters. A longer one is not removed. */
const MAX_COMMAND_CHARS = 4_000;
/**
 * The escape sequences with which programs control a terminal (ECMA-48): CSI (colours, cursor), OSC
 * (links, window title), and the choice of character set that `tput sgr0` writes.
 */
const SEQUENCES = new RegExp(
  `\\x1b(?:\\[[0-?]{0,64}[ -/]{0,8}([@-~])|\\][^\\x00-\\x1f]{0,${MAX_COMMAND_CHARS}}(?:\\x07|\\x1b\\\\)|[()][0AB])`,
  'g',
);
// biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with one, and may end with one.
const CUT_SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*|\][^\x00-\x1f]*\x1b?|[()])?$/;

/**
 * Returns the replacement of a sequence: a space if it moves the cursor, because it separates
 * words. Sequences for colours, and for clearing to the end of the line, occur inside words.
 */
function sequenceReplacement(_sequence: string, final?: string): string {
  return final === undefined || final === 'm' || final === 'K' ? '' : ' ';
}

/** Returns a text without terminal escape sequences. */
export function withoutSequences(text: string): string {
  return text.includes('\x1b')
    ? text.replace(SEQUENCES, (found, final?: string) => sequenceReplacement(found, final))
    : text;
}

/** Returns a rewriting that removes terminal escape sequences. */
export function sequencesRewriting(): Rewriting {
  return rewriting({
    pattern: SEQUENCES,
    replacer: sequenceReplacement,
    cut: CUT_SEQUENCE,
    longest: MAX_COMMAND_CHARS + 4,
  });
}
