import type { FolderConfig } from '../config/config.js';
import { joinPath } from '../lib/file.js';
import { escapeInvisible, isWithin } from '../lib/text.js';
import type { StateView } from '../state/state.js';
import type { WatchDeps } from './deps.js';
import { type DirectoryStat, look } from './lister.js';
import { type Accepts, hasKnownFiles, isEmptyDirectory, isLive, rootDevice } from './root.js';
import { failures } from './rules/failures.js';
import type { PathProblem } from './rules/problems.js';

/**
 * A directory below the root that another file system is mounted on. A type and not an interface,
 * to be JSON.
 */
type Mount = { readonly path: string; readonly dev: number; readonly ino: number };

/** The known mounts of one folder, the outer ones first, and the root that they belong to. */
type KnownMounts = { readonly root: string; readonly mounts: readonly Mount[] };

/** The result of looking at a known mount. `other` is a directory accepted in its place. */
type Sight =
  | { readonly kind: 'same' }
  | { readonly kind: 'away' }
  | { readonly kind: 'forgotten' }
  | { readonly kind: 'other'; readonly mount: Mount };

const SAME: Sight = { kind: 'same' };
const AWAY: Sight = { kind: 'away' };
const FORGOTTEN: Sight = { kind: 'forgotten' };

/** A directory whose file system is away. */
export interface UnmountedPart extends PathProblem {
  /** The path relative to the folder. */
  readonly directory: string;
}

/**
 * The directories below the root of a folder that other file systems are mounted on. They are
 * recognised by device and inode across restarts, as the root is.
 *
 * A scan remembers every directory whose device is not that of the directory above it. Such a mount
 * is *away* while the directory is missing, is empty, or is another directory without a known file
 * in it. Nothing in it is taken then, and nothing below it counts as removed. A mount is forgotten
 * when no file below it is known, or when a person says that the present directory is meant.
 */
export class FolderMounts {
  /** The mounts that are away, by path relative to the folder. */
  readonly #away = new Map<string, UnmountedPart>();

  constructor(
    private readonly folder: FolderConfig,
    private readonly deps: WatchDeps,
  ) {}

  /** The mounts that are away. */
  get parts(): readonly UnmountedPart[] {
    return [...this.#away.values()];
  }

  /**
   * Whether a path is on a file system that is away. The path of a directory ends in a slash; a
   * file in the place of a mount does not count.
   */
  isUnmounted(path: string): boolean {
    for (const away of this.#away.keys()) if (path.startsWith(`${away}/`)) return true;
    return false;
  }

  /** Looks at all known mounts. @returns whether one went away or came back */
  async check(accepts: Accepts): Promise<boolean> {
    const { away, others } = await this.#lookAtAll(accepts);
    // Other mounts may have become known meanwhile.
    const now = knownMounts(this.folder, this.deps.state);
    if (others.size > 0)
      this.#remember(
        now.flatMap((mount) => (others.has(mount.path) ? (others.get(mount.path) ?? []) : mount)),
      );
    const back = [...this.#away.keys()].filter((path) => !away.has(path));
    const gone = [...away].filter((path) => !this.#away.has(path));
    for (const path of back) this.#markBack(path);
    for (const path of gone) this.#markAway(path);
    return back.length + gone.length > 0;
  }

  /**
   * Reports that a scan listed a directory below the root, not through a link. The directory is
   * remembered if it is a mount.
   *
   * @returns false if another directory is known there, so that `check` has to decide
   */
  met(path: string, { dev, ino }: DirectoryStat): boolean {
    const { state } = this.deps;
    const mounts = knownMounts(this.folder, state);
    const known = mounts.find((mount) => mount.path === path);
    if (known !== undefined) return known.dev === dev && known.ino === ino;
    if (dev !== deviceAbove(path, mounts, this.folder, state))
      this.#remember([...mounts, { path, dev, ino }]);
    return true;
  }

  /** Forgets the mounts in a directory that a rule keeps out. */
  forget(directory: string): void {
    const mounts = knownMounts(this.folder, this.deps.state);
    const left = mounts.filter(({ path }) => !isWithin(path, directory));
    if (left.length < mounts.length) this.#remember(left);
  }

  /** @returns the mounts that are away, and those to replace; undefined for those to forget */
  async #lookAtAll(accepts: Accepts) {
    const { state } = this.deps;
    const others = new Map<string, Mount | undefined>();
    const away = new Set<string>();
    for (const mount of knownMounts(this.folder, state)) {
      const { path } = mount;
      if ([...away].some((outer) => isWithin(path, outer))) continue;
      const sight = await lookAtMount(mount, this.folder, state, accepts);
      if (sight.kind === 'away') away.add(path);
      if (sight.kind === 'forgotten') others.set(path, undefined);
      if (sight.kind === 'other') others.set(path, sight.mount);
    }
    return { away, others };
  }

  #markBack(path: string): void {
    const { name, path: root } = this.folder;
    this.#away.delete(path);
    this.deps.log.info(
      { folder: name, path },
      `${escapeInvisible(joinPath(root, path))} is back and is scanned.`,
    );
  }

  #markAway(path: string): void {
    const { clock, log } = this.deps;
    const { name, path: root } = this.folder;
    const failure = failures.mountAway(joinPath(root, path), name);
    this.#away.set(path, {
      folder: name,
      directory: path,
      path: joinPath(root, path),
      failure,
      since: clock.now(),
    });
    const { code, hint, message } = failure;
    log.warn({ folder: name, path, code }, `${message} ${hint}`);
  }

  #remember(mounts: readonly Mount[]): void {
    const { name, path: root } = this.folder;
    const sorted = mounts.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    const known: KnownMounts = { root, mounts: sorted };
    this.deps.state.setMeta(mountsMetaKey(name), mounts.length === 0 ? undefined : known);
  }
}

/** Returns the relative paths of the mounts that are away; for commands without a daemon. */
export async function mountsAway(
  folder: FolderConfig,
  state: StateView,
): Promise<readonly string[]> {
  const away: string[] = [];
  for (const mount of knownMounts(folder, state)) {
    const { kind } = await lookAtMount(mount, folder, state, 'known');
    if (kind === 'away') away.push(mount.path);
  }
  return away;
}

async function lookAtMount(
  { path, dev, ino }: Mount,
  folder: FolderConfig,
  state: StateView,
  accepts: Accepts,
): Promise<Sight> {
  const absolute = joinPath(folder.path, path);
  const found = await look(absolute);
  const isDirectory = 'stat' in found && found.kind === 'directory';
  if (isDirectory && found.stat.dev === dev && found.stat.ino === ino) return SAME;
  if (!hasRecords(folder, path, state)) return FORGOTTEN;
  if (!isDirectory) return accepts === 'any' && 'stat' in found ? FORGOTTEN : AWAY;
  // A directory that cannot be listed proves nothing and counts as empty.
  if (await isEmptyDirectory(absolute).catch(() => true)) return AWAY;
  const isAccepted =
    accepts === 'any' || found.stat.dev === dev || (await hasKnownFiles(folder, state, path));
  if (!isAccepted) return AWAY;
  const isMount = found.stat.dev !== deviceAbove(path, knownMounts(folder, state), folder, state);
  if (!isMount) return FORGOTTEN;
  return { kind: 'other', mount: { path, dev: found.stat.dev, ino: found.stat.ino } };
}

/** Returns the device of the directory that a path stands in, as of its last listing. */
function deviceAbove(
  path: string,
  mounts: readonly Mount[],
  folder: FolderConfig,
  state: StateView,
): number | undefined {
  const outer = mounts.findLast((mount) => mount.path !== path && isWithin(path, mount.path));
  return outer === undefined ? rootDevice(folder, state) : outer.dev;
}

/** Whether state knows a file below a directory that was there when it was last looked at. */
function hasRecords({ name }: FolderConfig, directory: string, state: StateView): boolean {
  for (const [, , , line] of state.entries.lines(name, directory)) if (isLive(line)) return true;
  return false;
}

function knownMounts({ name, path }: FolderConfig, state: StateView): readonly Mount[] {
  const known = state.meta(mountsMetaKey(name)) as KnownMounts | undefined;
  return known?.root === path ? known.mounts : [];
}

function mountsMetaKey(name: string): string {
  return `watch.mounts.${name}`;
}
