import { type FileHandle, lstat, open, realpath, rename, rm, statfs } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { isWithin } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { checkCopy, firstDifferences } from './backup-check.js';
import { BackupError } from './backup-errors.js';
import { BackupWriter, type Contents, openBackup, readBackup } from './backup-file.js';
import { type BackupSource, openSource } from './backup-source.js';
import type { Checked } from './check.js';
import type { Driver } from './driver.js';
import { type OpenShare, ShareStore } from './share-store.js';

export interface BackupOptions {
  readonly dir: string;
  readonly file: string;
  /** Whether an existing file is replaced. */
  readonly force: boolean;
  /** Whether index and documents are compared. The digest always is. */
  readonly check: boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The build of SQLite. @default the fastest one of this process */
  readonly driver?: Driver | undefined;
}

/** A complete backup. `checked` is missing if index and documents were not compared. */
export interface Backup extends Contents {
  readonly file: string;
  readonly checked: Checked | undefined;
}

const PIECE_BYTES = 1_048_576;
/** What is needed beyond the contents, in bytes: names, the footer, the blocks of the disk. */
const SPARE_BYTES = 1_048_576;

/**
 * Copies a peer, which may run, into one file. The file holds everything that the peer answered for
 * before this began: its database at one moment, and after it each shared object, which is whole.
 *
 * The copy is written beside the file, synced, read back and checked, and then renamed. After a
 * kill, its unfinished file (`FILE.partial`) remains until the next backup.
 *
 * @throws BackupError, EmbeddedError; the reason of `signal`
 */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { check, clock, driver, signal } = options;
  const dir = resolve(options.dir);
  const file = resolve(options.file);
  await requireTarget(file, dir, options.force);
  const source = await openSource(dir, clock, driver);
  const partial = `${file}.partial`;
  let isDone = false;
  try {
    const shares = ShareStore.ofPeer(dir);
    await requireSpace(dirname(file), source.size + (await sizeOf(shares)) + SPARE_BYTES);
    await rm(partial, { force: true });
    const handle = await open(partial, 'wx', 0o600).catch((error: unknown) => {
      throw unwritable(file, error);
    });
    try {
      await write(handle, source, shares, signal);
    } finally {
      await handle.close();
    }
    const backup = await verified(partial, { check, driver });
    signal.throwIfAborted();
    if (!options.force) await requireTarget(file, dir, false);
    await rename(partial, file);
    isDone = true;
    await syncDirectory(dirname(file));
    return { ...backup, file };
  } catch (error) {
    if (['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EACCES', 'EIO'].includes(systemCode(error) ?? ''))
      throw unwritable(file, error);
    throw error;
  } finally {
    if (!isDone) {
      await source.abandon();
      await rm(partial, { force: true });
    }
  }
}

/** @throws BackupError BACKUP_EXISTS, BACKUP_INSIDE, BACKUP_UNWRITABLE */
async function requireTarget(file: string, dir: string, force: boolean): Promise<void> {
  const found = await lstat(file).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw unwritable(file, error);
  });
  if (found?.isDirectory()) throw unwritable(file, new Error('it is a directory'));
  if (found && !force) throw new BackupError('BACKUP_EXISTS', { file });
  const parent = await realpath(dirname(file)).catch((error: unknown) => {
    throw unwritable(file, error);
  });
  const peer = await realpath(dir).catch(() => dir);
  if (isWithin(join(parent, basename(file)), peer))
    throw new BackupError('BACKUP_INSIDE', { file, dir });
}

function unwritable(file: string, cause: unknown): BackupError {
  const why = systemCode(cause) ?? messageOf(cause);
  return new BackupError('BACKUP_UNWRITABLE', { file, why }, { cause });
}

/** @throws BackupError BACKUP_NO_SPACE */
export async function requireSpace(dir: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir);
  const free = bavail * bsize;
  if (free < bytes)
    throw new BackupError('BACKUP_NO_SPACE', {
      dir,
      needed: formatBytes(bytes),
      free: formatBytes(free),
    });
}

async function sizeOf(shares: ShareStore): Promise<number> {
  let size = 0;
  for await (const { found } of shares.walk()) size += found.size;
  return size;
}

async function write(
  handle: FileHandle,
  source: BackupSource,
  shares: ShareStore,
  signal: AbortSignal,
): Promise<void> {
  const writer = new BackupWriter(handle);
  await writer.database(piecesOfDatabase(source, signal));
  await source.release();
  for await (const { segments } of shares.walk()) {
    signal.throwIfAborted();
    await writeShare(writer, shares, segments, signal);
  }
  await writer.end();
  await handle.sync();
}

async function* piecesOfDatabase(
  source: BackupSource,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  const file = await open(source.path, 'r');
  try {
    for (let at = 0; at < source.size; ) {
      signal.throwIfAborted();
      await source.stay();
      const length = Math.min(PIECE_BYTES, source.size - at);
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
      if (bytesRead === 0)
        throw new BackupError('BACKUP_INTERRUPTED', { why: 'its database became shorter' });
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/**
 * Writes a shared object. An upload replaces an object at once, and the one that is open stays
 * whole. Only a program that writes into the file itself changes it.
 *
 * @throws BackupError BACKUP_SHARE_CHANGES
 */
async function writeShare(
  writer: BackupWriter,
  shares: ShareStore,
  segments: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const path = segments.join('/');
  const failed = (error: unknown): never => {
    const why = systemCode(error) ?? messageOf(error);
    throw new BackupError('BACKUP_SHARE_CHANGES', { path, why }, { cause: error });
  };
  const share = await shares.get(segments).catch(failed);
  // It was removed meanwhile.
  if (share === undefined) return;
  try {
    const { handle, lastModified: modified, size } = share;
    await writer.share({ path, size, modified }, piecesOfShare(share, failed, signal));
    const after = await handle.stat();
    if (after.size !== size || after.mtimeMs !== modified)
      failed(new Error('a program writes to it'));
  } finally {
    await share.handle.close();
  }
}

async function* piecesOfShare(
  { handle, size }: OpenShare,
  failed: (error: unknown) => never,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  for (let at = 0; at < size; ) {
    signal.throwIfAborted();
    const length = Math.min(PIECE_BYTES, size - at);
    const { buffer, bytesRead } = await handle
      .read(Buffer.allocUnsafe(length), 0, length, at)
      .catch(failed);
    if (bytesRead === 0) failed(new Error('it became shorter'));
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/**
 * Reads the backup back: its digest, and whether its index and documents agree.
 *
 * @throws BackupError BACKUP_DAMAGED, BACKUP_DIFFERS
 */
async function verified(
  path: string,
  { check, driver }: Pick<BackupOptions, 'check' | 'driver'>,
): Promise<Omit<Backup, 'file'>> {
  const handle = await openBackup(path);
  const contents = await readBackup(handle, path).finally(() => handle.close());
  if (!check) return { ...contents, checked: undefined };
  const checked = await checkCopy(path, path, driver);
  if (checked.found > 0)
    throw new BackupError('BACKUP_DIFFERS', { why: firstDifferences(checked) });
  return { ...contents, checked };
}
