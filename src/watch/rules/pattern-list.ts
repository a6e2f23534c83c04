import createIgnore, { type Ignore, type TestResult } from 'ignore';

/**
 * The package `ignore` caches every path that it tests and never forgets one. A fresh matcher
 * replaces the old one after this many tests, which bounds the memory.
 */
const TESTS_PER_MATCHER = 10_000;

/**
 * A list of gitignore patterns. It is case-sensitive as the file system is, unless the options say
 * otherwise. Its memory stays constant over any number of paths.
 */
export class PatternList {
  readonly #compiled: Ignore;
  #matcher: Ignore;
  #tests = 0;

  /**
   * @param patterns the text of a .gitignore file, or a list of patterns. In a list, a leading `#`
   *   belongs to the pattern, because a list has no comments.
   * @param ignoreCase whether upper and lower case are the same
   */
  constructor(
    patterns: string | readonly string[],
    private readonly ignoreCase = false,
  ) {
    const escaped = (pattern: string) => (pattern.startsWith('#') ? `\\${pattern}` : pattern);
    const all = typeof patterns === 'string' ? patterns : patterns.map(escaped);
    this.#compiled = createIgnore({ ignoreCase }).add(all);
    this.#matcher = this.#compiled;
  }

  /**
   * Returns the verdict of the last pattern that matches: `ignored`, or `unignored` by a
   * `!pattern`.
   *
   * @param path relative to the directory of the patterns; ends in a slash if it is a directory
   */
  test(path: string): TestResult {
    if (this.#tests === 0)
      this.#matcher = createIgnore({ ignoreCase: this.ignoreCase }).add(this.#compiled);
    this.#tests = (this.#tests + 1) % TESTS_PER_MATCHER;
    return this.#matcher.test(path);
  }
}
