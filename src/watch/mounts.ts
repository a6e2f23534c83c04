import type { FolderConfig } from '../config/config.js';
import { joinPath } from '../lib/file.js';
import { escapeInvisible, isWithin } from '../lib/text.js';
import type { StateView } from '../state/state.js';
import { type DirectoryStat, look } from './lister.js';
import type { WatchDeps } from './reconciler.js';
import { hasKnownFiles, isEmptyDirectory, isLive, rootDevice } from './root.js';
import { failures } from './rules/failures.js';
import type { PathProblem } from './rules/problems.js';

/**
 * A directory that another file system is mounted on. A type and not an interface, for it is kept
 * as JSON.
 */
type Mount = { readonly path: string; readonly dev: number; readonly ino: number };

/** All of one folder, the outer ones first. Those of another root say nothing. */
type Known = { readonly root: string; readonly mounts: readonly Mount[] };

/** A directory whose file system is away. */
export interface UnmountedPart extends PathProblem {
  /** The path relative to the folder. */
  readonly directory: string;
}

/**
 * The directories below the root of a folder that other file systems are mounted on. They are
 * recognised by device and inode across restarts, as the root is.
 *
 * A directory whose device is not that of the directory above it is remembered when a scan lists
 * it. It is *away* while it is not there, is empty, or is another directory without a known file in
 * it: nothing in it is taken then, and nothing below it counts as removed. It is forgotten when no
 * file below it is known, or when a person says that what stands there now is meant.
 */
export class FolderMounts {
  /** Those that are away, by path relative to the folder. */
  readonly #away = new Map<string, UnmountedPart>();

  constructor(
    private readonly folder: FolderConfig,
    private readonly deps: Pick<WatchDeps, 'state' | 'log' | 'clock'>,
  ) {}

  /** Those that are away. */
  get parts(): readonly UnmountedPart[] {
    return [...this.#away.values()];
  }

  /**
   * Whether a path, of a directory with a slash at its end, is on a file system that is away. A
   * file in the place of a mount is not.
   */
  isUnmounted(path: string): boolean {
    for (const away of this.#away.keys()) if (path.startsWith(`${away}/`)) return true;
    return false;
  }

  /**
   * Looks at all that are known.
   *
   * @param isMeant whether a person says that what stands there, if that is not empty, is meant
   * @returns whether one is away that was not, or is back
   */
  async check(isMeant: boolean): Promise<boolean> {
    const { clock, log, state } = this.deps;
    const { name, path: root } = this.folder;
    const others = new Map<string, Mount | undefined>();
    const away = new Set<string>();
    for (const mount of knownMounts(this.folder, state)) {
      const { path } = mount;
      const isBelowAway = [...away].some((outer) => isWithin(path, outer));
      const stands = isBelowAway ? 'there' : await standingOf(mount, this.folder, state, isMeant);
      if (stands === 'away') away.add(path);
      else if (stands !== 'there') others.set(path, stands === 'forgotten' ? undefined : stands);
    }
    // Others may have come to be known meanwhile.
    const now = knownMounts(this.folder, state);
    if (others.size > 0)
      this.#keep(
        now.flatMap((mount) => (others.has(mount.path) ? (others.get(mount.path) ?? []) : mount)),
      );
    const before = new Set(this.#away.keys());
    for (const path of before) {
      if (away.has(path)) continue;
      this.#away.delete(path);
      log.info(
        { folder: name, path },
        `${escapeInvisible(joinPath(root, path))} is not away any more and is scanned.`,
      );
    }
    for (const path of away) {
      if (before.has(path)) continue;
      const why = failures.mountAway(joinPath(root, path), name);
      this.#away.set(path, {
        folder: name,
        directory: path,
        path: joinPath(root, path),
        failure: why,
        since: clock.now(),
      });
      log.warn({ folder: name, path, code: why.code }, `${why.message} ${why.hint}`);
    }
    return before.size !== away.size || [...away].some((path) => !before.has(path));
  }

  /**
   * A directory was listed that was not reached through a link; remembers it if it is a mount.
   *
   * @returns false where it is known as another one, so that `check` has to tell what it is
   */
  met(path: string, { dev, ino }: DirectoryStat): boolean {
    const { state } = this.deps;
    if (path === '') return true;
    const mounts = knownMounts(this.folder, state);
    const known = mounts.find((mount) => mount.path === path);
    if (known !== undefined) return known.dev === dev && known.ino === ino;
    if (dev !== deviceAbove(path, mounts, this.folder, state))
      this.#keep([...mounts, { path, dev, ino }]);
    return true;
  }

  /** A rule keeps a directory out: what is mounted in it matters no more. */
  forget(directory: string): void {
    const mounts = knownMounts(this.folder, this.deps.state);
    const kept = mounts.filter(({ path }) => !isWithin(path, directory));
    if (kept.length < mounts.length) this.#keep(kept);
  }

  #keep(mounts: readonly Mount[]): void {
    const { name, path: root } = this.folder;
    const sorted = mounts.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    const known: Known = { root, mounts: sorted };
    this.deps.state.setMeta(keyOf(name), mounts.length === 0 ? undefined : known);
  }
}

/**
 * The directories of a folder whose file systems are away, by path relative to it; for whoever asks
 * without a daemon.
 */
export async function mountsAway(
  folder: FolderConfig,
  state: StateView,
): Promise<readonly string[]> {
  const away: string[] = [];
  for (const mount of knownMounts(folder, state))
    if ((await standingOf(mount, folder, state, false)) === 'away') away.push(mount.path);
  return away;
}

/** How a known mount stands now; another directory that is taken for it is returned. */
async function standingOf(
  { path, dev, ino }: Mount,
  folder: FolderConfig,
  state: StateView,
  isMeant: boolean,
): Promise<'there' | 'away' | 'forgotten' | Mount> {
  const absolute = joinPath(folder.path, path);
  const found = await look(absolute);
  const isDirectory = 'stat' in found && found.kind === 'directory';
  if (isDirectory && found.stat.dev === dev && found.stat.ino === ino) return 'there';
  if (!hasRecords(folder, path, state)) return 'forgotten';
  if (!isDirectory) return isMeant && 'stat' in found ? 'forgotten' : 'away';
  // One that cannot be listed shows nothing.
  if (await isEmptyDirectory(absolute).catch(() => true)) return 'away';
  const isOurs = isMeant || found.stat.dev === dev || (await hasKnownFiles(folder, state, path));
  if (!isOurs) return 'away';
  const isMount = found.stat.dev !== deviceAbove(path, knownMounts(folder, state), folder, state);
  return isMount ? { path, dev: found.stat.dev, ino: found.stat.ino } : 'forgotten';
}

/** The device of the directory that a path stands in, by what was remembered when it was listed. */
function deviceAbove(
  path: string,
  mounts: readonly Mount[],
  folder: FolderConfig,
  state: StateView,
): number | undefined {
  const outer = mounts.findLast((mount) => mount.path !== path && isWithin(path, mount.path));
  return outer === undefined ? rootDevice(folder, state) : outer.dev;
}

function hasRecords({ name }: FolderConfig, directory: string, state: StateView): boolean {
  for (const [, , , line] of state.entries.lines(name, directory)) if (isLive(line)) return true;
  return false;
}

function knownMounts({ name, path }: FolderConfig, state: StateView): readonly Mount[] {
  const known = state.meta(keyOf(name)) as Known | undefined;
  return known?.root === path ? known.mounts : [];
}

function keyOf(name: string): string {
  return `watch.mounts.${name}`;
}
