import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { describeHolder, type Holder, isHere, type Lock, readLock, takeLock } from '../lib/lock.js';
import { type Owner, ownerOf } from '../lib/owner.js';
import { anothersState, forbiddenFile, StateError, writeError } from './errors.js';
import { journalPath, listStateFiles } from './files.js';

const ROOT = 0;

/**
 * Takes the state directory `dir`, created if need be, for this process.
 *
 * Root is kept from the state of another user: its files would be root's, and unreadable for whoever they are for.
 *
 * @throws StateError STATE_LOCKED, STATE_LOCKED_ELSEWHERE, STATE_OF_ANOTHER_USER, STATE_UNWRITABLE, STATE_FULL,
 *   STATE_NOT_A_DIRECTORY
 */
export async function lockState(dir: string, { clock }: { readonly clock: Clock }): Promise<Lock> {
  try {
    if (process.geteuid?.() === ROOT) await assertNotAnothers(dir);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return await takeLock(lockOf(dir), { clock, held: (holder) => locked(dir, holder) });
  } catch (error) {
    const forbidden = await forbiddenFile(error, dir);
    if (forbidden !== undefined) throw new StateError('STATE_UNWRITABLE', { dir, ...forbidden }, error);
    throw writeError(error, dir);
  }
}

/** Who works with the state in `dir`, if anybody living does. */
export async function stateHolder(dir: string): Promise<Holder | undefined> {
  return await readLock(lockOf(dir));
}

/** @throws StateError STATE_OF_ANOTHER_USER */
async function assertNotAnothers(dir: string): Promise<void> {
  const owner = await stateOwner(dir);
  if (owner === undefined || owner.uid === ROOT) return;
  if ((await uidOfNew(dir)) !== owner.uid) throw anothersState(dir, owner);
}

/**
 * Who writes the state in `dir`: the owner of the newest journal, which is root in a container that was given a directory of
 * the host's; that of the directory where there is no journal yet. Undefined where nothing is.
 */
async function stateOwner(dir: string): Promise<Owner | undefined> {
  const newest = (await listStateFiles(dir)).journals.at(-1);
  return await ownerOf(newest === undefined ? dir : journalPath(dir, newest));
}

/** Whose a new file in `dir` is: some file systems give all to one user, and nobody's way is barred there. */
async function uidOfNew(dir: string): Promise<number | undefined> {
  const path = join(dir, `lock.${randomUUID()}.tmp`);
  try {
    await writeFile(path, '', { mode: 0o600, flag: 'wx' });
    return (await ownerOf(path))?.uid;
  } finally {
    await rm(path, { force: true });
  }
}

function lockOf(dir: string): string {
  return join(dir, 'lock');
}

function locked(dir: string, holder: Holder): StateError {
  const code = isHere(holder) ? 'STATE_LOCKED' : 'STATE_LOCKED_ELSEWHERE';
  return new StateError(code, { dir, detail: describeHolder(holder) });
}
