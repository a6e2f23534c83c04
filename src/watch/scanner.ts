import { realpath } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import { directoryOf, joinPath } from '../lib/file.js';
import { inSlices, nextTurn, Pace } from '../lib/slices.js';
import { isWithin } from '../lib/text.js';
import { isMissing } from '../state/entry.js';
import type { ReadMode } from './debouncer.js';
import type { FolderDeps } from './folder-deps.js';
import { WATCH_LATE } from './fs-events.js';
import {
  type DirectoryStat,
  entriesOf,
  isAbsence,
  type Listing,
  type ListOrder,
  listsName,
} from './lister.js';
import { ENTRIES_PER_SLICE, PathLookup, type Step } from './path-lookup.js';
import type { FoundBy, Reconciler } from './reconciler.js';
import { failures } from './rules/failures.js';
import { IGNORE_FILE } from './rules/ignore-files.js';

/** The number of files and directories that were listed. */
interface Met {
  files: number;
  directories: number;
}

/** The codes of the system that say that a limit of watches is reached. */
const WATCH_LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);
/** Number of directories that are listed at once, to keep the threads that list them busy. */
const CONCURRENT_LISTINGS = 8;
/** Number of names that are compared with what state knows, in a slice, if nothing is to be done. */
const KNOWN_PER_SLICE = 200;

/**
 * Looks at what is on disk in one folder and hands it to the reconciler. Full scans and looks that
 * fs events cause share this code, so both come to the same result.
 *
 * A walk goes directory by directory. The scanner opens a watch on the directory, lists it, reads
 * its ignore file, and compares the listing with state. A directory with the digest of the last
 * scan is left out here, in `#visit`: no rule is applied to its files again.
 */
export class Scanner {
  readonly #lookup: PathLookup;
  readonly #comparison: DirectoryComparison;

  constructor(
    private readonly deps: FolderDeps,
    reconciler: Reconciler,
  ) {
    this.#lookup = new PathLookup(deps, reconciler);
    this.#comparison = new DirectoryComparison(deps, reconciler, this.#lookup);
  }

  /** Walks the whole folder. */
  async all(): Promise<Met> {
    const { digests } = this.deps;
    const entered = new Set(['']);
    await this.#readRules('');
    const met = await this.#walk(await this.#enter(''), (path) => Boolean(entered.add(path)));
    // The digests of directories that are gone are of no use.
    for (const path of digests.keys()) if (!entered.has(path)) digests.delete(path);
    return met;
  }

  /**
   * Looks at one path. If it is a directory, everything below it is looked at too.
   *
   * A path that ends in a slash, and the path of an ignore file, mean the directory: it is listed,
   * and so are those below it that have no watch or no digest. If its rules changed, none has a
   * digest.
   */
  async path(path: string, read: ReadMode = 'ifChanged'): Promise<void> {
    const directory = directoryOf(path);
    this.deps.digests.delete(directory);
    if (path.endsWith('/') || basename(path) === IGNORE_FILE) {
      await this.#readRules(directory);
      await this.#walk(await this.#enter(directory), (below) => !this.#isUpToDate(below));
      return;
    }
    const [from] = await this.#enter(directory);
    if (from === undefined) return;
    await this.#walk(await this.#lookup.lookUp([path], from.reached, read));
  }

  #isUpToDate(directory: string): boolean {
    const { digests, events, guard } = this.deps;
    return digests.has(directory) && events?.watches(guard.absolute(directory)) === true;
  }

  /** Returns the step at which a look begins; none if a rule or a link keeps the directory out. */
  async #enter(directory: string): Promise<readonly Step[]> {
    const { folder, guard, rules } = this.deps;
    if (!(await guard.isRootInPlace()) || this.#hasUnknownRules(directory)) return [];
    const rule = rules.closedBy(`${directory}/`);
    if (rule !== undefined) {
      await this.#lookup.exclude(directory, rule);
      return [];
    }
    const path = guard.absolute(directory);
    const real = await realpath(path).catch(() => path);
    if (real === path) return [{ path: directory, reached: 'directly' }];
    if (folder.followSymlinks && isWithin(real, guard.absolute('')))
      return [{ path: directory, reached: 'throughLink' }];
    // A link stands where the directory was, so the files that are known below it are gone. If it
    // stands in the place of the root, the next check of the root decides.
    if (directory !== '') await this.path(directory);
    return [];
  }

  async #walk(steps: readonly Step[], enters = (_path: string) => true): Promise<Met> {
    const met = { files: 0, directories: 0 };
    const stack = [...steps];
    const visits = new Set<Promise<void>>();
    const visit = async (step: Step): Promise<void> => {
      for (const found of await this.#visit(step, met)) if (enters(found.path)) stack.push(found);
    };
    for (;;) {
      while (visits.size < CONCURRENT_LISTINGS && this.deps.guard.mayLook) {
        const step = stack.pop();
        if (step === undefined) break;
        const one = visit(step).finally(() => visits.delete(one));
        visits.add(one);
      }
      if (visits.size === 0) return met;
      await Promise.race(visits);
    }
  }

  /** Lists one directory. @returns the directories in it that are to be listed next */
  async #visit(step: Step, met: Met): Promise<readonly Step[]> {
    const { digests, guard, mounts, root, rules } = this.deps;
    const { path, reached } = step;
    // A directory without a watch is compared whole: it may have been away since the last scan.
    const isNew = await this.#opensWatch(step);
    const known = isNew ? undefined : digests.get(path);
    const listing = await this.#list(step, known);
    if ('code' in listing) return await this.#notListed(path, listing.code);
    // Another directory stands there than before. The check decides whether it is accepted.
    const isKnown = path === '' ? root.isAccepted(listing.stat) : mounts.met(path, listing.stat);
    if (reached === 'directly' && !isKnown) await guard.check();
    if (!guard.mayLook || guard.isUnmounted(`${path}/`)) return [];
    met.directories += 1;
    met.files += listing.files;
    if (listing.digest === known)
      return listing.directories
        .map((name) => ({ path: joinPath(path, name), reached }))
        .filter((below) => rules.closedEntered(below.path) === undefined);
    // A file of rules that appears after the listing causes an event.
    if (listsName(listing, IGNORE_FILE) || rules.ignoreFiles.knows(path))
      await this.#readRules(path);
    if (this.#hasUnknownRules(path)) return [];
    // The comparison deletes the digest again if it finds the directory to be open.
    digests.set(path, listing.digest);
    return await this.#comparison.compare(listing, step, isNew ? 'newDirectory' : 'look');
  }

  async #list(step: Step, known: number | undefined): Promise<Listing | { readonly code: string }> {
    const { guard, list, scanHealth } = this.deps;
    const order: ListOrder = {
      directory: guard.absolute(step.path),
      known,
      follow: step.reached === 'throughLink',
    };
    let listing = await list(order);
    // The listing shows whether the watch is still on the same directory.
    if (!('code' in listing) && (await this.#opensWatch(step, listing.stat)))
      listing = await list(order);
    scanHealth.progress();
    return listing;
  }

  async #notListed(path: string, code: string): Promise<readonly Step[]> {
    if (!isAbsence(code)) this.#lookup.unreadable(path, path, code);
    // If a directory stands there again by now, the next listing of its parent shows it.
    else if (path !== '') await this.#lookup.lookUp([path], 'directly');
    return [];
  }

  /**
   * Opens a watch on a directory that should have one and has none.
   *
   * @param stat the directory that has to be watched; undefined if any at its path will do
   * @returns whether a watch was opened
   */
  async #opensWatch({ path, reached }: Step, stat?: DirectoryStat): Promise<boolean> {
    const { events, guard, openingHealth, problems } = this.deps;
    if (events === undefined || reached === 'throughLink') return false;
    const directory = guard.absolute(path);
    if (events.watches(directory, stat)) return false;
    const open = () => openingHealth.during(() => events.watch(directory));
    let result = await open();
    if (result === WATCH_LATE) {
      problems.report(path, failures.watchLate());
      result = await open();
    }
    // The listing that follows meets any other code, such as EACCES, and reports it.
    if (WATCH_LIMITS.has(result)) problems.report('', failures.watchLimit(result));
    return result === 'watched';
  }

  /** Reads the ignore file of a directory. If the rules changed, everything is compared again. */
  async #readRules(directory: string): Promise<void> {
    const { debouncer, digests, problems, rules } = this.deps;
    const isChanged = await rules.ignoreFiles.read(directory, (file, stat) =>
      debouncer.atRest(file, stat),
    );
    if (!isChanged) return;
    digests.clear();
    problems.resolve(joinPath(directory, IGNORE_FILE));
  }

  /** Whether the rules of a directory are unknown, so nothing in it may be taken or forgotten. */
  #hasUnknownRules(directory: string): boolean {
    const unreadable = this.deps.rules.ignoreFiles.unreadableFor(directory);
    if (unreadable === undefined) return false;
    this.deps.problems.report(unreadable.file, failures.rulesUnreadable(unreadable.reason));
    return true;
  }
}

/** The names of a listing, sorted by how they are decided. */
interface Compared {
  /** All names that exist. */
  readonly listed: ReadonlySet<string>;
  /** The names to look up: they need a fresh lstat, because the listing may be stale. */
  readonly toLookUp: readonly string[];
  /** The directories that are to be listed next. */
  readonly steps: readonly Step[];
}

/**
 * Compares the listing of one directory with what state knows there. Regular files go to the
 * reconciler as they were listed. Everything else is looked up by name: links and the like, names
 * whose record is of another kind, and names that state knows and the listing lacks.
 */
class DirectoryComparison {
  constructor(
    private readonly deps: FolderDeps,
    private readonly reconciler: Reconciler,
    private readonly lookup: PathLookup,
  ) {}

  /** @returns the directories that are to be listed next */
  async compare(listing: Listing, step: Step, foundBy: FoundBy): Promise<readonly Step[]> {
    const { folder, hashQueue, state } = this.deps;
    const { entries } = state;
    const { path: directory } = step;
    const knownDirectories = new Set(entries.knownDirectories(folder.name, directory));
    const compared = await this.#compareListed(listing, step, foundBy, knownDirectories);
    if (compared === undefined) return [];
    const { listed, steps, toLookUp } = compared;
    await hashQueue.room();
    const isUnlistedRecord = (name: string) => {
      if (listed.has(name)) return false;
      const entry = state.get(folder.name, joinPath(directory, name));
      return entry === undefined || !isMissing(entry);
    };
    const unlisted: string[] = [];
    const pace = new Pace(KNOWN_PER_SLICE);
    for (const name of entries.names(folder.name, directory)) {
      if (isUnlistedRecord(name)) unlisted.push(name);
      if (pace.step()) await nextTurn();
    }
    for (const name of knownDirectories) {
      if (!listed.has(name)) unlisted.push(name);
      if (pace.step()) await nextTurn();
    }
    return [
      ...steps,
      ...(await this.#lookUp(step, toLookUp)),
      ...(await this.#lookUp(step, unlisted)),
    ];
  }

  /** @returns undefined if the folder may not be looked at any more */
  async #compareListed(
    listing: Listing,
    { path: directory, reached }: Step,
    foundBy: FoundBy,
    knownDirectories: ReadonlySet<string>,
  ): Promise<Compared | undefined> {
    const { folder, guard, hashQueue, scanHealth, state } = this.deps;
    const listed = this.#reportFailed(listing, directory);
    const toLookUp: string[] = [];
    const steps: Step[] = [];
    const pace = new Pace(ENTRIES_PER_SLICE);
    const donePace = new Pace(KNOWN_PER_SLICE);
    for (const { kind, name, stat } of entriesOf(listing)) {
      const path = joinPath(directory, name);
      listed.add(name);
      // If a directory is known under the name of a file, what is known below it is gone.
      const isPlainFile = kind === 'file' && !knownDirectories.has(name);
      const isDone = isPlainFile && this.reconciler.isDone(path, stat);
      if (isDone) {
        // Nothing is left to do.
      } else if (isPlainFile && !this.reconciler.needsFreshStat(path, stat))
        this.reconciler.file(path, guard.absolute(path), stat, foundBy);
      else if (kind === 'directory' && state.entries.line(folder.name, path) === undefined)
        steps.push(...(await this.lookup.directory(path, reached)));
      else toLookUp.push(name);
      if (!(isDone ? donePace : pace).step()) continue;
      scanHealth.progress();
      await nextTurn();
      await hashQueue.room();
      if (!guard.mayLook) return undefined;
    }
    return { listed, toLookUp, steps };
  }

  /** Reports the names that could not be looked at. @returns those of them that exist */
  #reportFailed(listing: Listing, directory: string): Set<string> {
    const { digests, problems } = this.deps;
    const existing = new Set<string>();
    for (const { name, code } of listing.failed) {
      const path = joinPath(directory, name);
      digests.delete(directory);
      if (!isAbsence(code)) {
        existing.add(name);
        this.lookup.unreadable(path, directory, code);
      } else if (name.includes('\ufffd')) problems.report(path, failures.nameNotUtf8());
    }
    return existing;
  }

  async #lookUp(
    { path: directory, reached }: Step,
    names: readonly string[],
  ): Promise<readonly Step[]> {
    const steps: Step[] = [];
    for await (const slice of inSlices(names, ENTRIES_PER_SLICE)) {
      const paths = slice.map((name) => joinPath(directory, name));
      steps.push(...(await this.lookup.lookUp(paths, reached)));
    }
    return steps;
  }
}
