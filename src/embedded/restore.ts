import { type FileHandle, mkdir, open, readdir, rename, rm, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { requireSpace } from './backup.js';
import { checkCopy, firstDifferences, requireDatabase } from './backup-check.js';
import { BackupError, reason } from './backup-errors.js';
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
  TRIAL,
  tryRename,
} from './finish-restore.js';

const SPARE_BYTES = 1_048_576;

export interface RestoreOptions {
  readonly dir: string;
  readonly file: string;
  /** Whether the files before are deleted, with those that an earlier restore kept. */
  readonly discard: boolean;
  /** Whether index and documents are compared. Digest, format and schema always are. */
  readonly check: boolean;
  readonly signal: AbortSignal;
  readonly driver?: Driver | undefined;
}

export interface Restored {
  readonly shares: number;
  /** Missing if index and documents were not compared. */
  readonly checked: Checked | undefined;
  /** Whether something was there before. */
  readonly isReplaced: boolean;
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
  const [dir, path] = [resolve(options.dir), resolve(options.file)];
  const file = await openBackup(path);
  try {
    const lock = await lockDirectory(dir);
    try {
      return await restoreLocked({ ...options, dir, file: path }, file);
    } finally {
      await lock.release();
    }
  } finally {
    await file.close();
  }
}

async function restoreLocked(options: RestoreOptions, file: FileHandle): Promise<Restored> {
  const { dir, discard, signal } = options;
  const [kept, prepared] = [join(dir, BEFORE), join(dir, PREPARED)];
  const failed = (error: unknown): never => {
    if (error instanceof BackupError || error instanceof EmbeddedError || signal.aborted)
      throw error;
    throw directoryUnwritable(dir, error);
  };
  await finishRestore(dir).catch(failed);
  let found: Omit<Restored, 'kept'>;
  try {
    found = await prepare(options, file);
    signal.throwIfAborted();
    await rename(prepared, join(dir, DECIDED));
  } catch (error) {
    await rm(prepared, { recursive: true, force: true }).catch(failed);
    return failed(error);
  }
  try {
    await finishRestore(dir);
    return { ...found, kept: !discard && found.isReplaced ? kept : undefined };
  } catch (cause) {
    throw new BackupError('RESTORE_UNFINISHED', { dir, why: reason(cause) }, { cause });
  }
}

/** Unpacks the backup, and checks all that has to be right. Nothing of the peer changes. */
async function prepare(options: RestoreOptions, file: FileHandle): Promise<Omit<Restored, 'kept'>> {
  const { check, dir, discard, file: path, signal } = options;
  const [kept, prepared] = [join(dir, BEFORE), join(dir, PREPARED)];
  const isKept = await exists(kept);
  if (!discard && isKept) throw new BackupError('RESTORE_KEPT', { kept });
  const isReplaced =
    (await exists(join(dir, DATABASE))) || (await exists(join(dir, SHARES))) || isKept;
  await requireRenamable(dir);
  await requireSpace(dir, (await file.stat()).size + SPARE_BYTES);
  const sink = new Unpacked(prepared, signal);
  await sink.open();
  const { shares } = await readBackup(file, path, signal, sink).finally(() => sink.close());
  const driver = options.driver ?? (await fastestDriver());
  const copy = join(prepared, DATABASE);
  const checkOptions = { file: path, driver, signal };
  const checked = check ? await checkCopy(copy, checkOptions) : undefined;
  if (checked === undefined) await requireDatabase(copy, checkOptions);
  else if (checked.found > 0)
    throw new BackupError('BACKUP_INCONSISTENT', { file: path, why: firstDifferences(checked) });
  const database = new Database(prepared, driver);
  database.renew();
  database.close();
  if (discard) await (await open(join(prepared, DISCARD), 'wx', 0o600)).close();
  await syncTree(prepared);
  return { shares, checked, isReplaced };
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

/** @throws BackupError RESTORE_SHARES_ELSEWHERE if `shares` is a mount */
async function requireRenamable(dir: string): Promise<void> {
  await tryRename(dir).catch((cause: unknown) => {
    const [shares, trial] = [join(dir, SHARES), join(dir, TRIAL)];
    const why = reason(cause);
    throw new BackupError('RESTORE_SHARES_ELSEWHERE', { shares, trial, why }, { cause });
  });
}

/** Syncs all directories. The files are synced already. */
async function syncTree(dir: string): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true });
  for (const entry of entries)
    if (entry.isDirectory()) await syncDirectory(join(entry.parentPath, entry.name));
  await syncDirectory(dir);
}
