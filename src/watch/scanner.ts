import { realpath } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import { messageOf, systemCode } from '../lib/errors.js';
import { directoryOf, joinPath } from '../lib/file.js';
import { inSlices, inTurns, nextTurn } from '../lib/slices.js';
import { isWithin } from '../lib/text.js';
import { type Entry, type Failure, isMissing } from '../state/entry.js';
import { WATCH_LATE } from './fs-events.js';
import {
  type DirectoryStat,
  entriesOf,
  type Found,
  isAbsence,
  type Listing,
  look,
} from './lister.js';
import type { FolderMounts } from './mounts.js';
import type { FolderDeps, Reconciler } from './reconciler.js';
import { failures, IGNORE_FILE } from './rules.js';

/** A directory to be listed. */
interface Step {
  readonly path: string;
  /**
   * It was reached through a link: links to directories in it are not followed again, so a walk
   * always ends.
   */
  readonly linked: boolean;
}

/** How many files and directories were listed. */
interface Met {
  files: number;
  directories: number;
}

/** The system's codes for a limit of watches that is reached. */
const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);
/** So many directories are listed at once, so that the threads that list have something to do. */
const LISTS_AT_ONCE = 8;
/**
 * So many entries of a directory are compared, or records looked up or put into state, without a
 * pause; in one turn of the event loop each of the directories that are compared at once does as
 * much. First sync of 1,000,000 files: 846 blocks of more than 14 ms and 64 ms at most with 100,
 * 276 and 46 ms with 20.
 */
const SLICE = 20;

/**
 * Looks at what is on disk in one folder and hands it to the reconciler: the one truth behind scans
 * and fs events.
 *
 * A walk goes directory by directory: it is watched, it is listed, its rules are read, its files
 * are reconciled as the list shows them, and everything else that stands in it, or that state knows
 * there, is looked up by name. What cannot be looked at proves nothing: only "no such file" counts
 * as removed. A directory whose digest is that of the last scan is left alone.
 */
export class Scanner {
  constructor(
    private readonly deps: FolderDeps,
    private readonly reconciler: Reconciler,
    private readonly mounts: FolderMounts,
  ) {}

  /** Walks the whole folder. */
  async all(): Promise<Met> {
    const { digests } = this.deps;
    const entered = new Set(['']);
    await this.#readRules('');
    const met = await this.#walk(await this.#enter(''), (path) => Boolean(entered.add(path)));
    // Nothing is kept of directories that are no more.
    for (const path of digests.keys()) if (!entered.has(path)) digests.delete(path);
    return met;
  }

  /**
   * Looks at one path, and at all below it if it is a directory. Of a path that ends in a slash, or
   * is a file of rules, the directory is listed, and those below it that are not watched yet or not
   * known as they are; all where the rules are others.
   *
   * @param isAsked whether a file is read though it looks as it did
   */
  async path(path: string, isAsked = false): Promise<void> {
    const { digests, events, absolute } = this.deps;
    const directory = directoryOf(path);
    digests.delete(directory);
    if (path.endsWith('/') || basename(path) === IGNORE_FILE) {
      await this.#readRules(directory);
      // Nothing has a digest where the rules are others, whoever read them.
      const isDone = (below: string) =>
        digests.has(below) && events?.watches(absolute(below)) === true;
      await this.#walk(await this.#enter(directory), (below) => !isDone(below));
      return;
    }
    const [from] = await this.#enter(directory);
    if (from !== undefined) await this.#walk(await this.#lookUp([path], from.linked, isAsked));
  }

  /** Where a look begins, unless a rule or a link keeps it from there. */
  async #enter(directory: string): Promise<readonly Step[]> {
    const { folder, rules, absolute } = this.deps;
    if (this.#isUnknown(directory)) return [];
    const closed = rules.closed(`${directory}/`);
    if (closed !== undefined) {
      await this.#exclude(directory, closed);
      return [];
    }
    const path = absolute(directory);
    const real = await realpath(path).catch(() => path);
    const linked = real !== path;
    if (!linked || (folder.followSymlinks && isWithin(real, absolute(''))))
      return [{ path: directory, linked }];
    // A link stands where the directory was: what is known below it is not there any more. Of the
    // root the next check tells.
    if (directory !== '') await this.path(directory);
    return [];
  }

  async #walk(steps: readonly Step[], enters = (_path: string) => true): Promise<Met> {
    const met = { files: 0, directories: 0 };
    const stack = [...steps];
    while (stack.length > 0 && this.deps.mayLook()) {
      const next = stack.splice(-LISTS_AT_ONCE);
      for (const found of await Promise.all(next.map((step) => this.#visit(step, met))))
        for (const step of found) if (enters(step.path)) stack.push(step);
    }
    return met;
  }

  /** Lists one directory, and returns those that stand in it and are to be entered. */
  async #visit(step: Step, met: Met): Promise<readonly Step[]> {
    const { digests, rules, list, absolute, isCertain, mayLook } = this.deps;
    const { path, linked } = step;
    // A directory that is watched from now on is compared whole: it may have been away since it was
    // scanned.
    const isNew = await this.#beginsToWatch(step);
    const known = isNew ? undefined : digests.get(path);
    const order = { directory: absolute(path), known, follow: linked };
    let listing = await list(order);
    // The list shows whether what is watched is still the same directory.
    if (!('code' in listing) && (await this.#beginsToWatch(step, listing.stat)))
      listing = await list(order);
    this.deps.health.progress();
    if ('code' in listing) {
      if (!isAbsence(listing.code)) this.#unreadable(path, path, listing.code);
      // Should a directory stand there again, the next list of the one above shows it.
      else if (path !== '') await this.#lookUp([path], false);
      return [];
    }
    // It is told by the check whether a file system is away, or is another one.
    if (!linked && !this.mounts.met(path, listing.stat)) await isCertain();
    if (!mayLook() || this.mounts.isUnmounted(`${path}/`)) return [];
    met.directories += 1;
    met.files += listing.files;
    // What was opened while it was listed is compared by the next scan.
    if (listing.digest === known)
      return listing.directories
        .map((name) => ({ path: joinPath(path, name), linked }))
        .filter((below) => rules.closedEntered(below.path) === undefined);
    await this.#readRules(path);
    if (this.#isUnknown(path)) return [];
    // What is found to be open from here on takes it away again.
    digests.set(path, listing.digest);
    return await this.#compare(listing, step, isNew);
  }

  /**
   * Watches a directory if it is to be watched and is not. @returns whether it is watched from now
   * on
   */
  async #beginsToWatch({ path, linked }: Step, stat?: DirectoryStat): Promise<boolean> {
    const { events, absolute, opening } = this.deps;
    if (events === undefined || linked || events.watches(absolute(path), stat)) return false;
    const watch = () => opening.during(() => events.watch(absolute(path)));
    let result = await watch();
    if (result === WATCH_LATE) {
      this.#report(path, failures.watchLate());
      result = await watch();
    }
    // Any other code (EACCES) is met, and reported, by the listing that follows.
    if (LIMITS.has(result)) this.#report('', failures.watchLimit(result));
    return result === 'watched';
  }

  /**
   * @param isNew whether the directory is watched only since a moment ago @returns the directories
   *   that are to be entered
   */
  async #compare(
    listing: Listing,
    { path: directory, linked }: Step,
    isNew: boolean,
  ): Promise<readonly Step[]> {
    const { hashQueue, folder, state, digests, health, mayLook, absolute } = this.deps;
    const { entries } = state;
    const steps: Step[] = [];
    /** All names but those that were not there any more a moment after they were listed. */
    const listed = new Set<string>();
    /** Those that the list alone does not decide. */
    const open: string[] = [];
    const known = new Set(entries.knownDirectories(folder.name, directory));
    for (const { name, code } of listing.failed) {
      const path = joinPath(directory, name);
      digests.delete(directory);
      if (!isAbsence(code)) {
        listed.add(name);
        this.#unreadable(path, directory, code);
        // It is gone, or its name cannot be written.
      } else if (name.includes('\ufffd')) this.#report(path, failures.nameNotUtf8());
    }
    for (const { kind, name, stat } of entriesOf(listing)) {
      const path = joinPath(directory, name);
      listed.add(name);
      // A file in the place of a directory is looked up, for what is known below it is gone.
      if (kind === 'file' && !known.has(name) && !this.reconciler.isDecidedBySize(path, stat))
        this.reconciler.file(path, absolute(path), stat, false, isNew);
      else if (kind === 'directory' && entries.line(folder.name, path) === undefined)
        steps.push(...(await this.#directory(path, linked)));
      else open.push(name);
      if (listed.size % SLICE !== 0) continue;
      health.progress();
      await nextTurn();
      await hashQueue.room();
      if (!mayLook()) return [];
    }
    await hashQueue.room();
    const lookUp = async (names: Iterable<string>, isMeant: (name: string) => boolean) => {
      for await (const slice of inSlices(names, SLICE)) {
        const paths = slice.filter(isMeant).map((name) => joinPath(directory, name));
        steps.push(...(await this.#lookUp(paths, linked)));
      }
    };
    const isLive = (name: string) => {
      const entry = state.get(folder.name, joinPath(directory, name));
      return entry === undefined || !isMissing(entry);
    };
    await lookUp(open, () => true);
    await lookUp(
      entries.names(folder.name, directory),
      (name) => !listed.has(name) && isLive(name),
    );
    await lookUp(known, (name) => !listed.has(name));
    return steps;
  }

  /**
   * Looks at paths, whatever stands there; what is not there any more is gone. @returns the
   * directories that are to be entered
   */
  async #lookUp(
    paths: readonly string[],
    linked: boolean,
    isAsked = false,
  ): Promise<readonly Step[]> {
    const { folder, state, events, rules, digests, health, absolute, problems } = this.deps;
    const steps: Step[] = [];
    const missing: Entry[] = [];
    for (const path of paths) {
      health.progress();
      const before = state.get(folder.name, path);
      const there = await look(absolute(path));
      if ('code' in there && !isAbsence(there.code)) {
        this.#unreadable(path, path, there.code);
        continue;
      }
      const found = 'code' in there ? [] : await this.#found(path, there, linked, isAsked);
      if (found === 'unknown') continue;
      if ('code' in there) {
        digests.delete(path);
        events?.unwatch(absolute(path));
        // Where rules went with it, what stands there next may look as it did and has to be decided
        // anew.
        if (rules.forget(path)) {
          digests.clear();
          problems.resolve(joinPath(folder.path, path));
        }
      }
      if (found !== 'file' && before !== undefined) missing.push(before);
      if (found !== 'file' && found.length > 0) steps.push(...found);
      // Of a directory that a rule keeps out only removed files may be remembered, and it stays
      // where it is.
      else if ('code' in there || there.kind !== 'directory')
        for await (const entries of inSlices(
          state.entries.underDirectory(folder.name, path),
          SLICE,
        ))
          await this.reconciler.removed(entries);
    }
    await this.reconciler.removed(missing);
    return steps;
  }

  /**
   * Hands over a file; returns a directory that is to be entered, and nothing for what is neither;
   * `unknown` proves nothing.
   */
  async #found(
    path: string,
    found: Found,
    linked: boolean,
    isAsked: boolean,
  ): Promise<'file' | 'unknown' | readonly Step[]> {
    const { folder, digests, absolute } = this.deps;
    const isFollowed = found.kind === 'link' && folder.followSymlinks;
    // What it leads to may change without a trace here.
    if (isFollowed) digests.delete(directoryOf(path));
    const target = isFollowed ? await followLink(absolute(''), path) : undefined;
    if (target !== undefined && 'code' in target) {
      this.#report(path, failures.linkUnreadable(target.code));
      return 'unknown';
    }
    const { kind, stat } = target ?? found;
    if (kind === 'file') {
      this.reconciler.file(path, target?.path ?? absolute(path), stat, isAsked);
      return 'file';
    }
    if (kind !== 'directory' || (linked && target !== undefined)) return [];
    return await this.#directory(path, linked || target !== undefined);
  }

  /** A directory, unless a rule keeps it out. */
  async #directory(path: string, linked: boolean): Promise<readonly Step[]> {
    const closed = this.deps.rules.closedEntered(path);
    if (closed === undefined) return [{ path, linked }];
    await this.#exclude(path, closed);
    return [];
  }

  /**
   * Keeps the rules of one directory up to date; where they are others, all below it is to be
   * looked at.
   */
  async #readRules(directory: string): Promise<void> {
    const { folder, rules, debouncer, digests, problems } = this.deps;
    if (!(await rules.readIgnoreFile(directory, (file, stat) => debouncer.atRest(file, stat))))
      return;
    digests.clear();
    problems.resolve(joinPath(folder.path, joinPath(directory, IGNORE_FILE)));
  }

  /**
   * Whether the rules for a directory are not known, so that nothing in it may be taken or
   * forgotten.
   */
  #isUnknown(directory: string): boolean {
    const unreadable = this.deps.rules.unreadableFor(directory);
    if (unreadable !== undefined)
      this.#report(unreadable.file, failures.rulesUnreadable(unreadable.reason));
    return unreadable !== undefined;
  }

  /** @param directory the one to blame when it is not the length of the path */
  #unreadable(path: string, directory: string, code: string): void {
    const { digests } = this.deps;
    digests.delete(path);
    digests.delete(directoryOf(path));
    if (code === 'ENAMETOOLONG') this.#report(path, failures.pathTooLong());
    else this.#report(directory, failures.directoryUnreadable(code));
  }

  /** The path is told as the configuration writes the folder's. */
  #report(path: string, why: Failure): void {
    this.deps.problems.report(joinPath(this.deps.folder.path, path), why);
  }

  /**
   * A rule keeps a directory out: there is nothing to remember of what is below it, its rules
   * included.
   */
  async #exclude(directory: string, rule: string): Promise<void> {
    const { folder, state, events, absolute, problems, rules } = this.deps;
    events?.unwatch(absolute(directory));
    this.mounts.forget(directory);
    if (rules.forget(directory)) problems.resolve(joinPath(folder.path, directory));
    for await (const entry of inTurns(state.entries.underDirectory(folder.name, directory), SLICE))
      this.reconciler.excluded(entry.path, rule);
  }
}

/**
 * Follows a link that stays inside the folder.
 *
 * @param root of the folder, absolute, all links resolved
 * @returns undefined for a link that leads nowhere, out of the folder, or to a directory that the
 *   link stands in; the system's code where that cannot be found out
 */
async function followLink(
  root: string,
  link: string,
): Promise<(Found & { readonly path: string }) | { readonly code: string } | undefined> {
  try {
    const path = await realpath(joinPath(root, link));
    const directory = await realpath(joinPath(root, directoryOf(link)));
    if (!isWithin(path, root)) return undefined;
    const found = await look(path);
    if ('code' in found) return leadsNowhere(found.code) ? undefined : found;
    return found.kind === 'directory' && isWithin(directory, path) ? undefined : { ...found, path };
  } catch (error) {
    const code = systemCode(error) ?? messageOf(error);
    return leadsNowhere(code) ? undefined : { code };
  }
}

function leadsNowhere(code: string): boolean {
  return isAbsence(code) || code === 'ELOOP';
}
