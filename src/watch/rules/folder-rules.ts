import type { FolderConfig } from '../../config/config.js';
import { documentUrl } from '../../config/url.js';
import { DEFAULT_IGNORE } from '../../lib/default-ignore.js';
import { quoted } from '../../lib/text.js';
import { directoriesAbove } from '../lister.js';
import { IGNORE_FILE, IgnoreFiles, PatternList } from './ignore-files.js';

/** The decision on one file, and the rule behind it, worded as part of a sentence. */
export type Decision =
  | {
      readonly take: true;
      readonly collection: string;
      readonly url: string;
      readonly rule: string;
    }
  | { readonly take: false; readonly rule: string };

/** The verdict of all rules on a file. `by` is the index of the one of `rules` that takes it. */
type Verdict =
  | { readonly kind: 'excluded'; readonly rule: string }
  | { readonly kind: 'taken'; readonly collection: string; readonly by: number | undefined };

/** A decision to take the file. */
export type Taken = Extract<Decision, { take: true }>;

/**
 * Decides by its path whether a file of a folder is taken, and for which collection. A file is
 * *excluded* if
 *
 * - an ignore pattern matches it, or a directory that it stands in. The deepest `.peersyncignore`
 *   file that matches decides (`!pattern` takes a file back), then the folder's `ignore`, then the
 *   defaults;
 * - no pattern of `include` matches it;
 * - the first of `rules` that matches says `skip`.
 *
 * Every other file is taken. Its collection is that of the first rule that matches, otherwise that
 * of the folder. A file that is taken may still be skipped for its stat (`failures.ts`) or its
 * content (`Reconciler`). If a `.peersyncignore` file cannot be read, everything below its
 * directory is excluded, and the peer keeps what it was given.
 */
export class FolderRules {
  readonly ignoreFiles: IgnoreFiles;
  readonly #ignore: PatternList;
  readonly #defaults: PatternList;
  /** Undefined if `include` takes everything. */
  readonly #include: PatternList | undefined;
  /** One list for each of `rules`, in the same order. */
  readonly #matches: readonly PatternList[];

  constructor(private readonly folder: FolderConfig) {
    this.ignoreFiles = new IgnoreFiles(folder.path);
    this.#ignore = new PatternList(folder.ignore);
    this.#defaults = new PatternList(folder.ignoreDefaults ? DEFAULT_IGNORE : [], true);
    const takesAll = folder.include.some((pattern) => pattern === '*' || pattern === '**');
    this.#include = takesAll ? undefined : new PatternList(folder.include);
    this.#matches = folder.rules.map(({ match }) => new PatternList([match]));
  }

  /** Decides on the file at `path`, relative to the folder. */
  decide(path: string): Decision {
    const rule = this.closedBy(path);
    return rule === undefined ? this.decideEntered(path) : { take: false, rule };
  }

  /**
   * Returns the rule that excludes a directory above `path`. If `path` ends in a slash, that
   * directory itself is tested too.
   */
  closedBy(path: string): string | undefined {
    for (const directory of directoriesAbove(path)) {
      const rule = directory === '' ? undefined : this.closedEntered(directory);
      if (rule !== undefined) return rule;
    }
    return undefined;
  }

  /** Decides like `decide` on a file whose directory is known to be entered. */
  decideEntered(path: string): Decision {
    const verdict = this.#judge(path);
    if (verdict.kind === 'excluded') return { take: false, rule: verdict.rule };
    const { name, url } = this.folder;
    const { by, collection } = verdict;
    const taker = by === undefined ? `folder ${quoted(name)} takes it` : this.#nameOf(by);
    const rule = `${taker}: collection ${quoted(collection)}`;
    return { take: true, collection, url: documentUrl(url, path), rule };
  }

  /** Returns the collection of a file whose directory is entered; undefined if it is excluded. */
  collectionEntered(path: string): string | undefined {
    const verdict = this.#judge(path);
    return verdict.kind === 'taken' ? verdict.collection : undefined;
  }

  /** Returns the rule that excludes a directory whose parent is known to be entered. */
  closedEntered(directory: string): string | undefined {
    const ignored = this.#ignoredBy(directory, '/');
    if (ignored !== undefined) return ignored;
    for (const [index, rule] of this.folder.rules.entries()) {
      // An earlier rule may take files of the directory, so a later `skip` does not close it.
      if ('collection' in rule) return undefined;
      if (this.#matches[index]?.test(`${directory}/`).ignored)
        return `${this.#nameOf(index)}: skip`;
    }
    return undefined;
  }

  #judge(path: string): Verdict {
    if (path === IGNORE_FILE || path.endsWith(`/${IGNORE_FILE}`))
      return excluded(`${IGNORE_FILE} is a file of rules and is not pushed`);
    const ignored = this.#ignoredBy(path, '');
    if (ignored !== undefined) return excluded(ignored);
    if (this.#include?.test(path).ignored === false)
      return excluded(`no pattern of include of folder ${quoted(this.folder.name)} matches`);
    const index = this.#matches.findIndex((patterns) => patterns.test(path).ignored);
    const rule = this.folder.rules[index];
    if (rule !== undefined && !('collection' in rule))
      return excluded(`${this.#nameOf(index)}: skip`);
    const collection = rule?.collection ?? this.folder.collection;
    return { kind: 'taken', collection, by: rule && index };
  }

  #nameOf(index: number): string {
    return `rules[${index}] ${JSON.stringify(this.folder.rules[index]?.match)} of folder ${quoted(this.folder.name)}`;
  }

  #ignoredBy(path: string, end: '' | '/'): string | undefined {
    const verdict = this.ignoreFiles.test(path, end);
    if (verdict.kind === 'ignored') return verdict.rule;
    if (verdict.kind === 'unignored') return undefined;
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

function excluded(rule: string): Verdict {
  return { kind: 'excluded', rule };
}
