import { resolve } from 'node:path';
import { checkCopy } from './backup-check.js';
import { openBackup, readBackup } from './backup-file.js';
import { requirePeer } from './backup-source.js';
import { type Checked, checkDatabase } from './check.js';
import { Database } from './database.js';
import { lockDirectory } from './directory-lock.js';
import { type Driver, fastestDriver } from './driver.js';
import { finishRestore } from './finish-restore.js';
import { ShareStore } from './share-store.js';

/** A checked peer or backup, with the number of its shared objects. */
export interface CheckedPeer extends Checked {
  readonly shares: number;
}

/**
 * Checks a stopped peer.
 *
 * @throws BackupError BACKUP_PEER_MISSING; EmbeddedError EMBEDDED_DIR_LOCKED if it runs, and others
 */
export async function checkPeer(
  directory: string,
  driver?: Driver | undefined,
): Promise<CheckedPeer> {
  const dir = resolve(directory);
  await requirePeer(dir);
  const lock = await lockDirectory(dir);
  try {
    await finishRestore(dir);
    const database = new Database(dir, driver ?? (await fastestDriver()));
    try {
      const checked = await checkDatabase(database);
      let shares = 0;
      for await (const _ of ShareStore.ofPeer(dir).walk()) shares += 1;
      return { ...checked, shares };
    } finally {
      database.close();
    }
  } finally {
    await lock.release();
  }
}

/**
 * Checks a backup: its digest, and its database.
 *
 * @throws BackupError BACKUP_UNREADABLE, BACKUP_UNKNOWN, BACKUP_NEWER, BACKUP_OLDER, BACKUP_DAMAGED
 */
export async function checkBackup(file: string, driver?: Driver | undefined): Promise<CheckedPeer> {
  const path = resolve(file);
  const handle = await openBackup(path);
  const { shares } = await readBackup(handle, path).finally(() => handle.close());
  return { ...(await checkCopy(path, path, driver)), shares };
}
