/** Brings the pieces of a text into another form, in one pass. */
export interface Rewriting {
  /** The next piece; what may belong together with the beginning of the following one is kept. */
  piece(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

/**
 * What a rewriting looks for, byte by byte: the bytes are read as Latin-1, whatever their encoding
 * is.
 */
export interface RewritingRules {
  /** With the flag `g`. */
  readonly pattern: RegExp;
  /**
   * Returns what stands in the place of a match; further arguments are the groups of the pattern.
   */
  readonly replacer: (found: string, ...groups: readonly (string | undefined)[]) => string;
  /** Matches what may be the beginning of a match at the end of a piece. */
  readonly cut: RegExp;
  /** The longest match, in bytes. */
  readonly longest: number;
  /** Left out at the beginning of the text. @default nothing */
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
    // Behind the groups stand the offset and the whole text.
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

/** One rewriting behind another. */
export function inTurn(first: Rewriting, next: Rewriting): Rewriting {
  return {
    piece: (bytes) => next.piece(first.piece(bytes)),
    end: () => Buffer.concat([next.piece(first.end()), next.end()]),
  };
}

/** Letters behind the text of an operating system command; a longer one is none. */
const LONGEST_COMMAND = 4_000;
/**
 * Sequences by which a program tells a terminal how to show what follows (ECMA-48): CSI (colours,
 * the cursor), OSC (links, the title of the window), and the choice of letters that `tput sgr0`
 * makes.
 */
const SEQUENCES = new RegExp(
  `\\x1b(?:\\[[0-?]{0,64}[ -/]{0,8}([@-~])|\\][^\\x00-\\x1f]{0,${LONGEST_COMMAND}}(?:\\x07|\\x1b\\\\)|[()][0AB])`,
  'g',
);
// biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with one, and may end with one.
const CUT_SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*|\][^\x00-\x1f]*\x1b?|[()])?$/;

/**
 * Colours and the end of a line stand within words. A sequence that moves the cursor stands between
 * them.
 */
function inPlaceOf(_sequence: string, final?: string): string {
  return final === undefined || final === 'm' || final === 'K' ? '' : ' ';
}

/** A text without the sequences that only a terminal understands. */
export function withoutSequences(text: string): string {
  return text.includes('\x1b')
    ? text.replace(SEQUENCES, (found, final?: string) => inPlaceOf(found, final))
    : text;
}

/** Takes the sequences out that only a terminal understands. */
export function sequencesRewriting(): Rewriting {
  return rewriting({
    pattern: SEQUENCES,
    replacer: inPlaceOf,
    cut: CUT_SEQUENCE,
    longest: LONGEST_COMMAND + 4,
  });
}
