import { joinPath } from '../lib/file.js';
import { inSlices, nextTurn, Pace } from '../lib/slices.js';
import { isMissing } from '../state/entry.js';
import type { FolderDeps } from './folder-deps.js';
import { entriesOf, isAbsence, type Listing } from './lister.js';
import { ENTRIES_PER_SLICE, type PathLookup, type Step } from './path-lookup.js';
import type { FoundBy, Reconciler } from './reconciler.js';
import { failures } from './rules/failures.js';

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
export class DirectoryComparison {
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
    const isUnlisted = (name: string) => !listed.has(name);
    const isUnlistedRecord = (name: string) => {
      if (listed.has(name)) return false;
      const entry = state.get(folder.name, joinPath(directory, name));
      return entry === undefined || !isMissing(entry);
    };
    return [
      ...steps,
      ...(await this.#lookUp(step, toLookUp, () => true)),
      ...(await this.#lookUp(step, entries.names(folder.name, directory), isUnlistedRecord)),
      ...(await this.#lookUp(step, knownDirectories, isUnlisted)),
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
    for (const { kind, name, stat } of entriesOf(listing)) {
      const path = joinPath(directory, name);
      listed.add(name);
      // If a directory is known under the name of a file, what is known below it is gone.
      const isPlainFile = kind === 'file' && !knownDirectories.has(name);
      if (isPlainFile && !this.reconciler.needsFreshStat(path, stat))
        this.reconciler.file(path, guard.absolute(path), stat, foundBy);
      else if (kind === 'directory' && state.entries.line(folder.name, path) === undefined)
        steps.push(...(await this.lookup.directory(path, reached)));
      else toLookUp.push(name);
      if (!pace.step()) continue;
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
    names: Iterable<string>,
    isWanted: (name: string) => boolean,
  ): Promise<readonly Step[]> {
    const steps: Step[] = [];
    for await (const slice of inSlices(names, ENTRIES_PER_SLICE)) {
      const paths = slice.filter(isWanted).map((name) => joinPath(directory, name));
      steps.push(...(await this.lookup.lookUp(paths, reached)));
    }
    return steps;
  }
}
