import { randomBytes } from 'node:crypto';
import { type FileHandle, lstat, open, realpath, rename, rm, statfs } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { isWithin } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { checkCopy, firstDifferences, requireDatabase } from './backup-check.js';
import { BackupError, peerUnreadable, reason, unwritable } from './backup-errors.js';
import { BackupWriter, type Contents, readBackup } from './backup-file.js';
import { type BackupSource, openSource } from './backup-source.js';
import type { Checked } from './check.js';
import type { Driver } from './driver.js';
import { SHARES } from './finish-restore.js';
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
/** Space beyond the contents, in bytes, for names, the footer and the blocks of the disk. */
const SPARE_BYTES = 1_048_576;

/**
 * Copies a peer, which may run, into one file. The file holds everything that the peer answered for
 * before this began: its database at one moment, and after it each shared object, which is whole.
 *
 * The copy is written beside the file, as `FILE.<random>.partial`, so that two backups at once do
 * not meet. It is synced, read back and checked, and then renamed. It remains after a kill.
 *
 * @throws BackupError, EmbeddedError; the reason of `signal`
 */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { clock, driver, force, signal } = options;
  const dir = resolve(options.dir);
  const file = resolve(options.file);
  const failed = (error: unknown): never => {
    throw unwritable(file, error);
  };
  await requireTarget(file, dir, force);
  const shares = new PeerShares(dir, signal);
  // Counted before the peer is asked to wait, because that may take long.
  const sharesBytes = await shares.size();
  const source = await openSource(dir, clock, driver);
  const partial = `${file}.${randomBytes(4).toString('hex')}.partial`;
  let handle: FileHandle | undefined;
  let isDone = false;
  try {
    const needed = source.size + sharesBytes + SPARE_BYTES;
    await requireSpace(dirname(file), needed).catch(failed);
    handle = await open(partial, 'wx+', 0o600).catch(failed);
    const writer = new BackupWriter(handle, file);
    await writer.database(piecesOfDatabase(source, signal));
    await source.release();
    await shares.write(writer);
    await writer.end();
    await handle.sync().catch(failed);
    const backup = await verified(handle, partial, options);
    signal.throwIfAborted();
    await requireTarget(file, dir, force);
    await publish(handle, partial, file).catch(failed);
    isDone = true;
    return { ...backup, file };
  } finally {
    await handle?.close();
    if (!isDone) {
      await source.abandon();
      if (handle !== undefined) await rm(partial, { force: true }).catch(failed);
    }
  }
}

/** Gives the copy its name, if it is still the file that was written and checked. */
async function publish(handle: FileHandle, partial: string, file: string): Promise<void> {
  const [ours, found] = [await handle.stat(), await lstat(partial)];
  if (ours.dev !== found.dev || ours.ino !== found.ino)
    throw new Error(`another program replaced ${partial}`);
  await rename(partial, file);
  await syncDirectory(dirname(file));
}

/** @throws BackupError BACKUP_EXISTS, BACKUP_INSIDE, BACKUP_UNWRITABLE */
async function requireTarget(file: string, dir: string, force: boolean): Promise<void> {
  const found = await lstat(file).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw unwritable(file, error);
  });
  if (found && !found.isFile()) throw unwritable(file, new Error('it is no regular file'));
  if (found && !force) throw new BackupError('BACKUP_EXISTS', { file });
  const parent = await realpath(dirname(file)).catch((error: unknown) => {
    throw unwritable(file, error);
  });
  const peer = await realpath(dir).catch(() => dir);
  if (isWithin(join(parent, basename(file)), peer))
    throw new BackupError('BACKUP_INSIDE', { file, dir });
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

async function* piecesOfDatabase(
  source: BackupSource,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  const failed = (error: unknown): never => {
    throw peerUnreadable(source.path, error);
  };
  const file = await open(source.path, 'r').catch(failed);
  try {
    for (let at = 0; at < source.size; ) {
      signal.throwIfAborted();
      await source.stay();
      const length = Math.min(PIECE_BYTES, source.size - at);
      const { buffer, bytesRead } = await file
        .read(Buffer.allocUnsafe(length), 0, length, at)
        .catch(failed);
      if (bytesRead === 0)
        throw new BackupError('BACKUP_INTERRUPTED', { why: 'its database became shorter' });
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** The shared objects of a peer that is saved. */
class PeerShares {
  readonly #shares: ShareStore;
  readonly #path: string;
  readonly #signal: AbortSignal;

  constructor(dir: string, signal: AbortSignal) {
    this.#shares = ShareStore.ofPeer(dir);
    this.#path = join(dir, SHARES);
    this.#signal = signal;
  }

  /** @returns the size of all, in bytes */
  async size(): Promise<number> {
    let size = 0;
    await this.#forEach(async (_, found) => {
      size += found.size;
    });
    return size;
  }

  async write(writer: BackupWriter): Promise<void> {
    await this.#forEach((segments) => this.#writeOne(writer, segments));
  }

  /** @throws BackupError BACKUP_PEER_UNREADABLE */
  async #forEach(
    use: (segments: readonly string[], found: { readonly size: number }) => Promise<void>,
  ): Promise<void> {
    try {
      for await (const { found, segments } of this.#shares.walk()) {
        this.#signal.throwIfAborted();
        await use(segments, found);
      }
    } catch (error) {
      if (this.#signal.aborted) throw error;
      throw peerUnreadable(this.#path, error);
    }
  }

  /**
   * Writes a shared object. An upload replaces an object at once, and the one that is open stays
   * whole. Only a program that writes into the file itself changes it.
   *
   * @throws BackupError BACKUP_SHARE_CHANGES, BACKUP_PEER_UNREADABLE
   */
  async #writeOne(writer: BackupWriter, segments: readonly string[]): Promise<void> {
    const path = segments.join('/');
    const failed = (error: unknown): never => {
      if (systemCode(error) !== undefined) throw peerUnreadable(join(this.#path, path), error);
      throw new BackupError('BACKUP_SHARE_CHANGES', { path, why: reason(error) }, { cause: error });
    };
    const share = await this.#shares.get(segments).catch(failed);
    // It was removed meanwhile.
    if (share === undefined) return;
    try {
      const { handle, lastModified: modified, size } = share;
      await writer.share({ path, size, modified }, piecesOfShare(share, failed, this.#signal));
      const after = await handle.stat().catch(failed);
      if (after.size !== size || after.mtimeMs !== modified)
        failed(new Error('a program writes to it'));
    } finally {
      await share.handle.close();
    }
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
 * Reads the copy back: its digest, and whether its index and documents agree.
 *
 * @throws BackupError BACKUP_DAMAGED, BACKUP_DIFFERS
 */
async function verified(
  handle: FileHandle,
  path: string,
  { check, driver, signal }: BackupOptions,
): Promise<Omit<Backup, 'file'>> {
  const contents = await readBackup(handle, path, signal);
  const options = { file: path, driver, signal };
  if (!check) {
    await requireDatabase(path, options);
    return { ...contents, checked: undefined };
  }
  const checked = await checkCopy(path, options);
  if (checked.found > 0)
    throw new BackupError('BACKUP_DIFFERS', { why: firstDifferences(checked) });
  return { ...contents, checked };
}
