import { messageOf } from '../lib/errors.js';
import { BackupError } from './backup-errors.js';
import { type Checked, checkDatabase, type Readable } from './check.js';
import { FORMAT, int } from './database.js';
import { DatabaseCopy } from './database-copy.js';
import { type Driver, fastestDriver } from './driver.js';

/**
 * Checks the database of a backup.
 *
 * @param path the file that SQLite opens: the backup, or the database that was taken out of it
 * @param file the backup, for errors
 * @throws BackupError BACKUP_NEWER, BACKUP_OLDER, BACKUP_DAMAGED if it is the database of no peer
 */
export async function checkCopy(
  path: string,
  file: string,
  driver?: Driver | undefined,
): Promise<Checked> {
  let copy: DatabaseCopy;
  try {
    copy = new DatabaseCopy(path, driver ?? (await fastestDriver()));
  } catch (error) {
    throw new BackupError('BACKUP_DAMAGED', { file, why: messageOf(error) }, { cause: error });
  }
  try {
    requireFormat(copy, file);
    return await checkDatabase(copy);
  } finally {
    copy.close();
  }
}

function requireFormat(copy: Readable, file: string): void {
  let found: number;
  try {
    found = int(copy.row('PRAGMA user_version'), 'user_version');
  } catch (error) {
    throw new BackupError('BACKUP_DAMAGED', { file, why: messageOf(error) }, { cause: error });
  }
  if (found > FORMAT) throw new BackupError('BACKUP_NEWER', { file, found, known: FORMAT });
  if (found === 0)
    throw new BackupError('BACKUP_DAMAGED', { file, why: 'its database is of another program' });
  if (found < FORMAT) throw new BackupError('BACKUP_OLDER', { file, found, known: FORMAT });
}

/** Returns the first differences as the end of a sentence. */
export function firstDifferences({ differences, found }: Checked): string {
  const more = found > 1 ? ` And ${found - 1} more.` : '';
  return `${differences[0] ?? ''}${more}`;
}
