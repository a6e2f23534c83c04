import type { Stats } from 'node:fs';
import type { FolderConfig } from '../config/config.js';
import { systemCode } from '../lib/errors.js';
import { type Entry, type FileStat, sameStat } from '../state/entry.js';
import type { Findings, Purpose } from './findings.js';
import { fileStat } from './fingerprint.js';
import { directoryIdentity, type Hints } from './hints.js';
import { IGNORE_FILE } from './ignore-files.js';
import type { Intake } from './intake.js';
import { followLink, standingOf } from './links.js';
import { listing, look, namesNotUtf8 } from './listing.js';
import { directoriesAbove, directoryOf, joinPath, nameOf } from './paths.js';
import type { Problems } from './problems.js';
import type { Root } from './root.js';
import type { FolderRules } from './rules.js';
import type { Seen, Settling } from './settling.js';
import { trouble } from './trouble.js';
import type { WatchState } from './watch-state.js';

/** Removed files are brought into state in slices of so many. */
const SLICE = 1_000;
/** The stat of a file that is not there; its times are no age, so it has to stay away for `settle`. */
const ABSENT: FileStat = {
  size: 0,
  mtimeMs: Number.POSITIVE_INFINITY,
  ctimeMs: Number.POSITIVE_INFINITY,
  ino: 0,
};

export interface ScannerParts {
  readonly folder: FolderConfig;
  readonly root: Root;
  readonly rules: FolderRules;
  readonly state: WatchState;
  readonly findings: Findings;
  readonly settling: Settling;
  readonly problems: Problems;
  readonly intake: Intake;
  /** Undefined where changes are found by scans alone. */
  readonly hints: Hints | undefined;
  /** A directory cannot be watched; `code` is the system's. */
  readonly onUnwatched: (directory: string, code: string) => void;
  readonly isStopped: () => boolean;
}

/** What a walk met. */
export interface Seens {
  files: number;
  directories: number;
}

/** A directory to be listed. */
interface Step {
  readonly path: string;
  /** It was reached through a link: links to directories in it are not followed again, so a walk always ends. */
  readonly linked: boolean;
}

/**
 * Looks at what is on disk in one folder and hands it to the findings: the one truth behind scans and hints.
 *
 * A walk goes directory by directory: the watch is asked for, the rules of the directory are read, it is listed, and
 * then whatever state knows there and the list does not show is looked up by name. What cannot be listed proves nothing:
 * only "no such file" counts as removed.
 */
export class Scanner {
  readonly #parts: ScannerParts;

  constructor(parts: ScannerParts) {
    this.#parts = parts;
  }

  /** Walks a directory and all below it (`''` is the whole folder). */
  async tree(directory: string, purpose: Purpose): Promise<Seens> {
    const counts: Seens = { files: 0, directories: 0 };
    const start = await this.#stepTo(directory);
    if (start !== undefined) await this.#walk(start, purpose, counts, () => true);
    return counts;
  }

  /** Looks at one directory, and at those in it that are not watched yet with all below them. */
  async directory(directory: string): Promise<void> {
    const { hints } = this.#parts;
    if ((await this.#readRules(directory)) === 'changed') {
      await this.tree(directory, 'change');
      return;
    }
    const start = await this.#stepTo(directory);
    if (start === undefined) return;
    const isNew = (path: string) => hints === undefined || !hints.watches(this.#absolute(path));
    await this.#walk(start, 'change', { files: 0, directories: 0 }, isNew);
  }

  /** Looks at one path. */
  async path(path: string, purpose: Purpose, seen?: Seen): Promise<void> {
    const { folder, root, rules, findings } = this.#parts;
    const above = directoryOf(path);
    if (nameOf(path) === IGNORE_FILE) {
      if ((await this.#readRules(above, seen)) === 'changed') await this.tree(above, 'change');
      return;
    }
    if (rules.ignoreFiles.unreadableFor(above) !== undefined) return;
    const closed = above === '' ? undefined : rules.closed(above);
    if (closed !== undefined) {
      findings.excluded(path, closed);
      return;
    }
    const standing = await standingOf(root.real, above);
    const stats = await look(this.#absolute(path));
    if (standing === 'outside' || (standing === 'linked' && !folder.followSymlinks)) await this.#isGone(path);
    else if (stats instanceof Error) await this.#notSeen(path, stats);
    else await this.#seen(path, stats, purpose, standing === 'linked', seen);
  }

  /** Looks at one path, and at all below it if it is a directory. */
  async #seen(path: string, stats: Stats, purpose: Purpose, linked: boolean, seen?: Seen): Promise<void> {
    const counts: Seens = { files: 0, directories: 0 };
    const step = await this.#found(path, stats, purpose, linked, counts, seen);
    if (step === undefined) await this.#nothingBelow(path);
    else await this.#walk(step, purpose, counts, () => true);
  }

  async #walk(
    start: Step,
    purpose: Purpose,
    counts: Seens,
    enters: (path: string) => boolean,
  ): Promise<void> {
    const stack = [start];
    for (let step = stack.pop(); step !== undefined && !this.#parts.isStopped(); step = stack.pop()) {
      for (const below of await this.#visit(step, purpose, counts)) if (enters(below.path)) stack.push(below);
    }
  }

  /** Lists one directory, and returns those that stand in it. */
  async #visit(step: Step, purpose: Purpose, counts: Seens): Promise<Iterable<Step>> {
    const absolute = this.#absolute(step.path);
    const stats = await look(absolute);
    if (stats instanceof Error) {
      await this.#notSeen(step.path, stats);
      return [];
    }
    if (!stats.isDirectory() && !step.linked) return [];
    if (!step.linked) await this.#watch(absolute, stats);
    await this.#readRules(step.path);
    if (this.#parts.rules.ignoreFiles.unreadableFor(step.path) !== undefined) return [];
    const names = new Set<string>();
    const below = new Map<string, Step>();
    try {
      for await (const batch of listing(absolute)) {
        for (const found of batch) {
          names.add(found.name);
          const path = joinPath(step.path, found.name);
          if ('error' in found) this.#noStat(path, step.path, found.error);
          else {
            const next = await this.#found(path, found.stats, purpose, step.linked, counts);
            if (next !== undefined) below.set(found.name, next);
          }
        }
        if (batch.some(({ name }) => name.includes('\ufffd'))) await this.#reportNames(step.path);
        await this.#parts.intake.room();
        if (this.#parts.isStopped()) return [];
      }
    } catch (error) {
      await this.#notSeen(step.path, error);
      return [];
    }
    counts.directories += 1;
    await this.#compareWithState(step.path, names, below);
    return below.values();
  }

  /** Hands over what stands at a path; returns a directory that is to be entered. */
  async #found(
    path: string,
    stats: Stats,
    purpose: Purpose,
    linked: boolean,
    counts: Seens,
    seen?: Seen,
  ): Promise<Step | undefined> {
    const { folder, root, findings } = this.#parts;
    let target = { path: '', stats };
    if (stats.isSymbolicLink() && folder.followSymlinks) {
      target = (await followLink(root.real, path)) ?? target;
    }
    if (target.stats.isFile()) {
      counts.files += 1;
      findings.regularFile(path, target.path || this.#absolute(path), fileStat(target.stats), purpose, seen);
      return undefined;
    }
    await findings.noFile(path);
    if (!target.stats.isDirectory() || (linked && target.path !== '')) return undefined;
    const closed = this.#parts.rules.closedEntered(path);
    if (closed === undefined) return { path, linked: linked || target.path !== '' };
    await this.#excludeBelow(path, closed);
    return undefined;
  }

  /** Where a walk starts, unless a rule or a link keeps it from there. */
  async #stepTo(directory: string): Promise<Step | undefined> {
    const { folder, root, rules } = this.#parts;
    if (directory !== '') {
      for (const above of directoriesAbove(directory)) {
        if ((await this.#readRules(above)) === 'changed') await this.tree(above, 'change');
      }
    }
    if (rules.ignoreFiles.unreadableFor(directory) !== undefined) return undefined;
    const closed = directory === '' ? undefined : rules.closed(directory);
    if (closed !== undefined) {
      await this.#excludeBelow(directory, closed);
      return undefined;
    }
    const standing = await standingOf(root.real, directory);
    if (standing === 'plain') return { path: directory, linked: false };
    return standing === 'linked' && folder.followSymlinks ? { path: directory, linked: true } : undefined;
  }

  /** What state knows directly in a directory, and the list did not show, is looked up by name. */
  async #compareWithState(
    directory: string,
    names: ReadonlySet<string>,
    below: ReadonlyMap<string, Step>,
  ): Promise<void> {
    const { folder, state, findings } = this.#parts;
    let missing: Entry[] = [];
    for (const entry of state.entries.inDirectory(folder.name, directory)) {
      if (entry.status === 'gone' || names.has(nameOf(entry.path))) continue;
      if (await this.#isAbsent(entry.path)) missing.push(entry);
      if (missing.length < SLICE) continue;
      await findings.removed(missing);
      missing = [];
    }
    if (missing.length > 0) await findings.removed(missing);
    for (const name of state.entries.knownDirectories(folder.name, directory)) {
      const path = joinPath(directory, name);
      if (below.has(name) || (names.has(name) && this.#parts.rules.closedEntered(path) !== undefined))
        continue;
      const stats = await look(this.#absolute(path));
      if (stats instanceof Error) await this.#notSeen(path, stats);
      else if (!stats.isDirectory()) await this.#nothingBelow(path);
    }
  }

  async #isAbsent(path: string): Promise<boolean> {
    const stats = await look(this.#absolute(path));
    return stats instanceof Error && isAbsence(stats.code);
  }

  /** A path could not be seen: it is not there, or nothing is known of it. */
  async #notSeen(path: string, error: unknown): Promise<void> {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (isAbsence(code)) await this.#isGone(path);
    else this.#noStat(path, path, error);
  }

  /** @param directory the one to blame when it is not the length of the path */
  #noStat(path: string, directory: string, error: unknown): void {
    const code = systemCode(error);
    if (code === undefined) throw error;
    // Listed a moment ago and gone now; or a name that is not UTF-8, which is reported as that.
    if (isAbsence(code)) return;
    const { problems } = this.#parts;
    if (code === 'ENAMETOOLONG') problems.report(this.#shown(path), trouble.pathTooLong());
    else problems.report(this.#shown(directory), trouble.directoryUnreadable(code));
  }

  async #isGone(path: string): Promise<void> {
    const { findings, rules, hints } = this.#parts;
    await findings.noFile(path);
    await this.#nothingBelow(path);
    hints?.unwatch(this.#absolute(path));
    rules.ignoreFiles.forget(path);
  }

  /** There is no directory at a path, so nothing of what state knows below it is there. */
  async #nothingBelow(path: string): Promise<void> {
    const { folder, state, findings } = this.#parts;
    // Not for the folder itself: that it cannot be seen says nothing of its files.
    if (path === '') return;
    let missing: Entry[] = [];
    for (const entry of state.entries.underDirectory(folder.name, path)) {
      if (entry.status === 'gone') continue;
      missing.push(entry);
      if (missing.length < SLICE) continue;
      await findings.removed(missing);
      missing = [];
    }
    if (missing.length > 0) await findings.removed(missing);
  }

  async #excludeBelow(directory: string, rule: string): Promise<void> {
    const { folder, state, findings, hints } = this.#parts;
    hints?.unwatch(this.#absolute(directory));
    for (const entry of state.entries.underDirectory(folder.name, directory)) {
      findings.excluded(entry.path, rule);
    }
  }

  async #watch(absolute: string, stats: Stats): Promise<void> {
    const { hints, onUnwatched } = this.#parts;
    if (hints === undefined) return;
    const result = await hints.watch(absolute, directoryIdentity(stats));
    if (result !== 'watched') onUnwatched(absolute, result.code);
  }

  /**
   * Reads the rules of a directory: new ones at once, others only when their file was at rest, for a half-written file
   * would let through what the whole one keeps out.
   */
  async #readRules(directory: string, seen?: Seen): Promise<'same' | 'changed'> {
    const { rules, settling, problems } = this.#parts;
    const { ignoreFiles } = rules;
    const path = joinPath(directory, IGNORE_FILE);
    const known = ignoreFiles.statOf(directory);
    const found = await look(this.#absolute(path));
    const stat = found instanceof Error ? ABSENT : fileStat(found);
    const isSame = known === undefined ? stat === ABSENT : sameStat(known, stat);
    const mayRead = !isSame && (known === undefined || settling.atRest(path, stat, seen));
    if (mayRead) await ignoreFiles.read(directory);
    const unreadable = ignoreFiles.unreadableFor(directory);
    if (unreadable !== undefined) {
      const file = joinPath(unreadable.directory, IGNORE_FILE);
      problems.report(this.#shown(file), trouble.rulesUnreadable(unreadable.reason));
    }
    return mayRead ? 'changed' : 'same';
  }

  async #reportNames(directory: string): Promise<void> {
    for (const name of await namesNotUtf8(this.#absolute(directory))) {
      this.#parts.problems.report(
        this.#shown(joinPath(directory, name.toString())),
        trouble.nameNotUtf8(name),
      );
    }
  }

  #absolute(path: string): string {
    return path === '' ? this.#parts.root.real : `${this.#parts.root.real}/${path}`;
  }

  #shown(path: string): string {
    return path === '' ? this.#parts.folder.path : `${this.#parts.folder.path}/${path}`;
  }
}

function isAbsence(code: string | undefined): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR';
}
