import { createHash, type Hash } from 'node:crypto';
import { constants, renameSync, type Stats, unlinkSync } from 'node:fs';
import { type FileHandle, lstat, open, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { MirrorError, writeError } from './errors.js';
import { reach, type Spot } from './root.js';
import { temporaryName } from './temporary.js';
import { keepVersion } from './versions.js';

/** What tells one state of a file from another without reading it. */
export interface FileStamp {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

export interface WholeFile {
  /** Whether the file was replaced; its content is what was asked for in any case. */
  readonly changed: boolean;
  /** Real path. */
  readonly path: string;
  /** Of the content, lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  /** Of the file as it stands now. */
  readonly file: FileStamp;
}

/** Content that may break off, and go on later where it did. */
export interface Begun {
  /** Of the temporary file beside the target; from `temporaryName`. */
  readonly name: string;
  /** So many bytes of it hold, from an earlier call; 0 for a new one. */
  readonly bytes: number;
  /** Called when so many bytes are safe on disk: now and then, and at last when the content breaks off. */
  readonly safe: (bytes: number) => Promise<void>;
}

export interface ReplaceOptions {
  /** What is known of the file that stands there: with the same stamp and the same hash it is not even read. */
  readonly before?: { readonly sha256: string; readonly file: FileStamp } | undefined;
  /** Earlier versions that stay beside the file, as NAME.1 (the latest) and so on; 0 unless given. */
  readonly versions?: number;
  /** Most bytes of content; unlimited unless given. */
  readonly maxBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called when the new content is complete, on disk and not what stands there, in the same turn as the rename or removal: what it
   * throws leaves the old file as it is.
   */
  readonly lastLook?: (() => void) | undefined;
  /** Where the content goes on from an earlier call, or may go on in a later one; the hash is over all of it. */
  readonly begun?: Begun | undefined;
}

/** Bytes that may have to be asked for again after a crash. */
const UNSAFE_BYTES = 4 * 2 ** 20;

/**
 * Replaces a file whole: a reader sees the old content or the new, never a part and never nothing, also when the process is
 * killed or the power goes. The content is streamed to a temporary file beside it, which stays only where `begun` asks for that
 * and the content breaks off. Content that is what
 * stands there changes nothing, so that mtime tells when it changed. A new file is 0644 less the umask, an existing one
 * keeps its mode and, where that is allowed, its owner.
 *
 * @throws MirrorError MIRROR_OUTSIDE, MIRROR_BLOCKED, MIRROR_FULL, MIRROR_UNWRITABLE, MIRROR_TOO_LARGE; and whatever
 *   `content`, `lastLook` or the signal throws. The old file is as it was.
 */
export async function replaceWhole(
  spot: Spot,
  content: AsyncIterable<string | Uint8Array>,
  options: ReplaceOptions = {},
): Promise<WholeFile> {
  const path = await reach(spot);
  const shown = join(spot.root, spot.path);
  const { begun } = options;
  const temporary = join(dirname(path), begun?.name ?? temporaryName());
  const flags = begun !== undefined && begun.bytes > 0 ? constants.O_RDWR | constants.O_NOFOLLOW : 'wx';
  // What only some may read is not shown to all while it is on its way. We write it, also where the file may only be read.
  const mode = (await onDisk(shown, () => regularFile(path)))?.mode ?? 0o644;
  const handle = await onDisk(shown, () => open(temporary, flags, (mode & 0o777) | 0o600));
  let stays = false;
  try {
    const written = await writeAll(handle, content, shown, options).catch((error: unknown) => {
      stays = begun !== undefined && !(error instanceof MirrorError);
      throw error;
    });
    const old = await onDisk(shown, () => regularFile(path));
    if (old !== undefined && (await onDisk(shown, () => isSame(path, old, written, options.before)))) {
      return { changed: false, path, ...written, file: stampOf(old) };
    }
    await onDisk(shown, () => finish(handle, old));
    const file = stampOf(await onDisk(shown, () => handle.stat()));
    if (old !== undefined) await onDisk(shown, () => keepVersion(path, options.versions ?? 0));
    options.signal?.throwIfAborted();
    options.lastLook?.();
    await onDisk(shown, async () => renameSync(temporary, path));
    stays = true;
    await onDisk(shown, () => syncDirectory(dirname(path)));
    return { changed: true, path, ...written, file };
  } finally {
    await handle.close();
    if (!stays) await unlink(temporary).catch(() => undefined);
  }
}

/**
 * Removes a file, after a version of it was kept where versions are asked for.
 *
 * @returns whether there was one
 * @throws MirrorError as `replaceWhole`
 */
export async function removeWhole(
  spot: Spot,
  options: Pick<ReplaceOptions, 'versions' | 'lastLook'> = {},
): Promise<boolean> {
  const path = await reach(spot);
  const shown = join(spot.root, spot.path);
  if ((await onDisk(shown, () => regularFile(path))) === undefined) return false;
  await onDisk(shown, () => keepVersion(path, options.versions ?? 0));
  options.lastLook?.();
  await onDisk(shown, async () => unlinkSync(path));
  await onDisk(shown, () => syncDirectory(dirname(path)));
  return true;
}

/** The stamp of a file, or undefined where there is no regular file; links are not followed. */
export async function stampAt(path: string): Promise<FileStamp | undefined> {
  const stats = await regularFile(path);
  return stats && stampOf(stats);
}

export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino;
}

function stampOf({ size, mtimeMs, ino }: Stats): FileStamp {
  return { size, mtimeMs, ino };
}

async function regularFile(path: string): Promise<Stats | undefined> {
  try {
    const stats = await lstat(path);
    return stats.isFile() ? stats : undefined;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function writeAll(
  handle: FileHandle,
  content: AsyncIterable<string | Uint8Array>,
  shown: string,
  { maxBytes = Number.POSITIVE_INFINITY, signal, begun }: ReplaceOptions,
): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const hash = createHash('sha256');
  let bytes = begun?.bytes ?? 0;
  if (bytes > 0) await onDisk(shown, () => takeUp(handle, bytes, hash));
  let safe = bytes;
  const keep = async (): Promise<void> => {
    if (begun === undefined || safe === bytes) return;
    await onDisk(shown, () => handle.datasync());
    await begun.safe(bytes);
    safe = bytes;
  };
  try {
    for await (const piece of content) {
      signal?.throwIfAborted();
      const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
      if (bytes + chunk.length > maxBytes) {
        throw new MirrorError('MIRROR_TOO_LARGE', { what: shown, detail: `${maxBytes} bytes` });
      }
      hash.update(chunk);
      await onDisk(shown, () => handle.writeFile(chunk));
      bytes += chunk.length;
      if (bytes - safe >= UNSAFE_BYTES) await keep();
    }
  } catch (error) {
    if (!(error instanceof MirrorError)) await keep();
    throw error;
  }
  return { sha256: hash.digest('hex'), bytes };
}

/** Reads what holds of a file that goes on, and cuts off the rest. */
async function takeUp(handle: FileHandle, bytes: number, hash: Hash): Promise<void> {
  const buffer = Buffer.allocUnsafe(2 ** 18);
  for (let left = bytes; left > 0; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(left, buffer.length));
    if (bytesRead === 0) throw new Error('it became shorter');
    hash.update(buffer.subarray(0, bytesRead));
    left -= bytesRead;
  }
  await handle.truncate(bytes);
}

async function isSame(
  path: string,
  old: Stats,
  written: { readonly sha256: string; readonly bytes: number },
  before: ReplaceOptions['before'],
): Promise<boolean> {
  if (old.size !== written.bytes) return false;
  if (before !== undefined && sameStamp(before.file, stampOf(old))) return before.sha256 === written.sha256;
  return (await hashOf(path)) === written.sha256;
}

/** The sha256 of a file's content in lower-case hex; a link is not followed. */
export async function hashOf(path: string): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(2 ** 18);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length);
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}

async function finish(handle: FileHandle, old: Stats | undefined): Promise<void> {
  if (old !== undefined) {
    // Only root may give files away, and only members may choose a group: a file of ours is as good.
    await handle.chown(old.uid, old.gid).catch(() => undefined);
    await handle.chmod(old.mode & 0o777);
  }
  await handle.sync();
}

/** Runs what touches the disk; its errors become words about the file. */
async function onDisk<T>(shown: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw writeError(error, shown);
  }
}
