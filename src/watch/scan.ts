import type { Stats } from 'node:fs';
import type { FolderConfig } from '../config/config.js';
import { systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file-stat.js';
import { Absences, isAbsence } from './absences.js';
import type { Findings, Purpose } from './findings.js';
import type { HashQueue } from './hash-queue.js';
import { directoryIdentity, type Hints } from './hints.js';
import { IGNORE_FILE } from './ignore-files.js';
import { followLink, standingOf } from './links.js';
import { listing, look, namesNotUtf8 } from './listing.js';
import { directoriesAbove, directoryOf, joinPath, nameOf } from './paths.js';
import type { Problems } from './problems.js';
import type { Root } from './root.js';
import type { FolderRules } from './rules.js';
import { RulesReader } from './rules-reader.js';
import type { Seen, Settling } from './settling.js';
import type { Steps } from './steps.js';
import { trouble } from './trouble.js';
import type { WatchState } from './watch-state.js';

export interface ScannerParts {
  readonly folder: FolderConfig;
  readonly root: Root;
  readonly rules: FolderRules;
  readonly state: WatchState;
  readonly findings: Findings;
  readonly settling: Settling;
  readonly problems: Problems;
  readonly hashQueue: HashQueue;
  readonly steps: Steps;
  /** Undefined where changes are found by scans alone. */
  readonly hints: Hints | undefined;
  /** A directory cannot be watched; `code` is the system's. */
  readonly onUnwatched: (directory: string, code: string) => void;
  /** The folder itself could not be listed. */
  readonly onRootUnseen: () => void;
  readonly isStopped: () => boolean;
}

/** What a walk met. */
export interface Met {
  files: number;
  directories: number;
}

/** A directory to be listed. */
interface Step {
  readonly path: string;
  /** It was reached through a link: links to directories in it are not followed again, so a walk always ends. */
  readonly linked: boolean;
  /** When it, or one that it stands in, was last moved, as far as the walk knows; in ms since the epoch. */
  readonly movedAt: number;
}

const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Looks at what is on disk in one folder and hands it to the findings: the one truth behind scans and hints.
 *
 * A walk goes directory by directory: the watch is asked for, the rules of the directory are read, it is listed, and
 * then whatever state knows there and the list does not show is looked up by name. What cannot be listed proves nothing:
 * only "no such file" counts as removed.
 */
export class Scanner {
  readonly #parts: ScannerParts;

  readonly #absences: Absences;
  readonly #rulesReader: RulesReader;

  constructor(parts: ScannerParts) {
    this.#parts = parts;
    this.#absences = new Absences(parts);
    this.#rulesReader = new RulesReader(parts);
  }

  /** Walks a directory and all below it (`''` is the whole folder). */
  async tree(directory: string, purpose: Purpose): Promise<Met> {
    const met: Met = { files: 0, directories: 0 };
    const start = await this.#stepTo(directory);
    if (start !== undefined) await this.#walk(start, purpose, met, () => true);
    return met;
  }

  /** Looks at one directory, and at those in it that are not watched yet with all below them. */
  async directory(directory: string): Promise<void> {
    const { hints } = this.#parts;
    if ((await this.#rulesReader.read(directory)) === 'changed') {
      await this.tree(directory, 'change');
      return;
    }
    const start = await this.#stepTo(directory);
    if (start === undefined) return;
    const isNew = (path: string) => hints === undefined || !hints.watches(this.#parts.root.absolute(path));
    await this.#walk(start, 'change', { files: 0, directories: 0 }, isNew);
  }

  /** Looks at one path. */
  async path(path: string, purpose: Purpose, seen?: Seen): Promise<void> {
    const { folder, root, rules, findings } = this.#parts;
    const above = directoryOf(path);
    if (nameOf(path) === IGNORE_FILE) {
      if ((await this.#rulesReader.read(above, seen)) === 'changed') await this.tree(above, 'change');
      return;
    }
    if (this.#rulesReader.isUnknown(above)) return;
    const closed = above === '' ? undefined : rules.closed(above);
    if (closed !== undefined) {
      findings.excluded(path, closed);
      return;
    }
    const standing = await standingOf(root.real, above);
    const stats = await look(this.#parts.root.absolute(path));
    if (standing === 'outside' || (standing === 'linked' && !folder.followSymlinks))
      await this.#absences.at(path);
    else if (stats instanceof Error) await this.#notSeen(path, stats);
    else await this.#seen(path, stats, purpose, standing === 'linked', seen);
  }

  /** Looks at one path, and at all below it if it is a directory. */
  async #seen(path: string, stats: Stats, purpose: Purpose, linked: boolean, seen?: Seen): Promise<void> {
    const met: Met = { files: 0, directories: 0 };
    const step = await this.#found(path, stats, purpose, { linked, movedAt: NEVER }, met, seen);
    if (step === undefined) await this.#absences.below(path);
    else await this.#walk(step, purpose, met, () => true);
  }

  async #walk(start: Step, purpose: Purpose, met: Met, enters: (path: string) => boolean): Promise<void> {
    const stack = [start];
    for (let step = stack.pop(); step !== undefined && !this.#parts.isStopped(); step = stack.pop()) {
      for (const below of await this.#visit(step, purpose, met)) if (enters(below.path)) stack.push(below);
    }
  }

  /** Lists one directory, and returns those that stand in it. */
  async #visit(step: Step, purpose: Purpose, met: Met): Promise<Iterable<Step>> {
    this.#parts.steps.take();
    const absolute = this.#parts.root.absolute(step.path);
    const stats = await look(absolute);
    if (stats instanceof Error) {
      await this.#notSeen(step.path, stats);
      return [];
    }
    if (!stats.isDirectory() && !step.linked) return [];
    if (!step.linked) await this.#watch(absolute, stats);
    await this.#rulesReader.read(step.path);
    if (this.#rulesReader.isUnknown(step.path)) return [];
    const movedAt = Math.max(step.movedAt, step.path === '' ? NEVER : movedAtOf(stats));
    const names = new Set<string>();
    const below = new Map<string, Step>();
    try {
      for await (const batch of listing(absolute)) {
        for (const found of batch) {
          names.add(found.name);
          const path = joinPath(step.path, found.name);
          if ('error' in found) {
            // Listed a moment ago and gone now; or a name that is not UTF-8, which is reported as that.
            if (!isAbsence(found.error.code)) this.#unreadable(path, step.path, found.error.code);
          } else {
            const from = { linked: step.linked, movedAt };
            const next = await this.#found(path, found.stats, purpose, from, met);
            if (next !== undefined) below.set(found.name, next);
          }
        }
        if (batch.some(({ name }) => name.includes('\ufffd'))) await this.#reportNames(step.path);
        await this.#parts.hashQueue.room();
        if (this.#parts.isStopped()) return [];
      }
    } catch (error) {
      await this.#notSeen(step.path, error);
      return [];
    }
    met.directories += 1;
    await this.#absences.unlisted(step.path, names);
    await this.#absences.unentered(step.path, (name) => below.has(name));
    return below.values();
  }

  /** Hands over what stands at a path; returns a directory that is to be entered. */
  async #found(
    path: string,
    stats: Stats,
    purpose: Purpose,
    { linked, movedAt }: Omit<Step, 'path'>,
    met: Met,
    seen?: Seen,
  ): Promise<Step | undefined> {
    const { folder, root, findings, steps } = this.#parts;
    steps.take();
    let target = { path: '', stats };
    if (stats.isSymbolicLink() && folder.followSymlinks) {
      target = (await followLink(root.real, path)) ?? target;
    }
    if (target.stats.isFile()) {
      met.files += 1;
      findings.regularFile(
        path,
        target.path || this.#parts.root.absolute(path),
        fileStat(target.stats),
        purpose,
        { seen, movedAt },
      );
      return undefined;
    }
    await findings.noFile(path);
    if (!target.stats.isDirectory() || (linked && target.path !== '')) return undefined;
    const closed = this.#parts.rules.closedEntered(path);
    if (closed === undefined) return { path, linked: linked || target.path !== '', movedAt };
    await this.#absences.exclude(path, closed);
    return undefined;
  }

  /** Where a walk starts, unless a rule or a link keeps it from there. */
  async #stepTo(directory: string): Promise<Step | undefined> {
    const { folder, root, rules } = this.#parts;
    if (directory !== '') {
      for (const above of directoriesAbove(directory)) {
        if ((await this.#rulesReader.read(above)) === 'changed') await this.tree(above, 'change');
      }
    }
    if (this.#rulesReader.isUnknown(directory)) return undefined;
    const closed = directory === '' ? undefined : rules.closed(directory);
    if (closed !== undefined) {
      await this.#absences.exclude(directory, closed);
      return undefined;
    }
    const standing = await standingOf(root.real, directory);
    if (standing === 'plain') return { path: directory, linked: false, movedAt: NEVER };
    return standing === 'linked' && folder.followSymlinks
      ? { path: directory, linked: true, movedAt: NEVER }
      : undefined;
  }

  /** A directory could not be seen: it is not there, or nothing is known of it. */
  async #notSeen(path: string, error: unknown): Promise<void> {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (path === '') this.#parts.onRootUnseen();
    if (isAbsence(code)) await this.#absences.at(path);
    else this.#unreadable(path, path, code);
  }

  /** @param directory the one to blame when it is not the length of the path */
  #unreadable(path: string, directory: string, code: string | undefined): void {
    const { problems, root } = this.#parts;
    if (code === 'ENAMETOOLONG') problems.report(root.shown(path), trouble.pathTooLong());
    else problems.report(root.shown(directory), trouble.directoryUnreadable(code ?? 'UNKNOWN'));
  }

  async #watch(absolute: string, stats: Stats): Promise<void> {
    const { hints, onUnwatched } = this.#parts;
    if (hints === undefined) return;
    const result = await hints.watch(absolute, directoryIdentity(stats));
    if (result !== 'watched') onUnwatched(absolute, result.code);
  }

  async #reportNames(directory: string): Promise<void> {
    for (const name of await namesNotUtf8(this.#parts.root.absolute(directory))) {
      this.#parts.problems.report(
        this.#parts.root.shown(joinPath(directory, name.toString())),
        trouble.nameNotUtf8(name),
      );
    }
  }
}

/** When a directory was moved, or let us in: only that changes its ctime alone. */
function movedAtOf({ ctimeMs, mtimeMs }: Stats): number {
  return ctimeMs > mtimeMs ? ctimeMs : NEVER;
}
