import { lstat, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';

/**
 * A restore, in the directory of the peer:
 *
 * 1. *Prepared*: the backup is unpacked into `restoring/`, synced and checked. Until here nothing
 *    of the peer changed, and `finishRestore` deletes the directory.
 * 2. *Decided*: `restoring/` is renamed to `restored/`. From here on `finishRestore` completes the
 *    restore: it moves what was there before into `before-restore/`, and then the restored files to
 *    their places.
 *
 * Every start of a peer calls `finishRestore` before it opens the database. So a kill at any moment
 * leaves the old peer or the new one.
 */
export const PREPARED = 'restoring';
export const DECIDED = 'restored';
export const BEFORE = 'before-restore';
/** Stands in the restored directory if the files before are deleted instead of kept. */
export const DISCARD = 'discard';

/** The name that `shares` has for a moment while a restore finds out whether it can be renamed. */
export const TRIAL = 'shares.trial';

export const DATABASE = 'peer.sqlite';
export const SHARES = 'shares';
/**
 * The names that are moved, and the files that each replaces. The log of another database would
 * damage the restored one.
 */
const FILES = [
  [DATABASE, [`${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`, DATABASE]],
  [SHARES, [SHARES]],
] as const;

/**
 * Completes a restore that was decided, and deletes one that was not. The caller holds the lock of
 * the directory. Each step can be repeated after a kill.
 */
export async function finishRestore(dir: string): Promise<void> {
  await endTrial(dir);
  await rm(join(dir, PREPARED), { recursive: true, force: true });
  const decided = join(dir, DECIDED);
  if (!(await exists(decided))) return;
  await syncDirectory(dir);
  const isDiscarded = await exists(join(decided, DISCARD));
  const before = join(dir, BEFORE);
  if (isDiscarded) await rm(before, { recursive: true, force: true });
  for (const [name, replaced] of FILES) {
    // If it is in its place already, so are the files before.
    if (!(await exists(join(decided, name)))) continue;
    for (const old of replaced) {
      const path = join(dir, old);
      if (!(await exists(path))) continue;
      if (isDiscarded) await rm(path, { recursive: true });
      else {
        await mkdir(before, { recursive: true, mode: 0o700 });
        await rename(path, join(before, old));
      }
    }
    if (await exists(before)) await syncDirectory(before);
    await syncDirectory(dir);
    await rename(join(decided, name), join(dir, name));
    await syncDirectory(dir);
  }
  await rm(decided, { recursive: true });
  await syncDirectory(dir);
}

/** Whether a restore waits for `finishRestore`. */
export async function isDecided(dir: string): Promise<boolean> {
  if (await exists(join(dir, DECIDED))) return true;
  return (await exists(join(dir, TRIAL))) && !(await exists(join(dir, SHARES)));
}

/**
 * Renames `shares` and back. A folder on a mount cannot be renamed.
 *
 * @throws Error of the system
 */
export async function tryRename(dir: string): Promise<void> {
  if (!(await exists(join(dir, SHARES)))) return;
  await rename(join(dir, SHARES), join(dir, TRIAL));
  await endTrial(dir);
}

async function endTrial(dir: string): Promise<void> {
  if ((await exists(join(dir, TRIAL))) && !(await exists(join(dir, SHARES))))
    await rename(join(dir, TRIAL), join(dir, SHARES));
}

export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(undefinedIfMissing)) !== undefined;
}

export function undefinedIfMissing(error: unknown): undefined {
  if (systemCode(error) !== 'ENOENT') throw error;
}
