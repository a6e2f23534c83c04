import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../lib/clock.js';
import { isOpenToOthers } from '../lib/file.js';
import { type Holder, type Lock, takeLock } from '../lib/lock.js';
import { directoryLocked, directoryUnwritable, EmbeddedError } from './errors.js';

/**
 * Takes the lock of a peer's directory, which is created if it is missing. It must belong to this
 * user.
 *
 * @throws EmbeddedError EMBEDDED_DIR_LOCKED, EMBEDDED_DIR_LOCKED_ELSEWHERE,
 *   EMBEDDED_DIR_UNWRITABLE, EMBEDDED_DIR_OPEN_TO_OTHERS, EMBEDDED_DIR_OF_ANOTHER_USER
 */
export async function lockDirectory(dir: string): Promise<Lock> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const { mode, uid } = await stat(dir);
    if (isOpenToOthers(mode)) {
      const values = { dir, mode: (mode & 0o7777).toString(8) };
      throw new EmbeddedError('EMBEDDED_DIR_OPEN_TO_OTHERS', values, { details: { dir } });
    }
    const held = (holder: Holder) => directoryLocked(dir, holder);
    const path = join(dir, 'peer.lock');
    const lock = await takeLock(path, systemClock, held);
    // Some file systems assign all files to one user. They assign the lock to the owner of the
    // directory too.
    if (uid === 0 || (await stat(path)).uid === uid) return lock;
    await lock.release();
    const user = process.geteuid?.() ?? 0;
    const details = { dir, uid };
    throw new EmbeddedError('EMBEDDED_DIR_OF_ANOTHER_USER', { ...details, user }, { details });
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    throw directoryUnwritable(dir, error);
  }
}
