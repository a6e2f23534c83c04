import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import createIgnore, { type Ignore, type TestResult } from 'ignore';
import type { FolderConfig } from '../config/config.js';
import { DEFAULT_IGNORE } from '../config/default-ignore.js';
import { documentUrl } from '../config/url.js';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { type FileStat, fileStat, joinPath, sameStat } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
import { escapeInvisible, isWithin, quoted, shellWord } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { EXCLUDED, type Failure } from '../state/entry.js';
import { directoriesAbove, isAbsence, look } from './lister.js';

export const IGNORE_FILE = '.peersyncignore';
/** The code of a file that is kept out as a private key. */
export const PRIVATE_KEY = 'PRIVATE_KEY';

/** Larger ones are no rules that a person wrote. */
const LARGEST_BYTES = 1_048_576;
/**
 * `ignore` remembers every path it was asked about, for ever; a matcher is renewed after this many
 * questions.
 */
const QUESTIONS_PER_MATCHER = 10_000;

/** What becomes of a file, and the rule that says so, as part of a sentence. */
export type Decision =
  | {
      readonly take: true;
      readonly collection: string;
      readonly url: string;
      readonly rule: string;
    }
  | { readonly take: false; readonly rule: string };

/** A `.peersyncignore` file as it was read. */
interface RulesFile {
  readonly stat: FileStat;
  /**
   * Or why it could not be read: what is to be kept from the peer is not known, so nothing below
   * may be taken.
   */
  readonly patterns: PatternList | string;
}

/**
 * The stat of a file that is not there; its times are no age, so it has to stay away for `settle`.
 */
const ABSENT = {
  size: 0,
  mtimeMs: Number.POSITIVE_INFINITY,
  ctimeMs: Number.POSITIVE_INFINITY,
  ino: 0,
};

/**
 * Which files of a folder are taken, and for which collection. A file is skipped when
 *
 * - a `.peersyncignore` file of its directory or one above says so (the deepest that says anything
 *   wins, and `!pattern` takes back), or else a pattern of the folder's `ignore`, or else of the
 *   defaults, for the file or a directory that it stands in;
 * - no pattern of `include` matches it;
 * - the first of `rules` that matches says `skip`.
 *
 * Every other file is taken, for the collection of the first rule that matches or else of the
 * folder. Where a `.peersyncignore` file cannot be read, nothing of its directory is taken: what a
 * peer was given it keeps.
 */
export class FolderRules {
  readonly #ignore: PatternList;
  readonly #defaults: PatternList;
  readonly #include: PatternList | undefined;
  /** Of each of `rules`. */
  readonly #matches: readonly PatternList[];
  /** By directory. */
  readonly #files = new Map<string, RulesFile>();

  constructor(private readonly folder: FolderConfig) {
    this.#ignore = new PatternList(folder.ignore);
    this.#defaults = new PatternList(folder.ignoreDefaults ? DEFAULT_IGNORE : [], true);
    const takesAll = folder.include.some((pattern) => pattern === '*' || pattern === '**');
    this.#include = takesAll ? undefined : new PatternList(folder.include);
    this.#matches = folder.rules.map(({ match }) => new PatternList([match]));
  }

  /** Reads the `.peersyncignore` files that rule a path. */
  async readIgnoreFiles(path: string): Promise<void> {
    for (const directory of directoriesAbove(path)) await this.readIgnoreFile(directory);
  }

  /**
   * Reads the `.peersyncignore` file of one directory if it changed, or could not be read before. A
   * new file counts at once. One that was changed or removed counts when that has settled: a
   * half-written file would let through what the whole one keeps out, and what a peer was given it
   * keeps.
   *
   * @param atRest whether the file has settled
   * @returns whether the rules are others now
   */
  async readIgnoreFile(
    directory: string,
    atRest = (_file: string, _stat: FileStat): boolean => true,
  ): Promise<boolean> {
    const file = joinPath(directory, IGNORE_FILE);
    const before = this.#files.get(directory);
    const now = await readRules(joinPath(this.folder.path, file), before);
    // Somebody else read it meanwhile, and what was read here may be older.
    if (this.#files.get(directory) !== before) return await this.readIgnoreFile(directory, atRest);
    if (now === before || (before !== undefined && !atRest(file, now?.stat ?? ABSENT)))
      return false;
    if (now === undefined) this.#files.delete(directory);
    else this.#files.set(directory, now);
    return now?.patterns !== before?.patterns;
  }

  /** Why the file of a directory, or of one above, could not be read, if so. */
  unreadableFor(directory: string): { readonly file: string; readonly reason: string } | undefined {
    if (this.#files.size === 0) return undefined;
    for (const above of directoriesAbove(joinPath(directory, IGNORE_FILE))) {
      const reason = this.#files.get(above)?.patterns;
      if (typeof reason === 'string') return { file: joinPath(above, IGNORE_FILE), reason };
    }
    return undefined;
  }

  /**
   * Forgets the `.peersyncignore` files of a directory and of all below it. @returns whether there
   * were any
   */
  forget(directory: string): boolean {
    const { size } = this.#files;
    for (const known of this.#files.keys())
      if (known === directory || known.startsWith(`${directory}/`)) this.#files.delete(known);
    return this.#files.size < size;
  }

  /** What becomes of the file at `path`, relative to the folder. */
  decide(path: string): Decision {
    const closed = this.closed(path);
    return closed === undefined ? this.decideEntered(path) : { take: false, rule: closed };
  }

  /**
   * The rule that keeps out a directory that `path` stands in; of a directory's path with a slash,
   * that directory or one above.
   */
  closed(path: string): string | undefined {
    for (const directory of directoriesAbove(path)) {
      const rule = directory === '' ? undefined : this.closedEntered(directory);
      if (rule !== undefined) return rule;
    }
    return undefined;
  }

  /** As `decide`, for a file whose directory is known to be entered. */
  decideEntered(path: string): Decision {
    const { name, url } = this.folder;
    if (basename(path) === IGNORE_FILE)
      return { take: false, rule: `${IGNORE_FILE} is a file of rules and is not pushed` };
    const ignored = this.#ignored(path);
    if (ignored !== undefined) return { take: false, rule: ignored };
    if (this.#include?.test(path).ignored === false)
      return { take: false, rule: `no pattern of include of folder ${quoted(name)} matches` };
    const index = this.#matches.findIndex((patterns) => patterns.test(path).ignored);
    const rule = this.folder.rules[index];
    if (rule !== undefined && !('collection' in rule))
      return { take: false, rule: `${this.#nameOf(index)}: skip` };
    const collection = rule?.collection ?? this.folder.collection;
    const taker = rule === undefined ? `folder ${quoted(name)} takes it` : this.#nameOf(index);
    const text = `${taker}: collection ${quoted(collection)}`;
    return { take: true, collection, url: documentUrl(url, path), rule: text };
  }

  /** The rule that keeps out a directory which stands in one known to be entered. */
  closedEntered(directory: string): string | undefined {
    const ignored = this.#ignored(directory, '/');
    if (ignored !== undefined) return ignored;
    for (const [index, rule] of this.folder.rules.entries()) {
      // What an earlier rule may take is not skipped whole.
      if ('collection' in rule) return undefined;
      if (this.#matches[index]?.test(`${directory}/`).ignored)
        return `${this.#nameOf(index)}: skip`;
    }
    return undefined;
  }

  #nameOf(index: number): string {
    return `rules[${index}] ${JSON.stringify(this.folder.rules[index]?.match)} of folder ${quoted(this.folder.name)}`;
  }

  /** @param end a slash for a directory */
  #ignored(path: string, end = ''): string | undefined {
    for (const directory of this.#files.size === 0 ? [] : directoriesAbove(path).toReversed()) {
      const patterns = this.#files.get(directory)?.patterns;
      if (patterns === undefined) continue;
      const where = `${IGNORE_FILE} in ${directory === '' ? 'the folder' : `${escapeInvisible(directory)}/`}`;
      if (typeof patterns === 'string') return `${where} cannot be read (${patterns})`;
      const found = patterns.test(
        `${directory === '' ? path : path.slice(directory.length + 1)}${end}`,
      );
      if (found.ignored) return `${where}: ${JSON.stringify(found.rule?.pattern)}`;
      if (found.unignored) return undefined;
    }
    const own = this.#ignore.test(path + end);
    if (own.ignored)
      return `ignore pattern ${JSON.stringify(own.rule?.pattern)} of folder ${quoted(this.folder.name)}`;
    if (own.unignored) return undefined;
    const { ignored, rule } = this.#defaults.test(path + end);
    return ignored
      ? `ignoreDefaults of folder ${quoted(this.folder.name)}: ${JSON.stringify(rule?.pattern)}`
      : undefined;
  }
}

/** @returns `before` where it is still that, and undefined where there is none */
async function readRules(
  path: string,
  before: RulesFile | undefined,
): Promise<RulesFile | undefined> {
  const found = await look(path);
  if ('code' in found)
    return isAbsence(found.code) ? undefined : { stat: ABSENT, patterns: found.code };
  const stat = fileStat(found.stat);
  if (before?.patterns instanceof PatternList && sameStat(before.stat, stat)) return before;
  if (found.kind !== 'file') return { stat, patterns: 'it is not a regular file' };
  if (stat.size > LARGEST_BYTES) return { stat, patterns: 'it is larger than 1 MiB' };
  try {
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return { stat, patterns: new PatternList(await readFile(path, { encoding: 'utf8', flag })) };
  } catch (error) {
    const code = systemCode(error) ?? 'UNKNOWN';
    return code === 'ENOENT' ? undefined : { stat, patterns: code };
  }
}

/**
 * A list of gitignore patterns, case-sensitive as the file system is. Memory stays constant over
 * any number of paths.
 */
export class PatternList {
  readonly #compiled: Ignore;
  #matcher: Ignore;
  #questions = 0;

  /**
   * @param patterns the text of a .gitignore, or a list where a leading `#` belongs to the pattern:
   *   there are no comments
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
   * What the last matching pattern says of a path, relative to where they stand, and with a slash
   * where it is a directory: `ignored`, or `unignored` by a `!pattern`.
   */
  test(path: string): TestResult {
    if (this.#questions === 0)
      this.#matcher = createIgnore({ ignoreCase: this.ignoreCase }).add(this.#compiled);
    this.#questions = (this.#questions + 1) % QUESTIONS_PER_MATCHER;
    return this.#matcher.test(path);
  }
}

/**
 * Something in a folder that keeps files from being seen, and that no record of a file can tell.
 */
export interface PathProblem {
  readonly folder: string;
  /** Absolute. Names that are not valid UTF-8 are shown with U+FFFD. */
  readonly path: string;
  readonly failure: Failure;
  /** When it was first seen, in ms since the epoch. */
  readonly since: number;
}

/** How many are kept; the rest is only counted. */
const KEPT = 1_000;

/**
 * The problems of one folder. Each is logged once, when it is first seen, and forgotten when a full
 * scan does not see it.
 */
export class Problems {
  /** How many there are besides the listed ones. */
  unnamed = 0;
  readonly #known = new Map<string, PathProblem>();
  readonly #seen = new Set<string>();

  constructor(
    private readonly folder: string,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  report(path: string, failure: Failure): void {
    const { folder, log } = this;
    const { code, message, hint } = failure;
    const key = `${code} ${path} ${message}`;
    const isNew = !this.#known.has(key);
    // A limit of watches decides how often the folder is scanned.
    if (isNew && this.#known.size >= KEPT && code !== 'WATCH_LIMIT') {
      this.unnamed += 1;
      if (this.unnamed === 1)
        log.warn({ folder }, `There are more than ${KEPT} such paths; no more are named.`);
      return;
    }
    if (isNew) {
      this.#known.set(key, { folder, path, failure, since: this.clock.now() });
      log.warn({ folder, path, code }, `${escapeInvisible(path)}: ${message} ${hint}`);
    }
    this.#seen.add(key);
  }

  /** A full scan begins: what it does not report again is over when it ends. */
  beginScan(): void {
    this.#seen.clear();
    this.unnamed = 0;
  }

  endScan(): void {
    for (const key of this.#known.keys()) if (!this.#seen.has(key)) this.#known.delete(key);
  }

  list(): readonly PathProblem[] {
    return [...this.#known.values()];
  }

  find(code: string): readonly PathProblem[] {
    return this.list().filter(({ failure }) => failure.code === code);
  }

  /** A path has no problem any more, or another one, and so has all below it. */
  resolve(path: string): void {
    for (const [key, known] of this.#known) if (isWithin(known.path, path)) this.#known.delete(key);
  }
}

const GOES_ON =
  'A daemon that runs sees that within seconds and goes on; where none runs, `peersync once` does.';

/** Why a file or a directory was not taken: everything that watching can say, in one place. */
export const failures = {
  empty: () => ({
    code: 'EMPTY',
    message: 'The file is empty.',
    hint: 'It is taken as soon as something is in it.',
  }),
  excluded: (folder: string) => ({
    code: EXCLUDED,
    message: 'A rule keeps it out, and the peer keeps what it was sent of it.',
    hint: `\`peersync forget ${shellWord(folder)} --remove\` removes such documents from the peer.`,
  }),
  privateKey: (folder: string) => ({
    code: PRIVATE_KEY,
    message:
      'The file holds a private key. It is kept out because a peer may publish its documents.',
    hint: `Move it out of the folder. Where it is meant to be found, set "ignoreDefaults": false for the folder ${quoted(folder)}.`,
  }),
  tooLarge: (size: number, limit: number) => ({
    code: 'TOO_LARGE',
    message: `The file has ${formatBytes(size)}; the limit of its folder is ${formatBytes(limit)}.`,
    hint: 'Raise `maxFileSize` of the folder if the peer takes such large documents.',
  }),
  unreadable: (code: string) => ({
    code: 'UNREADABLE',
    message: `The file cannot be read (${code}).`,
    hint:
      code === 'EACCES' || code === 'EPERM'
        ? 'Give the user that peersync runs as the right to read it.'
        : 'See the system log: the disk or the network mount may be failing.',
  }),
  sameDocument: (other: string) => ({
    code: 'SAME_DOCUMENT',
    message: `Its document is already that of ${escapeInvisible(other)}, a name that only differs in its Unicode form.`,
    hint: 'Rename or remove one of the two; both have the same URL.',
  }),
  directoryUnreadable: (code: string) => ({
    code: 'DIRECTORY_UNREADABLE',
    message: `The directory cannot be listed (${code}); what is in it is not known.`,
    hint: 'Give the user that peersync runs as the right to read and enter it.',
  }),
  linkUnreadable: (code: string) => ({
    code: 'LINK_UNREADABLE',
    message: `The symbolic link cannot be followed (${code}); what it leads to is not known.`,
    hint: 'Give the user that peersync runs as the right to enter the directories on the way, or remove the link.',
  }),
  pathTooLong: () => ({
    code: 'PATH_TOO_LONG',
    message: 'The path is longer than the system allows; what is there cannot be read.',
    hint: 'Move it up some levels, or watch a directory further down as a folder of its own.',
  }),
  nameNotUtf8: () => ({
    code: 'NAME_NOT_UTF8',
    message: 'The name is not valid UTF-8 and has no URL.',
    hint: 'Rename it, for instance with convmv; `ls -b` shows its bytes.',
  }),
  rulesUnreadable: (reason: string) => ({
    code: 'RULES_UNREADABLE',
    message: `The rules cannot be read (${reason}), so everything that they are for is skipped.`,
    hint: 'Make the file readable, or remove it.',
  }),
  /**
   * @param wasSeen it was there before: an empty one in its place would hide that something is not
   *   mounted
   */
  rootMissing: (path: string, code: string, wasSeen: boolean) => ({
    code: 'FOLDER_MISSING',
    message: `The folder ${escapeInvisible(path)} is not there or cannot be read (${code}); nothing counts as removed because of that.`,
    hint: `${wasSeen ? 'Mount it or bring it back' : 'Mount or create it'}. ${GOES_ON}`,
  }),
  mountAway: (path: string, folder: string) => ({
    code: 'MOUNT_AWAY',
    message: `The file system that was mounted on ${escapeInvisible(path)} is not there; nothing in the directory is taken, and nothing that was on it counts as removed.`,
    hint: `Mount it. ${GOES_ON} If it is gone for good, put any file into the directory and run \`peersync rescan ${shellWord(folder)}\`.`,
  }),
  rootReplaced: (path: string, name: string) => ({
    code: 'FOLDER_REPLACED',
    message: `The folder ${escapeInvisible(path)} is not the one it was (empty, or on another file system): is something not mounted? Nothing in it is taken, and nothing counts as removed.`,
    hint: `Mount what belongs there. ${GOES_ON} If the change is meant, \`peersync rescan ${shellWord(name)}\` takes what is there for the folder; an empty directory needs a file in it first.`,
  }),
  /** @param how it differs from before, in words */
  rootElsewhere: (path: string, how: string, name: string) => ({
    code: 'FOLDER_REPLACED',
    message: `The folder ${path} ${how}. Nothing in it is taken, and nothing counts as removed.`,
    hint: `If the change is meant, \`peersync rescan ${shellWord(name)}\` takes what is there for the folder. Otherwise put back what was there; peersync goes on by itself.`,
  }),
  watchLate: () => ({
    code: 'WATCH_LATE',
    message:
      'The watch of this directory did not come to stand in time; it was listed and watched anew.',
    hint: 'Nothing is lost. If this comes again and again, see whether the disk is well (`dmesg`).',
  }),
  watchLimit: (code: string) => ({
    code: 'WATCH_LIMIT',
    message: `The system's limit of watched directories is reached (${code}): changes are found by rescans only, some minutes late.`,
    hint: 'Raise it: `sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=1024` (and in /etc/sysctl.d to keep it).',
  }),
} satisfies Record<string, (...values: never[]) => Failure>;
