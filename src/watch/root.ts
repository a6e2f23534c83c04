import { lstat, opendir, realpath } from 'node:fs/promises';
import type { FolderConfig } from '../config/config.js';
import { systemCode } from '../lib/errors.js';
import { escapeInvisible } from '../lib/text.js';
import { type Failure, isAwayStatus } from '../state/entry.js';
import { statusOf } from '../state/line.js';
import type { StateView } from '../state/state.js';
import type { WatchDeps } from './reconciler.js';
import { failures } from './rules/failures.js';

/** What is remembered of the root. A type and not an interface, for it is kept as JSON. */
type Known = {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
  /**
   * The path, links resolved, and the owner; undefined where an earlier version remembered the
   * root.
   */
  readonly real?: string;
  readonly uid?: number;
};

/** So many known files are looked for to recognise a file system under another device number. */
const SAMPLE = 20;

/**
 * The directory of a folder, recognised by device and inode across restarts. The folder is *held*
 * while its root is not there, cannot be listed, is another directory that looks as if something
 * were not mounted, or may be somebody else's: nothing in it is looked at then.
 *
 * Another directory is still the folder when it is not empty and either on the same device
 * (somebody replaced the directory) or with a known file in it (device numbers change with a
 * reboot). Without records nothing is lost and every directory is fine; so it is when the
 * configuration names another path.
 *
 * Whoever may write in the directory above the root can put a link to any place there, or a
 * directory of another user that stands beside it. The folder is held where the path leads to
 * another place than before, or to a directory of another user on the same device, with records or
 * without, until a person says that this is meant.
 */
export class FolderRoot {
  /** Whether the folder may be looked at; not before the first check. */
  isThere = false;
  /** Why the folder is held, if it is. */
  held: Failure | undefined;
  /** Since when it stands like this, in ms since the epoch. */
  since: number;
  /** The path of the directory that was taken for the folder last, links resolved. */
  real: string;
  /**
   * Somebody said that the directory which stands there now, if it is not empty, is to be the
   * folder.
   */
  isMeant = false;
  /** Another one for each directory that is taken for the folder. */
  #identity = '';

  constructor(
    private readonly folder: FolderConfig,
    private readonly deps: Pick<WatchDeps, 'state' | 'log' | 'clock'>,
  ) {
    this.real = folder.path;
    this.since = deps.clock.now();
  }

  /**
   * Looks at the root, and takes it for the folder if it is.
   *
   * @returns whether it stands otherwise than before, or is another directory
   */
  async check(): Promise<boolean> {
    const { path, name } = this.folder;
    const { state } = this.deps;
    const { isMeant, isThere } = this;
    const identity = this.#identity;
    this.isMeant = false;
    try {
      const { found, isKnown, replaced } = await rootAt(this.folder, state, isMeant);
      if (replaced === undefined) {
        const { dev, ino, real } = found;
        // Goes to the disk with the next commit; if that never comes, the next start looks again.
        if (!isKnown) state.setMeta(keyOf(name), found);
        this.real = real;
        this.#identity = `${real}:${dev}:${ino}`;
      }
      this.#stand(replaced);
    } catch (error) {
      const wasThere = wasSeen(this.folder, state);
      this.#stand(failures.rootMissing(path, systemCode(error) ?? 'UNKNOWN', wasThere));
    }
    return this.isThere !== isThere || this.#identity !== identity;
  }

  #stand(held?: Failure): void {
    const before = this.held;
    this.isThere = held === undefined;
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

export const isLive = (line: string) => !isAwayStatus(statusOf(line));

type FolderName = Pick<FolderConfig, 'name' | 'path'>;

/**
 * The directory at the path of a folder: whether it is known as it is found, and what keeps it from
 * being taken for the folder.
 *
 * @param isMeant whether it is taken for the folder unless it is empty
 * @throws what the system says where it is not there or cannot be listed
 */
export async function rootAt(folder: FolderName, state: StateView, isMeant = false) {
  const { name, path } = folder;
  // A link that is changed meanwhile leads nowhere else any more.
  const real = await realpath(path);
  const { dev, ino, uid } = await lstat(real);
  const isEmpty = await isEmptyDirectory(real);
  const found = { path, dev, ino, real, uid };
  const known = knownOf(folder, state);
  // Under another path, what was just looked for at the old one proves nothing.
  if (known?.path !== path) return { found, isKnown: false, replaced: undefined };
  const isSame = known.dev === dev && known.ino === ino;
  const isKnown = isSame && known.real === real && known.uid === uid;
  const elsewhere = isMeant ? undefined : leadsElsewhere(known, found);
  if (elsewhere !== undefined)
    return { found, isKnown, replaced: failures.rootElsewhere(path, elsewhere, name) };
  const isOurs = async () => isMeant || known.dev === dev || (await hasKnownFiles(folder, state));
  const isReplaced = !isSame && hasRecords(folder, state) && (isEmpty || !(await isOurs()));
  return { found, isKnown, replaced: isReplaced ? failures.rootReplaced(path, name) : undefined };
}

/**
 * How a root may have come to be the directory of somebody else, in words; undefined where it did
 * not.
 */
function leadsElsewhere(known: Known, { dev, real, uid }: Known): string | undefined {
  const isMoved = known.real !== undefined && known.real !== real;
  if (isMoved) return `leads to ${real} now, and led to ${known.real} before`;
  // A disk that is mounted there has an owner of its own, and only root mounts one.
  const isOthers = known.uid !== undefined && known.uid !== uid && known.dev === dev;
  if (isOthers)
    return `belongs to the user with the number ${uid} now, and belonged to ${known.uid} before`;
  return undefined;
}

/**
 * Whether a file below a directory is as it is known, but for its inode: a copy on another disk has
 * others.
 */
export async function hasKnownFiles(
  { name: folder, path: root }: FolderName,
  state: StateView,
  directory = '',
): Promise<boolean> {
  let left = SAMPLE;
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

/**
 * Whether the folder was there before, or files of it are known: where it is away, something has to
 * come back.
 */
export function wasSeen(folder: FolderName, state: StateView): boolean {
  return knownOf(folder, state)?.path === folder.path || hasRecords(folder, state);
}

/** The device of the root, as it was when it was there last. */
export function rootDevice(folder: FolderName, state: StateView): number | undefined {
  return knownOf(folder, state)?.dev;
}

function hasRecords({ name }: FolderName, state: StateView): boolean {
  const { gone: _, removing: _removing, removed: _removed, ...live } = state.counts(name);
  return Object.values(live).some((count) => count > 0);
}

function knownOf({ name }: FolderName, state: StateView): Known | undefined {
  return state.meta(keyOf(name)) as Known | undefined;
}

function keyOf(name: string): string {
  return `watch.root.${name}`;
}

export async function isEmptyDirectory(path: string): Promise<boolean> {
  for await (const _ of await opendir(path)) return false;
  return true;
}
