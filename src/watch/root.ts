import { lstat, opendir, realpath } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { FolderConfig } from '../config/config.js';
import { systemCode } from '../lib/errors.js';
import { escapeInvisible } from '../lib/text.js';
import { type Failure, isAwayStatus } from '../state/entry.js';
import { statusOf } from '../state/line.js';
import type { StateView } from '../state/state.js';
import type { WatchDeps } from './deps.js';
import { failures } from './rules/failures.js';

/** The identity of a root, as state remembers it. A type and not an interface, to be JSON. */
type KnownRoot = {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
  /** The path with links resolved; undefined if an earlier version remembered the root. */
  readonly real?: string;
  /** The owner; undefined if an earlier version remembered the root. */
  readonly uid?: number;
};

/**
 * The directories that a check accepts as the folder: `known` only the one that was the folder so
 * far; `any` whatever stands there and is not empty, because a person said that it is meant.
 */
export type Accepts = 'known' | 'any';

/** Number of known files that are looked for on a file system with another device number. */
const SAMPLE_SIZE = 20;

/**
 * The root directory of a folder. It is recognised by device and inode across restarts. The folder
 * is *held* while its root is missing, cannot be listed, is another directory that looks as if
 * something were not mounted, or may belong to somebody else. Nothing in it is looked at then.
 *
 * Another directory is accepted as the folder if it is not empty and either stands on the same
 * device (somebody replaced the directory) or has a known file in it (device numbers change with a
 * reboot). If state has no records of the folder, or if the configuration names another path, every
 * directory is accepted.
 *
 * Everybody who may write in the directory above the root can put a link there, or the directory of
 * another user. The folder is therefore held if its path leads to another place than before, or to
 * a directory of another user on the same device. That holds with records and without, until a
 * person says that it is meant.
 */
export class FolderRoot {
  /** The reason why the folder is held; undefined if it is not, or was not checked yet. */
  held: Failure | undefined;
  /** When `held` last changed, in ms since the epoch. */
  since: number;
  /** The path of the directory that was last accepted as the folder, links resolved. */
  real: string;
  /** The identity of that directory; undefined until one was accepted. */
  #accepted: Pick<KnownRoot, 'dev' | 'ino' | 'real'> | undefined;
  /** The ctime of that directory when it was last listed. */
  #listedCtimeMs: number | undefined;

  constructor(
    private readonly folder: FolderConfig,
    private readonly deps: WatchDeps,
  ) {
    this.real = folder.path;
    this.since = deps.clock.now();
  }

  /** Whether the root was checked and is the folder. */
  get isThere(): boolean {
    return this.held === undefined && this.#accepted !== undefined;
  }

  /** Whether a directory is the one that was last accepted as the folder. */
  isAccepted({ dev, ino }: Pick<KnownRoot, 'dev' | 'ino'>): boolean {
    return this.#accepted?.dev === dev && this.#accepted.ino === ino;
  }

  /** Looks at the root. @returns whether it went away, came back, or is another directory */
  async check(accepts: Accepts): Promise<boolean> {
    const { path, name } = this.folder;
    const { state } = this.deps;
    const { isThere } = this;
    const before = this.#accepted;
    try {
      const { found, ctimeMs, isKnown, replaced } = await rootAt(this.folder, state, {
        accepts,
        listedCtimeMs: this.#listedCtimeMs,
      });
      this.#listedCtimeMs = ctimeMs;
      if (replaced === undefined) {
        const { dev, ino, real } = found;
        // The next commit brings it to the disk. Without one, the next start looks again.
        if (!isKnown) state.setMeta(rootMetaKey(name), found);
        this.real = real;
        this.#accepted = { dev, ino, real };
      }
      this.#setHeld(replaced);
    } catch (error) {
      const code = systemCode(error) ?? 'UNKNOWN';
      this.#setHeld(failures.rootMissing(path, code, wasSeen(this.folder, state)));
    }
    return this.isThere !== isThere || !isDeepStrictEqual(this.#accepted, before);
  }

  #setHeld(held: Failure | undefined): void {
    const before = this.held;
    this.held = held;
    if (held?.code === before?.code) return;
    this.since = this.deps.clock.now();
    const { name, path } = this.folder;
    if (held === undefined)
      this.deps.log.info(
        { folder: name },
        `The folder ${escapeInvisible(path)} is back and is scanned.`,
      );
    else this.deps.log.warn({ folder: name, code: held.code }, `${held.message} ${held.hint}`);
  }
}

/** Whether a line of state is of a file that was there when it was last looked at. */
export const isLive = (line: string) => !isAwayStatus(statusOf(line));

type FolderName = Pick<FolderConfig, 'name' | 'path'>;

/**
 * Finds the directory at the path of a folder.
 *
 * @param options.listedCtimeMs the ctime of the known directory when it was last listed. It is not
 *   listed again while that is the same, which takes three of the five steps of a check: a change
 *   of its names, its mode or its access list sets it.
 * @returns the directory, its ctime, whether state knows it as it is, and what keeps it from being
 *   accepted as the folder
 * @throws the error of the system if it is not there or cannot be listed
 */
export async function rootAt(
  folder: FolderName,
  state: StateView,
  options: { readonly accepts?: Accepts; readonly listedCtimeMs?: number | undefined } = {},
) {
  const { name, path } = folder;
  const { accepts = 'known', listedCtimeMs } = options;
  // The path is resolved once, so a link that changes meanwhile leads nowhere else.
  const real = await realpath(path);
  const { ctimeMs, dev, ino, uid } = await lstat(real);
  const found = { path, dev, ino, real, uid };
  const known = knownRoot(folder, state);
  const isSame = known?.path === path && known.dev === dev && known.ino === ino;
  const isListed = isSame && ctimeMs === listedCtimeMs;
  const isEmpty = isListed ? false : await isEmptyDirectory(real);
  // The root of an earlier path of the configuration says nothing about this one.
  if (known?.path !== path) return { found, ctimeMs, isKnown: false, replaced: undefined };
  const isKnown = isSame && known.real === real && known.uid === uid;
  const change = accepts === 'any' ? undefined : describeChangedOwnerOrPath(known, found);
  if (change !== undefined)
    return { found, ctimeMs, isKnown, replaced: failures.rootElsewhere(path, change, name) };
  const isAccepted = async () =>
    accepts === 'any' || known.dev === dev || (await hasKnownFiles(folder, state));
  const isReplaced = !isSame && hasRecords(folder, state) && (isEmpty || !(await isAccepted()));
  const replaced = isReplaced ? failures.rootReplaced(path, name) : undefined;
  return { found, ctimeMs, isKnown, replaced };
}

/** Describes how a root may have become somebody else's directory; undefined if it did not. */
function describeChangedOwnerOrPath(
  known: KnownRoot,
  { dev, real, uid }: KnownRoot,
): string | undefined {
  if (known.real !== undefined && known.real !== real)
    return `leads to ${real} now, and led to ${known.real} before`;
  // A disk that is mounted there has an owner of its own, and only root can mount one.
  if (known.uid !== undefined && known.uid !== uid && known.dev === dev)
    return `belongs to the user with the number ${uid} now, and belonged to ${known.uid} before`;
  return undefined;
}

/**
 * Whether a directory has a known file with the size and mtime that state knows. Inodes are not
 * compared, because a copy on another disk has others.
 */
export async function hasKnownFiles(
  { name: folder, path: root }: FolderName,
  state: StateView,
  directory = '',
): Promise<boolean> {
  let left = SAMPLE_SIZE;
  for await (const slice of state.entries.slices({ folder, directory, where: isLive })) {
    for (const { path, version } of slice) {
      const found = await lstat(`${root}/${path}`).catch(() => undefined);
      if (found?.size === version.size && found.mtimeMs === version.mtimeMs) return true;
      left -= 1;
      if (left === 0) return false;
    }
  }
  return false;
}

/** Whether the folder was there before. If it is missing now, something has to come back. */
export function wasSeen(folder: FolderName, state: StateView): boolean {
  return knownRoot(folder, state)?.path === folder.path || hasRecords(folder, state);
}

/** Returns the device of the root when it was last there. */
export function rootDevice(folder: FolderName, state: StateView): number | undefined {
  return knownRoot(folder, state)?.dev;
}

/** Whether state knows a file of the folder that was there when it was last looked at. */
function hasRecords({ name }: FolderName, state: StateView): boolean {
  const { gone: _, removing: _removing, removed: _removed, ...live } = state.counts(name);
  return Object.values(live).some((count) => count > 0);
}

function knownRoot({ name }: FolderName, state: StateView): KnownRoot | undefined {
  return state.meta(rootMetaKey(name)) as KnownRoot | undefined;
}

function rootMetaKey(name: string): string {
  return `watch.root.${name}`;
}

export async function isEmptyDirectory(path: string): Promise<boolean> {
  for await (const _ of await opendir(path)) return false;
  return true;
}
