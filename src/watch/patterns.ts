import createIgnore, { type Ignore } from 'ignore';

/** `ignore` remembers every path it was asked about, for ever; a matcher is renewed after this many questions. */
const QUESTIONS_PER_MATCHER = 10_000;

export interface PatternMatch {
  /** What the last matching pattern says: `!pattern` takes back what an earlier one matched. */
  readonly verdict: 'matched' | 'taken back';
  /** As it was written; empty where it is not known. */
  readonly pattern: string;
}

/** A list of gitignore patterns, case-sensitive as the file system is. Memory stays constant over any number of paths. */
export class PatternList {
  readonly #compiled: Ignore;
  #matcher: Ignore;
  #questions = 0;

  private constructor(compiled: Ignore) {
    this.#compiled = compiled;
    this.#matcher = compiled;
  }

  /** Of a list in the configuration, where a leading `#` belongs to the pattern: there are no comments. */
  static ofList(patterns: readonly string[]): PatternList {
    const escaped = patterns.map((pattern) => (pattern.startsWith('#') ? `\\${pattern}` : pattern));
    return new PatternList(emptyMatcher().add(escaped));
  }

  /** Of a file written like a .gitignore. */
  static ofText(text: string): PatternList {
    return new PatternList(emptyMatcher().add(text));
  }

  /** What the patterns say of a path (relative to where they stand), or undefined where none matches. */
  test(path: string, kind: 'file' | 'directory'): PatternMatch | undefined {
    if (this.#questions === 0) this.#matcher = emptyMatcher().add(this.#compiled);
    this.#questions = (this.#questions + 1) % QUESTIONS_PER_MATCHER;
    const result = this.#matcher.test(kind === 'directory' ? `${path}/` : path);
    if (result.ignored) return { verdict: 'matched', pattern: result.rule?.pattern ?? '' };
    return result.unignored ? { verdict: 'taken back', pattern: '' } : undefined;
  }
}

function emptyMatcher(): Ignore {
  return createIgnore({ ignoreCase: false });
}
