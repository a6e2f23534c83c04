import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import createIgnore, { type Ignore } from 'ignore';
import { systemCode } from '../lib/errors.js';
import { type FileStat, fileStat } from '../lib/file-stat.js';
import { directoriesAbove, isAbsence, joinPath, look, nameOf } from './paths.js';

export const IGNORE_FILE = '.peersyncignore';

/** Stands for a file whose stat is not known. */
const NOT_SEEN: FileStat = { size: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
/** Larger ones are no rules that a person wrote. */
const LARGEST_BYTES = 1_048_576;

type Rules = { readonly stat: FileStat } & (
  | { readonly patterns: PatternList }
  /** What is to be kept from the peer is not known, so nothing below may be taken. */
  | { readonly unreadable: string }
);

/**
 * The `.peersyncignore` files of a folder: each rules its directory and all below it, like a .gitignore. Deeper ones
 * win, and `!pattern` takes back.
 *
 * Where a file cannot be read, nothing of its directory is taken: what a peer was given it keeps.
 */
export class IgnoreFiles {
  readonly #root: string;
  readonly #rules = new Map<string, Rules>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Reads the file of one directory (the folder itself is `''`); undefined where there is none. */
  async read(directory: string): Promise<void> {
    const rules = await readRules(joinPath(this.#root, joinPath(directory, IGNORE_FILE)));
    if (rules === undefined) this.#rules.delete(directory);
    else this.#rules.set(directory, rules);
  }

  /** How the file of a directory looked when it was read; undefined where there was none. */
  statOf(directory: string): FileStat | undefined {
    return this.#rules.get(directory)?.stat;
  }

  /** Why the file of a directory, or of one above, could not be read, if so. */
  unreadableFor(directory: string): { readonly directory: string; readonly reason: string } | undefined {
    if (this.#rules.size === 0) return undefined;
    for (const above of [...directoriesAbove(directory), directory]) {
      const rules = this.#rules.get(above);
      if (rules !== undefined && 'unreadable' in rules) return { directory: above, reason: rules.unreadable };
    }
    return undefined;
  }

  /** Forgets the files of a directory and of all below it. */
  forget(directory: string): void {
    for (const known of this.#rules.keys()) {
      if (known === directory || directory === '' || known.startsWith(`${directory}/`))
        this.#rules.delete(known);
    }
  }

  /** The rule that passes a path over, that the path is `taken back` from other rules, or undefined. */
  test(path: string, kind: 'file' | 'directory'): { readonly rule: string } | 'taken back' | undefined {
    if (this.#rules.size === 0) return undefined;
    for (const directory of directoriesAbove(path).toReversed()) {
      const rules = this.#rules.get(directory);
      if (rules === undefined) continue;
      const where = `${IGNORE_FILE} in ${directory === '' ? 'the folder' : `${directory}/`}`;
      if ('unreadable' in rules) return { rule: `${where} cannot be read (${rules.unreadable})` };
      const match = rules.patterns.test(directory === '' ? path : path.slice(directory.length + 1), kind);
      if (match?.verdict === 'matched') return { rule: `${where}: ${JSON.stringify(match.pattern)}` };
      if (match?.verdict === 'taken back') return 'taken back';
    }
    return undefined;
  }
}

/** Whether a path names a rules file. */
export function isIgnoreFile(path: string): boolean {
  return nameOf(path) === IGNORE_FILE;
}

async function readRules(path: string): Promise<Rules | undefined> {
  const found = await look(path);
  if (found instanceof Error) {
    if (isAbsence(found.code)) return undefined;
    return { stat: NOT_SEEN, unreadable: found.code ?? 'UNKNOWN' };
  }
  const stat = fileStat(found);
  if (!found.isFile()) return { stat, unreadable: 'it is not a regular file' };
  if (stat.size > LARGEST_BYTES) return { stat, unreadable: 'it is larger than 1 MiB' };
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return { stat, patterns: PatternList.ofText(await handle.readFile('utf8')) };
    } finally {
      await handle.close();
    }
  } catch (error) {
    const code = systemCode(error) ?? 'UNKNOWN';
    return code === 'ENOENT' ? undefined : { stat, unreadable: code };
  }
}

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
