import { messageOf } from '../lib/errors.js';
import { BackupError, unreadable } from './backup-errors.js';
import { type Checked, checkDatabase, checkSchema, type Readable } from './check.js';
import { FORMAT, int, isDiskFailure, isLocked } from './database.js';
import { DatabaseCopy } from './database-copy.js';
import { type Driver, fastestDriver } from './driver.js';

export interface CopyOptions {
  /** The backup, for errors. */
  readonly file: string;
  readonly signal: AbortSignal;
  readonly driver?: Driver | undefined;
}

/**
 * Compares index and documents in the database of a backup.
 *
 * @param path the file that SQLite opens: the backup, or the database that was taken out of it
 * @throws BackupError BACKUP_NEWER, BACKUP_OLDER; BACKUP_DAMAGED if it is the database of no peer;
 *   BACKUP_UNREADABLE, BACKUP_NO_TEMPORARY; the reason of `signal`
 */
export async function checkCopy(path: string, options: CopyOptions): Promise<Checked> {
  return await withCopy(path, options, (copy) => checkDatabase(copy, options.signal));
}

/**
 * Checks only that the database of a backup is one of a peer.
 *
 * @throws BackupError, as `checkCopy` does
 */
export async function requireDatabase(path: string, options: CopyOptions): Promise<void> {
  await withCopy(path, options, async () => {});
}

async function withCopy<T>(
  path: string,
  options: CopyOptions,
  use: (copy: DatabaseCopy) => Promise<T>,
): Promise<T> {
  const { file, signal } = options;
  const driver = options.driver ?? (await fastestDriver());
  try {
    const copy = await DatabaseCopy.open(path, driver);
    try {
      requireFormat(copy, file);
      const why = checkSchema(copy, driver);
      if (why !== undefined) throw new BackupError('BACKUP_DAMAGED', { file, why });
      return await use(copy);
    } finally {
      await copy.close();
    }
  } catch (error) {
    if (error instanceof BackupError || signal.aborted) throw error;
    if (isDiskFailure(error) || isLocked(error)) throw unreadable(file, error);
    throw new BackupError('BACKUP_DAMAGED', { file, why: messageOf(error) }, { cause: error });
  }
}

function requireFormat(copy: Readable, file: string): void {
  const found = int(copy.row('PRAGMA user_version'), 'user_version');
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
