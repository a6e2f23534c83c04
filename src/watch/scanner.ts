import { isUtf8 } from 'node:buffer';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileStat, sameStat } from '../lib/file.js';
import { isWithin } from '../lib/text.js';
import type { Entry } from '../state/entry.js';
import type { Purpose, Seen } from './debouncer.js';
import {
  type DirectoryStat,
  directoryOf,
  type Found,
  isAbsence,
  joinPath,
  kindOf,
  type Listing,
  look,
} from './lister.js';
import type { FolderDeps, Reason, Reconciler } from './reconciler.js';
import { IGNORE_FILE, trouble } from './rules.js';

/** A directory to be listed. */
interface Step {
  readonly path: string;
  /** It was reached through a link: links to directories in it are not followed again, so a walk always ends. */
  readonly linked: boolean;
  /** When it, or one that it stands in, was last moved, as far as the walk knows; in ms since the epoch. */
  readonly movedAt: number;
}

/** Why a walk walks, and what it met so far. */
interface Walk extends Reason {
  files: number;
  directories: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
/** So many directories are listed at once, so that the threads that list have something to do. */
const LISTS_AT_ONCE = 8;
/** So many entries of a directory are compared, or records looked up or put into state, without a pause. */
const SLICE = 100;
/** The stat of a file that is not there; its times are no age, so it has to stay away for `settle`. */
const ABSENT = { size: 0, mtimeMs: Number.POSITIVE_INFINITY, ctimeMs: Number.POSITIVE_INFINITY, ino: 0 };

/**
 * Looks at what is on disk in one folder and hands it to the reconciler: the one truth behind scans and fs events.
 *
 * A walk goes directory by directory: it is watched, it is listed, its rules are read, what stands in it is reconciled, and
 * then whatever state knows there and the list does not show is looked up by name. What cannot be listed proves nothing:
 * only "no such file" counts as removed. A directory whose digest is that of the last scan is left alone.
 */
export class Scanner {
  /** @param onUnwatched a directory cannot be watched; the code is the system's */
  constructor(
    private readonly deps: FolderDeps,
    private readonly reconciler: Reconciler,
    private readonly onUnwatched: (code: string) => void,
  ) {}

  /** Walks the whole folder. */
  async all(): Promise<Walk> {
    const { digests } = this.deps;
    const entered = new Set(['']);
    await this.#readRules('');
    const walk = await this.#tree('', 'rescan', (path) => Boolean(entered.add(path)));
    // Nothing is kept of directories that are no more.
    for (const path of digests.keys()) if (!entered.has(path)) digests.delete(path);
    return walk;
  }

  /** Lists one directory, and those in it that are not watched yet with all below them. */
  async directory(directory: string): Promise<void> {
    const { events, digests, absolute } = this.deps;
    digests.delete(directory);
    const isRuledAnew = await this.#readRules(directory);
    const isNew = (path: string) => events?.watches(absolute(path)) !== true;
    await this.#tree(directory, 'change', (path) => isRuledAnew || isNew(path));
  }

  /** Looks at one path, and at all below it if it is a directory. */
  async path(path: string, purpose: Purpose, seen?: Seen): Promise<void> {
    const above = directoryOf(path);
    this.deps.digests.delete(above);
    if (basename(path) === IGNORE_FILE) {
      if (await this.#readRules(above, seen)) await this.#tree(above, 'change');
      return;
    }
    const from = await this.#enter(above);
    if (from === undefined) return;
    const walk = { purpose, seen, files: 0, directories: 0 };
    await this.#walk(await this.#at(path, walk, from), walk, () => true);
  }

  async #tree(directory: string, purpose: Purpose, enters = (_path: string) => true): Promise<Walk> {
    const walk = { purpose, files: 0, directories: 0 };
    await this.#walk(await this.#enter(directory), walk, enters);
    return walk;
  }

  async #walk(start: Step | undefined, walk: Walk, enters: (path: string) => boolean): Promise<void> {
    const stack = start === undefined ? [] : [start];
    while (stack.length > 0 && this.deps.mayLook()) {
      const steps = stack.splice(-LISTS_AT_ONCE);
      for (const found of await Promise.all(steps.map((step) => this.#visit(step, walk))))
        for (const step of found) if (enters(step.path)) stack.push(step);
    }
  }

  /** Lists one directory, and returns those that stand in it and are to be entered. */
  async #visit(step: Step, walk: Walk): Promise<readonly Step[]> {
    const { digests, rules, mayLook } = this.deps;
    const { path } = step;
    this.deps.health.progress();
    // A directory that is watched from now on is compared whole: it may have been away since it was scanned.
    const known = (await this.#beginsToWatch(step)) ? undefined : digests.get(path);
    const listing = await this.#list(step, known);
    if (listing === undefined || !mayLook()) return [];
    walk.directories += 1;
    const { ctimeMs, mtimeMs } = listing.stat;
    // Only that it was moved, or let us in, changes the ctime of a directory alone.
    const isMoved = path !== '' && ctimeMs > mtimeMs;
    const from = { ...step, movedAt: isMoved ? Math.max(step.movedAt, ctimeMs) : step.movedAt };
    // What was opened while it was listed is compared by the next scan.
    if (listing.digest === known) {
      walk.files += listing.files;
      return listing.directories
        .map((name) => ({ ...from, path: joinPath(path, name) }))
        .filter((below) => rules.closedEntered(below.path) === undefined);
    }
    await this.#readRules(path);
    if (this.#isUnknown(path)) return [];
    // What is found to be open from here on takes it away again.
    digests.set(path, listing.digest);
    return await this.#compare(path, listing, walk, from);
  }

  /** Watches a directory if it is to be watched and is not. @returns whether it is watched from now on */
  async #beginsToWatch({ path, linked }: Step, stat?: DirectoryStat): Promise<boolean> {
    const { events, absolute } = this.deps;
    if (events === undefined || linked || events.watches(absolute(path), stat)) return false;
    const result = await events.watch(absolute(path));
    if (result === 'watched') return true;
    this.onUnwatched(result.code);
    return false;
  }

  /** Lists a directory; what cannot be listed is dealt with. */
  async #list(step: Step, known: number | undefined): Promise<Listing | undefined> {
    const { list, absolute } = this.deps;
    const { path, linked } = step;
    const order = { directory: absolute(path), known, follow: linked || path === '' };
    let listing = await list(order);
    // The list shows whether what is watched is still the same directory.
    if (!('code' in listing) && (await this.#beginsToWatch(step, listing.stat))) listing = await list(order);
    if (!('code' in listing)) return listing;
    await this.#notSeen(path, listing.code);
    return undefined;
  }

  async #compare(directory: string, listing: Listing, walk: Walk, from: Step): Promise<readonly Step[]> {
    const { hashQueue, folder, state, mayLook, absolute } = this.deps;
    const names = new Set<string>();
    const settled = new Set<string>();
    const below: Step[] = [];
    let isUtf8Only = !listing.failed.some(({ name }) => name.includes('\ufffd'));
    for (const { name, code } of listing.failed) {
      names.add(name);
      settled.add(name);
      this.deps.digests.delete(directory);
      // Listed a moment ago and gone now; or a name that is not UTF-8, which is reported as that.
      if (!isAbsence(code)) this.#unreadable(joinPath(directory, name), directory, code);
    }
    for (const found of listing.entries) {
      names.add(found.name);
      isUtf8Only &&= !found.name.includes('\ufffd');
      const path = joinPath(directory, found.name);
      if (found.kind === 'file') {
        walk.files += 1;
        this.reconciler.file(path, absolute(path), found.stat, walk, from.movedAt);
      } else {
        const step = await this.#found(path, found, walk, from);
        if (step !== undefined) {
          below.push(step);
          settled.add(found.name);
        }
      }
      if (names.size % SLICE !== 0) continue;
      this.deps.health.progress();
      await nextTurn();
      await hashQueue.room();
      if (!mayLook()) return [];
    }
    await hashQueue.room();
    if (!isUtf8Only) await this.#reportNames(directory);
    await inSlices(state.entries.linesIn(folder.name, directory).keys(), async (slice) => {
      const unlisted = slice.filter((name) => !names.has(name)).map((name) => joinPath(directory, name));
      if (unlisted.length > 0) await this.#unlisted(unlisted);
    });
    // What state knows below other directories.
    for (const name of [...state.entries.knownDirectories(folder.name, directory)]) {
      if (settled.has(name)) continue;
      const step = await this.#at(joinPath(directory, name), walk, from);
      if (step !== undefined) below.push(step);
    }
    return below;
  }

  /** Looks at a path, whatever stands there; returns a directory that is to be entered. */
  async #at(path: string, walk: Walk, from: Step): Promise<Step | undefined> {
    this.deps.health.progress();
    const stats = await look(this.deps.absolute(path));
    if (stats instanceof Error) {
      await this.#notSeen(path, stats.code ?? 'UNKNOWN');
      return undefined;
    }
    const step = await this.#found(path, { kind: kindOf(stats), stat: fileStat(stats) }, walk, from);
    // Of a directory that a rule keeps out only removed files may be remembered, and it stays where it is.
    if (step === undefined && !stats.isDirectory()) await this.#noneBelow(path);
    return step;
  }

  /** Hands over what stands at a path; returns a directory that is to be entered. */
  async #found(path: string, found: Omit<Found, 'name'>, walk: Walk, from: Step): Promise<Step | undefined> {
    const { folder, rules, digests, absolute } = this.deps;
    const { linked, movedAt } = from;
    const isFollowed = found.kind === 'link' && folder.followSymlinks;
    // What it leads to may change without a trace here.
    if (isFollowed) digests.delete(directoryOf(path));
    const target = isFollowed ? await followLink(absolute(''), path) : undefined;
    const { kind, stat } = target ?? found;
    if (kind === 'file') {
      walk.files += 1;
      this.reconciler.file(path, target?.path ?? absolute(path), stat, walk, movedAt);
      return undefined;
    }
    await this.#noFile(path);
    if (kind !== 'directory' || (linked && target !== undefined)) return undefined;
    const closed = rules.closedEntered(path);
    if (closed === undefined) return { path, linked: linked || target !== undefined, movedAt };
    await this.#exclude(path, closed);
    return undefined;
  }

  /** Where a look begins, unless a rule or a link keeps it from there. */
  async #enter(directory: string): Promise<Step | undefined> {
    const { folder, rules, absolute } = this.deps;
    if (this.#isUnknown(directory)) return undefined;
    const closed = directory === '' ? undefined : rules.closed(directory);
    if (closed !== undefined) {
      await this.#exclude(directory, closed);
      return undefined;
    }
    const reach = await reachOf(absolute(''), directory);
    if (reach === 'plain' || (reach === 'linked' && folder.followSymlinks))
      return { path: directory, linked: reach === 'linked', movedAt: NEVER };
    await this.#absent(directory);
    return undefined;
  }

  /**
   * Keeps the rules up to date with the `.peersyncignore` file of one directory. A new file counts at once. A known one that
   * was changed or removed counts when that has settled: a half-written file would let through what the whole one keeps
   * out, and what a peer was given it keeps.
   *
   * @returns whether they are others now: then the directory and all below it are to be looked at
   */
  async #readRules(directory: string, seen?: Seen): Promise<boolean> {
    const { rules, debouncer, digests, absolute } = this.deps;
    const file = joinPath(directory, IGNORE_FILE);
    const known = rules.ignoreFile(directory);
    const found = await look(absolute(file));
    const now = found instanceof Error ? ABSENT : fileStat(found);
    const isSame =
      known === undefined ? now === ABSENT : known.stat !== undefined && sameStat(known.stat, now);
    if (isSame || (known !== undefined && !debouncer.atRest(file, now, seen))) return false;
    await rules.readIgnoreFile(directory);
    digests.clear();
    return true;
  }

  /** Whether the rules for a directory are not known, so that nothing in it may be taken or forgotten. */
  #isUnknown(directory: string): boolean {
    const { rules, problems, shown } = this.deps;
    const unreadable = rules.unreadableFor(directory);
    if (unreadable === undefined) return false;
    problems.report(shown(unreadable.file), trouble.rulesUnreadable(unreadable.reason));
    return true;
  }

  /** A path could not be looked at: nothing is there, or nothing is known of it. */
  async #notSeen(path: string, code: string): Promise<void> {
    if (isAbsence(code)) await this.#absent(path);
    else this.#unreadable(path, path, code);
  }

  /** @param directory the one to blame when it is not the length of the path */
  #unreadable(path: string, directory: string, code: string): void {
    const { problems, digests, shown } = this.deps;
    digests.delete(path);
    digests.delete(directoryOf(path));
    if (code === 'ENAMETOOLONG') problems.report(shown(path), trouble.pathTooLong());
    else problems.report(shown(directory), trouble.directoryUnreadable(code));
  }

  /** Names that are not valid UTF-8, as they are on disk. */
  async #reportNames(directory: string): Promise<void> {
    const { problems, digests, absolute, shown } = this.deps;
    for (const name of await readdir(absolute(directory), { encoding: 'buffer' })) {
      if (isUtf8(name)) continue;
      digests.delete(directory);
      problems.report(shown(joinPath(directory, name.toString())), trouble.nameNotUtf8(name));
    }
  }

  /** There is nothing at a path; whatever state knows there or below is gone. */
  async #absent(path: string): Promise<void> {
    const { rules, events, digests, absolute } = this.deps;
    digests.delete(path);
    // That the folder itself cannot be seen says nothing of its files.
    if (path === '') return;
    events?.unwatch(absolute(path));
    rules.forget(path);
    await this.#noFile(path);
    await this.#noneBelow(path);
  }

  /** No file was seen at a path. A list takes its time: one may have come since, and be known. */
  async #noFile(path: string): Promise<void> {
    const { folder, state, debouncer, absolute } = this.deps;
    const known = state.get(folder.name, path);
    if (known === undefined || known.status === 'gone') return;
    const now = await look(absolute(path));
    if (!(now instanceof Error) && now.isFile()) debouncer.look(path, 'change');
    else await this.reconciler.removed([known]);
  }

  /** No directory was seen at a path, so nothing of what state knows below it is there; unless one came since. */
  async #noneBelow(path: string): Promise<void> {
    const { folder, state, debouncer, absolute } = this.deps;
    const [known] = state.entries.underDirectory(folder.name, path);
    if (known === undefined) return;
    const now = await look(absolute(path));
    if (!(now instanceof Error) && now.isDirectory()) {
      debouncer.look(path, 'change');
      return;
    }
    await this.#below(path, (entries) => this.reconciler.removed(entries));
  }

  /** What state knows in a directory, and a list of it did not show, is looked up by name. */
  async #unlisted(paths: readonly string[]): Promise<void> {
    const { folder, state, digests, absolute } = this.deps;
    const missing: Entry[] = [];
    for (const path of paths) {
      this.deps.health.progress();
      const entry = state.get(folder.name, path);
      if (entry === undefined || entry.status === 'gone') continue;
      const stats = await look(absolute(path));
      if (stats instanceof Error && isAbsence(stats.code)) missing.push(entry);
      else digests.delete(directoryOf(path));
    }
    await this.reconciler.removed(missing);
  }

  /** A rule keeps a directory out: there is nothing to remember of what is below it. */
  async #exclude(directory: string, rule: string): Promise<void> {
    const { events, absolute } = this.deps;
    events?.unwatch(absolute(directory));
    await this.#below(directory, async (entries) => {
      for (const { path } of entries) this.reconciler.excluded(path, rule);
    });
  }

  async #below(directory: string, work: (known: readonly Entry[]) => Promise<void>): Promise<void> {
    const { folder, state, health } = this.deps;
    await inSlices(state.entries.underDirectory(folder.name, directory), async (entries) => {
      health.progress();
      await work(entries);
    });
  }
}

/** Does `work` for all items, some at a time, with room for other work in between. */
async function inSlices<T>(items: Iterable<T>, work: (slice: readonly T[]) => Promise<void>): Promise<void> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < SLICE) continue;
    await work(slice);
    slice = [];
    await nextTurn();
  }
  if (slice.length > 0) await work(slice);
}

/**
 * Follows a link that stays inside the folder.
 *
 * @param root of the folder, absolute, all links resolved
 * @returns undefined for a link that leads nowhere, out of the folder, or to a directory that the link stands in
 */
async function followLink(
  root: string,
  link: string,
): Promise<(Omit<Found, 'name'> & { readonly path: string }) | undefined> {
  try {
    const path = await realpath(joinPath(root, link));
    if (!isWithin(path, root)) return undefined;
    const stats = await stat(path);
    const directory = await realpath(joinPath(root, directoryOf(link)));
    if (stats.isDirectory() && isWithin(directory, path)) return undefined;
    return { path, kind: kindOf(stats), stat: fileStat(stats) };
  } catch {
    return undefined;
  }
}

/** How a directory of a folder is reached, by links or not; one that is not there is `plain`. */
async function reachOf(root: string, directory: string): Promise<'plain' | 'linked' | 'outside'> {
  if (directory === '') return 'plain';
  const path = joinPath(root, directory);
  const real = await realpath(path).catch(() => path);
  if (real === path) return 'plain';
  return isWithin(real, root) ? 'linked' : 'outside';
}
