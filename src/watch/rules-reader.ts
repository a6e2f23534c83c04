import { type FileStat, fileStat, sameStat } from '../lib/file-stat.js';
import type { Seen } from './debouncer.js';
import type { FolderDeps } from './deps.js';
import { IGNORE_FILE } from './ignore-files.js';
import { joinPath, look } from './paths.js';
import { trouble } from './trouble.js';

/** The stat of a file that is not there; its times are no age, so it has to stay away for `settle`. */
const ABSENT: FileStat = {
  size: 0,
  mtimeMs: Number.POSITIVE_INFINITY,
  ctimeMs: Number.POSITIVE_INFINITY,
  ino: 0,
};

/**
 * Keeps the rules of one folder up to date with its `.peersyncignore` files.
 *
 * A new file counts at once. A known one that was changed or removed counts when that has settled: a half-written file
 * would let through what the whole one keeps out, and what a peer was given it keeps.
 */
export class RulesReader {
  readonly #deps: FolderDeps;

  constructor(deps: FolderDeps) {
    this.#deps = deps;
  }

  /** Looks at the file of one directory; after `changed` the directory and all below it are to be looked at. */
  async read(directory: string, seen?: Seen): Promise<'same' | 'changed'> {
    const { root, rules, debouncer } = this.#deps;
    const path = joinPath(directory, IGNORE_FILE);
    const known = rules.ignoreFiles.statOf(directory);
    const found = await look(root.absolute(path));
    const stat = found instanceof Error ? ABSENT : fileStat(found);
    const isSame = known === undefined ? stat === ABSENT : sameStat(known, stat);
    const counts = !isSame && (known === undefined || debouncer.atRest(path, stat, seen));
    if (counts) await rules.ignoreFiles.read(directory);
    this.#report(directory);
    return counts ? 'changed' : 'same';
  }

  /** Whether the rules for a directory are not known, so that nothing in it may be taken or forgotten. */
  isUnknown(directory: string): boolean {
    return this.#deps.rules.ignoreFiles.unreadableFor(directory) !== undefined;
  }

  #report(directory: string): void {
    const { root, rules, problems } = this.#deps;
    const unreadable = rules.ignoreFiles.unreadableFor(directory);
    if (unreadable === undefined) return;
    const file = joinPath(unreadable.directory, IGNORE_FILE);
    problems.report(root.shown(file), trouble.rulesUnreadable(unreadable.reason));
  }
}
