import { lstat, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { requireSpace } from './backup.js';
import { checkCopy, firstDifferences } from './backup-check.js';
import { BackupError } from './backup-errors.js';
import { openBackup, readBackup, type ShareHead, type Sink } from './backup-file.js';
import type { Checked } from './check.js';
import { Database } from './database.js';
import { lockDirectory } from './directory-lock.js';
import { type Driver, fastestDriver } from './driver.js';
import { directoryUnwritable, EmbeddedError } from './errors.js';
import {
  BEFORE,
  DATABASE,
  DECIDED,
  DISCARD,
  exists,
  finishRestore,
  PREPARED,
  SHARES,
  undefinedIfMissing,
} from './finish-restore.js';

const SPARE_BYTES = 1_048_576;

export interface RestoreOptions {
  readonly dir: string;
  readonly file: string;
  /** Whether the files before are deleted, with those that an earlier restore kept. */
  readonly discard: boolean;
  readonly signal: AbortSignal;
  readonly driver?: Driver | undefined;
}

export interface Restored extends Checked {
  readonly shares: number;
  /** The directory with the files before; undefined if there were none, or they were deleted. */
  readonly kept: string | undefined;
}

/**
 * Replaces the database and the shared objects of a stopped peer by those of a backup. Its password
 * stays.
 *
 * @throws BackupError, EmbeddedError; the reason of `signal` before the restore is decided
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { discard, signal } = options;
  const [dir, path] = [resolve(options.dir), resolve(options.file)];
  const driver = options.driver ?? (await fastestDriver());
  const file = await openBackup(path);
  try {
    const lock = await lockDirectory(dir);
    try {
      await finishRestore(dir);
      const kept = join(dir, BEFORE);
      if (!discard && (await exists(kept))) throw new BackupError('RESTORE_KEPT', { kept });
      await requireOneFileSystem(dir);
      await requireSpace(dir, (await file.stat()).size + SPARE_BYTES);
      const prepared = join(dir, PREPARED);
      const sink = new Unpacked(prepared, signal);
      await sink.open();
      const { shares } = await readBackup(file, path, sink).finally(() => sink.close());
      const checked = await checkCopy(join(prepared, DATABASE), path, driver);
      if (checked.found > 0)
        throw new BackupError('BACKUP_DAMAGED', { file: path, why: firstDifferences(checked) });
      const database = new Database(prepared, driver);
      database.renew();
      database.close();
      if (discard) await (await open(join(prepared, DISCARD), 'wx', 0o600)).close();
      await syncTree(prepared);
      signal.throwIfAborted();
      await rename(prepared, join(dir, DECIDED));
      await finishRestore(dir);
      return { ...checked, shares, kept: (await exists(kept)) ? kept : undefined };
    } catch (error) {
      // What is decided stays: the next start completes it.
      await rm(join(dir, PREPARED), { recursive: true, force: true });
      if (error instanceof BackupError || error instanceof EmbeddedError || signal.aborted)
        throw error;
      throw directoryUnwritable(dir, error);
    } finally {
      await lock.release();
    }
  } finally {
    await file.close();
  }
}

/** Writes the sections of a backup into a new directory. */
class Unpacked implements Sink {
  readonly #dir: string;
  readonly #signal: AbortSignal;
  #file: Awaited<ReturnType<typeof open>> | undefined;
  #path = '';
  #modified: number | undefined;

  constructor(dir: string, signal: AbortSignal) {
    this.#dir = dir;
    this.#signal = signal;
  }

  async open(): Promise<void> {
    await mkdir(join(this.#dir, SHARES), { recursive: true, mode: 0o700 });
  }

  async begin(section: { readonly size: number } | ShareHead): Promise<void> {
    const isShare = 'path' in section;
    this.#path = isShare ? join(this.#dir, SHARES, section.path) : join(this.#dir, DATABASE);
    this.#modified = isShare ? section.modified : undefined;
    if (isShare) await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
    this.#file = await open(this.#path, 'wx', 0o600);
  }

  async write(piece: Buffer): Promise<void> {
    this.#signal.throwIfAborted();
    await this.#file?.writeFile(piece);
  }

  async end(): Promise<void> {
    await this.#file?.sync();
    await this.close();
    if (this.#modified !== undefined)
      await utimes(this.#path, this.#modified / 1_000, this.#modified / 1_000);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}

/** A shared folder on a mount cannot be renamed. */
async function requireOneFileSystem(dir: string): Promise<void> {
  const shares = join(dir, SHARES);
  const found = await lstat(shares).catch(undefinedIfMissing);
  if (found && found.dev !== (await stat(dir)).dev)
    throw new BackupError('RESTORE_SHARES_ELSEWHERE', { shares });
}

/** Syncs all directories. The files are synced already. */
async function syncTree(dir: string): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true });
  for (const entry of entries)
    if (entry.isDirectory()) await syncDirectory(join(entry.parentPath, entry.name));
  await syncDirectory(dir);
}
