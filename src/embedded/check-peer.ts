import { join, resolve } from 'node:path';
import { checkCopy } from './backup-check.js';
import { peerUnreadable } from './backup-errors.js';
import { openBackup, readBackup } from './backup-file.js';
import { requirePeer, requireSettled } from './backup-source.js';
import { type Checked, checkDatabase, checkSchema } from './check.js';
import { Database, isDiskFailure } from './database.js';
import { lockDirectory } from './directory-lock.js';
import { type Driver, fastestDriver } from './driver.js';
import { SHARES } from './finish-restore.js';
import { ShareStore } from './share-store.js';

/** A checked peer or backup, with the number of its shared objects. */
export interface CheckedPeer extends Checked {
  readonly shares: number;
}

/**
 * Checks a stopped peer. Nothing in it changes, but the log that a killed peer left is moved into
 * the database.
 *
 * @throws BackupError BACKUP_PEER_MISSING, BACKUP_PEER_UNREADABLE, BACKUP_PEER_OLDER,
 *   RESTORE_UNFINISHED; EmbeddedError EMBEDDED_DIR_LOCKED if it runs, and others; the reason of
 *   `signal`
 */
export async function checkPeer(
  directory: string,
  signal: AbortSignal,
  given?: Driver | undefined,
): Promise<CheckedPeer> {
  const dir = resolve(directory);
  await requirePeer(dir);
  const driver = given ?? (await fastestDriver());
  const lock = await lockDirectory(dir);
  try {
    await requireSettled(dir);
    const database = new Database(dir, driver);
    try {
      const difference = checkSchema(database, driver);
      const checked =
        difference === undefined
          ? await checkDatabase(database, signal)
          : {
              documents: 0,
              tables: 0,
              differences: [`The schema differs: ${difference}.`],
              found: 1,
            };
      return { ...checked, shares: await countShares(dir) };
    } catch (error) {
      if (isDiskFailure(error)) throw peerUnreadable(database.path, error);
      throw error;
    } finally {
      database.close();
    }
  } finally {
    await lock.release();
  }
}

async function countShares(dir: string): Promise<number> {
  let shares = 0;
  try {
    for await (const _ of ShareStore.ofPeer(dir).walk()) shares += 1;
  } catch (error) {
    throw peerUnreadable(join(dir, SHARES), error);
  }
  return shares;
}

/**
 * Checks a backup: its digest, and its database.
 *
 * @throws BackupError BACKUP_UNREADABLE, BACKUP_UNKNOWN, BACKUP_NEWER, BACKUP_OLDER,
 *   BACKUP_DAMAGED; the reason of `signal`
 */
export async function checkBackup(
  file: string,
  signal: AbortSignal,
  driver?: Driver | undefined,
): Promise<CheckedPeer> {
  const path = resolve(file);
  const handle = await openBackup(path);
  const { shares } = await readBackup(handle, path, signal).finally(() => handle.close());
  return { ...(await checkCopy(path, { file: path, signal, driver })), shares };
}
