import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import { IGNORE_FILE, IgnoreFiles, isIgnoreFile, PatternList } from './ignore-files.js';
import { directoriesAbove, directoryOf } from './paths.js';

/** What becomes of a file, and the rule that says so, as part of a sentence. */
export type Decision =
  | { readonly take: true; readonly collection: string; readonly url: string; readonly rule: string }
  | { readonly take: false; readonly rule: string };

interface CompiledRule {
  readonly patterns: PatternList;
  readonly collection: string | undefined;
  readonly text: string;
}

/**
 * Which files of a folder are taken, and for which collection. A file is passed over when
 *
 * - a `.peersyncignore` file of its directory or one above says so (the deepest that says anything wins), or else
 *   a pattern of the folder's `ignore`, for the file or a directory that it stands in;
 * - no pattern of `include` matches it;
 * - the first of `rules` that matches says `skip`.
 *
 * Every other file is taken, for the collection of the first rule that matches or else of the folder.
 */
export class FolderRules {
  /** The `.peersyncignore` files, as far as they were read. */
  readonly ignoreFiles: IgnoreFiles;
  readonly #folder: FolderConfig;
  readonly #ignore: PatternList;
  readonly #include: PatternList | undefined;
  readonly #rules: readonly CompiledRule[];
  /** The leading rules that skip: what they match is skipped whole, for no earlier rule can say otherwise. */
  readonly #leadingSkips: readonly CompiledRule[];

  constructor(folder: FolderConfig) {
    this.#folder = folder;
    this.ignoreFiles = new IgnoreFiles(folder.path);
    this.#ignore = PatternList.ofList(folder.ignore);
    this.#include = folder.include.some(matchesEverything) ? undefined : PatternList.ofList(folder.include);
    this.#rules = folder.rules.map((rule, index) => ({
      patterns: PatternList.ofList([rule.match]),
      collection: 'collection' in rule ? rule.collection : undefined,
      text: `rules[${index}] ${JSON.stringify(rule.match)} of folder ${folder.name}`,
    }));
    const firstTaking = this.#rules.findIndex((rule) => rule.collection !== undefined);
    this.#leadingSkips = firstTaking === -1 ? this.#rules : this.#rules.slice(0, firstTaking);
  }

  /** Reads the `.peersyncignore` files of a directory (`''` or `.` is the folder) and of those above it. */
  async readIgnoreFiles(directory: string): Promise<void> {
    if (directory === '' || directory === '.') {
      await this.ignoreFiles.read('');
      return;
    }
    for (const above of [...directoriesAbove(directory), directory]) await this.ignoreFiles.read(above);
  }

  /** What becomes of the file at `path`, relative to the folder. */
  decide(path: string): Decision {
    const above = directoryOf(path);
    const closed = above === '' ? undefined : this.closed(above);
    return closed === undefined ? this.decideEntered(path) : { take: false, rule: closed };
  }

  /** The rule that keeps a directory and all below it out, or undefined where it is to be entered. */
  closed(directory: string): string | undefined {
    for (const step of [...directoriesAbove(directory).slice(1), directory]) {
      const rule = this.closedEntered(step);
      if (rule !== undefined) return rule;
    }
    return undefined;
  }

  /** As `decide`, for a file whose directory is known to be entered. */
  decideEntered(path: string): Decision {
    const { collection, name, url } = this.#folder;
    if (isIgnoreFile(path))
      return { take: false, rule: `${IGNORE_FILE} is a file of rules and is not pushed` };
    const ignored = this.#ignored(path, 'file');
    if (ignored !== undefined) return { take: false, rule: ignored };
    if (this.#include !== undefined && this.#include.test(path, 'file')?.verdict !== 'matched') {
      return { take: false, rule: `no pattern of include of folder ${name} matches` };
    }
    for (const rule of this.#rules) {
      if (rule.patterns.test(path, 'file')?.verdict !== 'matched') continue;
      if (rule.collection === undefined) return { take: false, rule: `${rule.text}: skip` };
      return {
        take: true,
        collection: rule.collection,
        url: documentUrl(url, path),
        rule: `${rule.text}: collection ${rule.collection}`,
      };
    }
    return {
      take: true,
      collection,
      url: documentUrl(url, path),
      rule: `folder ${name} takes it: collection ${collection}`,
    };
  }

  /** As `closed`, for a directory that stands in one known to be entered. */
  closedEntered(directory: string): string | undefined {
    const ignored = this.#ignored(directory, 'directory');
    if (ignored !== undefined) return ignored;
    const skip = this.#leadingSkips.find(
      (r) => r.patterns.test(directory, 'directory')?.verdict === 'matched',
    );
    return skip === undefined ? undefined : `${skip.text}: skip`;
  }

  #ignored(path: string, kind: 'file' | 'directory'): string | undefined {
    const byFile = this.ignoreFiles.test(path, kind);
    if (byFile !== undefined) return byFile === 'taken back' ? undefined : byFile.rule;
    const match = this.#ignore.test(path, kind);
    if (match?.verdict !== 'matched') return undefined;
    return `ignore pattern ${JSON.stringify(match.pattern)} of folder ${this.#folder.name}`;
  }
}

function matchesEverything(pattern: string): boolean {
  return pattern === '*' || pattern === '**';
}
