import { isUtf8 } from 'node:buffer';
import type { Stats } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileStat } from '../lib/file-stat.js';
import type { Entry } from '../state/entry.js';
import type { Purpose, Seen } from './debouncer.js';
import type { FolderDeps } from './deps.js';
import { IGNORE_FILE } from './ignore-files.js';
import { type DirectoryStat, type Found, type Listing, NOT_A_DIRECTORY } from './lister.js';
import {
  directoriesAbove,
  directoryOf,
  followLink,
  isAbsence,
  joinPath,
  look,
  nameOf,
  reachOf,
} from './paths.js';
import { inSlices, type Reconciler } from './reconciler.js';
import { RulesReader } from './rules-reader.js';
import { trouble } from './trouble.js';

export interface ScannerOptions {
  /** A directory cannot be watched; `code` is the system's. */
  readonly onUnwatched: (code: string) => void;
  /** The folder itself could not be listed. */
  readonly onRootUnseen: () => void;
  readonly isStopped: () => boolean;
  /** Called whenever a look at the folder goes on. */
  readonly onStep: () => void;
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
/** So many entries of a directory are compared without a pause. */
const ENTRIES_A_TURN = 100;
/** So many records are looked up, or put into state, without a pause. */
const SLICE = 200;

/**
 * Looks at what is on disk in one folder and hands it to the reconciler: the one truth behind scans and fs events.
 *
 * A walk goes directory by directory: it is watched, it is listed, its rules are read, what stands in it is reconciled, and
 * then whatever state knows there and the list does not show is looked up by name. What cannot be listed proves nothing:
 * only "no such file" counts as removed.
 *
 * A directory whose digest is that of the last scan is left alone, unless something in it was *open* since: changed, not
 * at rest, not readable, waiting for another name.
 */
export class Scanner {
  readonly #parts: FolderDeps & ScannerOptions & { readonly reconciler: Reconciler };
  readonly #rules: RulesReader;
  /** By the path of the directory. */
  readonly #digests = new Map<string, number>();

  constructor(deps: FolderDeps, reconciler: Reconciler, options: ScannerOptions) {
    this.#parts = { ...deps, ...options, reconciler };
    this.#rules = new RulesReader(deps);
  }

  /** The next scan compares this path again, and those around it. */
  reopen(path: string): void {
    this.#digests.delete(directoryOf(path));
  }

  /** The next scan compares everything again. */
  reopenAll(): void {
    this.#digests.clear();
  }

  /** Walks a directory and all below it (`''` is the whole folder). */
  async tree(directory: string, purpose: Purpose): Promise<Met> {
    const start = await this.#stepTo(directory);
    if (start === undefined) return { files: 0, directories: 0 };
    const entered = new Set([directory]);
    const met = await this.#walk(start, purpose, (path) => entered.add(path) !== undefined);
    // Nothing is kept of directories that are no more.
    if (directory === '')
      for (const path of this.#digests.keys()) if (!entered.has(path)) this.#digests.delete(path);
    return met;
  }

  /** Lists one directory, and those in it that are not watched yet with all below them. */
  async directory(directory: string): Promise<void> {
    const { events, root } = this.#parts;
    if ((await this.#readRules(directory)) === 'changed') {
      await this.tree(directory, 'change');
      return;
    }
    const start = await this.#stepTo(directory);
    if (start === undefined) return;
    this.#digests.delete(directory);
    await this.#walk(start, 'change', (path) => events === undefined || !events.watches(root.absolute(path)));
  }

  /** Looks at one path, and at all below it if it is a directory. */
  async path(path: string, purpose: Purpose, seen?: Seen): Promise<void> {
    const { folder, root, rules, reconciler } = this.#parts;
    const above = directoryOf(path);
    this.#digests.delete(above);
    if (nameOf(path) === IGNORE_FILE) {
      if ((await this.#readRules(above, seen)) === 'changed') await this.tree(above, 'change');
      return;
    }
    if (this.#rules.isUnknown(above)) return;
    const closed = above === '' ? undefined : rules.closed(above);
    if (closed !== undefined) {
      reconciler.excluded(path, closed);
      return;
    }
    const reach = await reachOf(root.real, above);
    const stats = await look(root.absolute(path));
    if (reach === 'outside' || (reach === 'linked' && !folder.followSymlinks)) await this.#absent(path);
    else if (stats instanceof Error) await this.#notSeen(path, stats);
    else {
      const found = { kind: kindOf(stats), stat: fileStat(stats) };
      const from = { linked: reach === 'linked', movedAt: NEVER };
      const step = await this.#found(path, found, purpose, from, { files: 0, directories: 0 }, seen);
      if (step === undefined) await this.#noneBelow(path);
      else await this.#walk(step, purpose);
    }
  }

  /** Some directories are listed at once, so that the threads that list have something to do. */
  async #walk(start: Step, purpose: Purpose, enters: (path: string) => boolean = () => true): Promise<Met> {
    const { policy, isStopped } = this.#parts;
    const met = { files: 0, directories: 0 };
    const stack = [start];
    const underWay = new Set<Promise<void>>();
    let failure: { readonly error: unknown } | undefined;
    const visit = async (step: Step): Promise<void> => {
      for (const below of await this.#visit(step, purpose, met)) if (enters(below.path)) stack.push(below);
    };
    while (failure === undefined && (stack.length > 0 || underWay.size > 0)) {
      while (underWay.size < policy.listsAtOnce && !isStopped()) {
        const step = stack.pop();
        if (step === undefined) break;
        const visiting: Promise<void> = visit(step)
          .catch((error: unknown) => {
            failure ??= { error };
          })
          .finally(() => underWay.delete(visiting));
        underWay.add(visiting);
      }
      if (underWay.size === 0) break;
      await Promise.race(underWay);
    }
    await Promise.all(underWay);
    if (failure !== undefined) throw failure.error;
    return met;
  }

  /** Lists one directory, and returns those that stand in it and are to be entered. */
  async #visit(step: Step, purpose: Purpose, met: Met): Promise<readonly Step[]> {
    const { folder, isStopped } = this.#parts;
    this.#parts.onStep();
    const { path, linked } = step;
    const known = this.#digests.get(path);
    let listing = await this.#list(step, known);
    const isUnchanged = () => known !== undefined && this.#digests.get(path) === known;
    if (listing?.digest === known && !isUnchanged()) listing = await this.#list(step, undefined);
    if (listing === undefined || isStopped()) return [];
    met.directories += 1;
    const from = { linked, movedAt: path === '' ? NEVER : Math.max(step.movedAt, movedAtOf(listing.stat)) };
    if (listing.digest === known && isUnchanged()) {
      met.files += listing.files;
      return this.#unchanged(path, listing, from);
    }
    await this.#readRules(path);
    if (this.#rules.isUnknown(path)) return [];
    // What is found to be open from here on takes it away again.
    const isWhole = listing.failed.length === 0 && !linked && !(listing.hasLinks && folder.followSymlinks);
    if (isWhole) this.#digests.set(path, listing.digest);
    else this.#digests.delete(path);
    return await this.#compare(path, listing, purpose, from, met);
  }

  /** Watches a directory and lists it; what cannot be listed is dealt with. */
  async #list({ path, linked }: Step, known: number | undefined): Promise<Listing | undefined> {
    const { events, lister, root } = this.#parts;
    const absolute = root.absolute(path);
    // One that is watched already is listed at once, and the list shows whether it is still the same.
    if (events !== undefined && !linked && !events.watches(absolute)) {
      const stats = await look(absolute);
      if (stats instanceof Error) {
        await this.#notSeen(path, stats);
        return undefined;
      }
      if (stats.isDirectory()) await this.#watch(absolute, stats);
    }
    for (;;) {
      const listing = await lister.list(absolute, known, linked || path === '');
      if ('code' in listing) {
        // Something else took its place, which an fs event or the next scan finds.
        if (listing.code !== NOT_A_DIRECTORY) await this.#notSeen(path, listing);
        return undefined;
      }
      if (events === undefined || linked || events.watches(absolute, listing.stat)) return listing;
      if (!events.watches(absolute) || !(await this.#watch(absolute, listing.stat))) return listing;
    }
  }

  async #watch(absolute: string, stat: DirectoryStat): Promise<boolean> {
    const { events, onUnwatched } = this.#parts;
    const result = await events?.watch(absolute, stat);
    if (result === 'watched') return true;
    if (result !== undefined) onUnwatched(result.code);
    return false;
  }

  /** The directories to be entered in one that is as it was. */
  #unchanged(path: string, { directories }: Listing, from: Omit<Step, 'path'>): readonly Step[] {
    const { rules } = this.#parts;
    return directories
      .map((name) => joinPath(path, name))
      .filter((below) => rules.closedEntered(below) === undefined)
      .map((below) => ({ ...from, path: below }));
  }

  async #compare(
    directory: string,
    listing: Listing,
    purpose: Purpose,
    from: Omit<Step, 'path'>,
    met: Met,
  ): Promise<readonly Step[]> {
    const { hashQueue, root, reconciler, isStopped } = this.#parts;
    const names = new Set<string>();
    const below = new Map<string, Step>();
    let namesNotUtf8 = false;
    for (const { name, code } of listing.failed) {
      names.add(name);
      namesNotUtf8 ||= name.includes('\ufffd');
      // Listed a moment ago and gone now; or a name that is not UTF-8, which is reported as that.
      if (!isAbsence(code)) this.#unreadable(joinPath(directory, name), directory, code);
    }
    for await (const batch of listing.entries ?? []) {
      for (const found of batch) {
        if (names.size % ENTRIES_A_TURN === ENTRIES_A_TURN - 1) await nextTurn();
        names.add(found.name);
        namesNotUtf8 ||= found.name.includes('\ufffd');
        const path = joinPath(directory, found.name);
        if (found.kind === 'file') {
          this.#parts.onStep();
          met.files += 1;
          reconciler.file(path, root.absolute(path), found.stat, purpose, { movedAt: from.movedAt });
          continue;
        }
        const step = await this.#found(path, found, purpose, from, met);
        if (step !== undefined) below.set(found.name, step);
      }
      await hashQueue.room();
      if (isStopped()) return [];
    }
    if (namesNotUtf8) await this.#reportNames(directory);
    await this.#unlisted(directory, names);
    await this.#unentered(directory, (name) => below.has(name));
    return [...below.values()];
  }

  /** Hands over what stands at a path; returns a directory that is to be entered. */
  async #found(
    path: string,
    { kind, stat }: Pick<Found, 'kind' | 'stat'>,
    purpose: Purpose,
    { linked, movedAt }: Omit<Step, 'path'>,
    met: Met,
    seen?: Seen,
  ): Promise<Step | undefined> {
    const { folder, root, reconciler, rules } = this.#parts;
    this.#parts.onStep();
    let target = { kind, stat, path: '' };
    if (kind === 'link' && folder.followSymlinks) {
      const followed = await followLink(root.real, path);
      if (followed !== undefined)
        target = { kind: kindOf(followed.stats), stat: fileStat(followed.stats), path: followed.path };
    }
    if (target.kind === 'file') {
      met.files += 1;
      const file = target.path === '' ? root.absolute(path) : target.path;
      reconciler.file(path, file, target.stat, purpose, { seen, movedAt });
      return undefined;
    }
    await reconciler.noFile(path);
    if (target.kind !== 'directory' || (linked && target.path !== '')) return undefined;
    const closed = rules.closedEntered(path);
    if (closed === undefined) return { path, linked: linked || target.path !== '', movedAt };
    await this.#exclude(path, closed);
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
    if (this.#rules.isUnknown(directory)) return undefined;
    const closed = directory === '' ? undefined : rules.closed(directory);
    if (closed !== undefined) {
      await this.#exclude(directory, closed);
      return undefined;
    }
    const reach = await reachOf(root.real, directory);
    if (reach === 'outside' || (reach === 'linked' && !folder.followSymlinks)) return undefined;
    return { path: directory, linked: reach === 'linked', movedAt: NEVER };
  }

  /** Other rules may take, or keep out, anything below. */
  async #readRules(directory: string, seen?: Seen): Promise<'same' | 'changed'> {
    const read = await this.#rules.read(directory, seen);
    if (read === 'changed') this.reopenAll();
    return read;
  }

  /** A directory could not be seen: it is not there, or nothing is known of it. */
  async #notSeen(path: string, { code = 'UNKNOWN' }: { readonly code?: string | undefined }): Promise<void> {
    this.#digests.delete(path);
    if (path === '') this.#parts.onRootUnseen();
    if (isAbsence(code)) await this.#absent(path);
    else this.#unreadable(path, path, code);
  }

  /** @param directory the one to blame when it is not the length of the path */
  #unreadable(path: string, directory: string, code: string): void {
    const { problems, root } = this.#parts;
    this.reopen(path);
    if (code === 'ENAMETOOLONG') problems.report(root.shown(path), trouble.pathTooLong());
    else problems.report(root.shown(directory), trouble.directoryUnreadable(code));
  }

  /** Names that are not valid UTF-8, as they are on disk. */
  async #reportNames(directory: string): Promise<void> {
    const { problems, root } = this.#parts;
    for (const name of await readdir(root.absolute(directory), { encoding: 'buffer' })) {
      if (isUtf8(name)) continue;
      this.#digests.delete(directory);
      problems.report(root.shown(joinPath(directory, name.toString())), trouble.nameNotUtf8(name));
    }
  }

  /** There is nothing at a path; whatever state knows there or below is gone. */
  async #absent(path: string): Promise<void> {
    const { reconciler, rules, events, root } = this.#parts;
    events?.unwatch(root.absolute(path));
    rules.ignoreFiles.forget(path);
    await reconciler.noFile(path);
    await this.#noneBelow(path);
  }

  /** There is no directory at a path, so nothing of what state knows below it is there. */
  async #noneBelow(path: string): Promise<void> {
    const { folder, state, reconciler } = this.#parts;
    // That the folder itself cannot be seen says nothing of its files.
    if (path === '') return;
    await inSlices(state.entries.underDirectory(folder.name, path), SLICE, async (entries) => {
      this.#parts.onStep();
      const live = entries.filter(isLive);
      if (live.length > 0) await reconciler.removed(live);
    });
  }

  /** What state knows directly in a directory, and a list of it did not show, is looked up by name. */
  async #unlisted(directory: string, listed: ReadonlySet<string>): Promise<void> {
    const { folder, state, reconciler, root } = this.#parts;
    await inSlices(state.entries.inDirectory(folder.name, directory), SLICE, async (entries) => {
      const missing: Entry[] = [];
      for (const entry of entries) {
        if (!isLive(entry) || listed.has(nameOf(entry.path))) continue;
        this.#parts.onStep();
        const stats = await look(root.absolute(entry.path));
        if (stats instanceof Error && isAbsence(stats.code)) missing.push(entry);
        else this.reopen(entry.path);
      }
      if (missing.length > 0) await reconciler.removed(missing);
    });
  }

  /** What state knows below the directories in a directory, where none was entered. */
  async #unentered(directory: string, entered: (name: string) => boolean): Promise<void> {
    const { folder, state, rules, root } = this.#parts;
    for (const name of state.entries.knownDirectories(folder.name, directory)) {
      if (entered(name)) continue;
      this.#parts.onStep();
      const path = joinPath(directory, name);
      const stats = await look(root.absolute(path));
      if (stats instanceof Error) {
        if (isAbsence(stats.code)) await this.#absent(path);
      } else if (!stats.isDirectory()) {
        await this.#noneBelow(path);
      } else {
        const closed = rules.closedEntered(path);
        if (closed !== undefined) await this.#exclude(path, closed);
      }
    }
  }

  /** A rule keeps a directory out: there is nothing to remember of what is below it. */
  async #exclude(directory: string, rule: string): Promise<void> {
    const { folder, state, reconciler, events, root } = this.#parts;
    events?.unwatch(root.absolute(directory));
    await inSlices(state.entries.underDirectory(folder.name, directory), SLICE, (entries) => {
      this.#parts.onStep();
      for (const entry of entries) if (isLive(entry)) reconciler.excluded(entry.path, rule);
    });
  }
}

function isLive(entry: Entry): boolean {
  return entry.status !== 'gone';
}

function kindOf(stats: Stats): Found['kind'] {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  return stats.isSymbolicLink() ? 'link' : 'other';
}

/** When a directory was moved, or let us in: only that changes its ctime alone. */
function movedAtOf({ ctimeMs, mtimeMs }: DirectoryStat): number {
  return ctimeMs > mtimeMs ? ctimeMs : NEVER;
}
