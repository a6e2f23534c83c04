import { createHash, randomBytes } from 'node:crypto';
import { constants, renameSync, type Stats, unlinkSync } from 'node:fs';
import {
  copyFile,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  opendir,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { isWithin } from '../lib/text.js';
import { MirrorError, writeError } from './errors.js';

/** A file below a root directory, which no write leaves. */
export interface Target {
  /** The directory; created when it does not exist. */
  readonly root: string;
  /** Of the file, relative, with "/" between its parts. */
  readonly path: string;
}

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

export interface ReplaceOptions {
  /** What is known of the file that stands there: with the same stamp and the same hash it is not even read. */
  readonly before?: { readonly sha256?: string; readonly file?: FileStamp } | undefined;
  /** Earlier versions that stay beside the file, as NAME.1 (the latest) and so on; 0 unless given. */
  readonly versions?: number;
  /** Most bytes of content; unlimited unless given. */
  readonly maxBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the sha256 of the new content when that is complete, also where it is what stands there. */
  readonly onWritten?: ((sha256: string) => Promise<void>) | undefined;
  /**
   * Called when the new content is complete, on disk and not what stands there, in the same turn as the rename or removal: what it
   * throws leaves the old file as it is.
   */
  readonly lastLook?: (() => void) | undefined;
}

const TEMPORARY = /^\.peersync-[\da-f]{16}\.tmp$/;

/**
 * Replaces a file whole: a reader sees the old content or the new, never a part and never nothing, also when the process is
 * killed or the power goes. The content is streamed to a temporary file beside it. Content that is what stands there changes
 * nothing, so that mtime tells when it changed. A new file is 0644 less the umask, an existing one keeps its mode and, where that is
 * allowed, its owner.
 *
 * @throws MirrorError MIRROR_OUTSIDE, MIRROR_BLOCKED, MIRROR_FULL, MIRROR_UNWRITABLE, MIRROR_TOO_LARGE; and whatever
 *   `content`, `onWritten`, `lastLook` or the signal throws. The old file is as it was.
 */
export async function replaceWhole(
  target: Target,
  content: AsyncIterable<string | Uint8Array>,
  options: ReplaceOptions = {},
): Promise<WholeFile> {
  const path = await reach(target);
  const onDisk = diskErrorsOf(target);
  const temporary = join(dirname(path), temporaryName());
  // What only some may read is not shown to all while it is on its way. We write it, also where the file may only be read.
  const mode = (await onDisk(regularFile(path)))?.mode ?? 0o644;
  const handle = await onDisk(open(temporary, 'wx', (mode & 0o777) | 0o600));
  let isMoved = false;
  try {
    const written = await writeAll(handle, content, target, options);
    await options.onWritten?.(written.sha256);
    const old = await onDisk(regularFile(path));
    if (old !== undefined && (await onDisk(isSame(path, old, written, options.before)))) {
      return { changed: false, path, ...written, file: stampOf(old) };
    }
    await onDisk(finish(handle, old));
    const file = stampOf(await onDisk(handle.stat()));
    if (old !== undefined) await onDisk(keepVersion(path, options.versions ?? 0));
    options.signal?.throwIfAborted();
    options.lastLook?.();
    await onDisk((async () => renameSync(temporary, path))());
    isMoved = true;
    await onDisk(syncDirectory(dirname(path)));
    return { changed: true, path, ...written, file };
  } finally {
    await handle.close();
    if (!isMoved) await unlink(temporary).catch(() => undefined);
  }
}

/**
 * Removes a file, after a version of it was kept where versions are asked for.
 *
 * @returns whether there was one
 * @throws MirrorError as `replaceWhole`
 */
export async function removeWhole(
  target: Target,
  options: Pick<ReplaceOptions, 'versions' | 'lastLook'> = {},
): Promise<boolean> {
  const path = await reach(target);
  const onDisk = diskErrorsOf(target);
  if ((await onDisk(regularFile(path))) === undefined) return false;
  await onDisk(keepVersion(path, options.versions ?? 0));
  options.lastLook?.();
  await onDisk((async () => unlinkSync(path))());
  await onDisk(syncDirectory(dirname(path)));
  return true;
}

/** The stamp of a file, or undefined where there is no regular file; links are not followed. */
export async function stampAt(path: string): Promise<FileStamp | undefined> {
  const stats = await regularFile(path);
  return stats && stampOf(stats);
}

/** The stamp of the file that stands at a target; undefined also where nobody can look. */
export async function stampOfTarget({ root, path }: Target): Promise<FileStamp | undefined> {
  return await stampAt(join(root, path)).catch(() => undefined);
}

export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino;
}

export function stampOf({ size, mtimeMs, ino }: FileStamp): FileStamp {
  return { size, mtimeMs, ino };
}

/** Undefined where nothing stands there. */
export async function statsAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function regularFile(path: string): Promise<Stats | undefined> {
  const stats = await statsAt(path);
  return stats?.isFile() ? stats : undefined;
}

async function writeAll(
  handle: FileHandle,
  content: AsyncIterable<string | Uint8Array>,
  target: Target,
  { maxBytes = Number.POSITIVE_INFINITY, signal }: ReplaceOptions,
): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const onDisk = diskErrorsOf(target);
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of content) {
    signal?.throwIfAborted();
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new MirrorError('MIRROR_TOO_LARGE', join(target.root, target.path), `${maxBytes} bytes`);
    }
    hash.update(chunk);
    await onDisk(handle.writeFile(chunk));
  }
  return { sha256: hash.digest('hex'), bytes };
}

async function isSame(
  path: string,
  old: Stats,
  written: { readonly sha256: string; readonly bytes: number },
  before: ReplaceOptions['before'],
): Promise<boolean> {
  if (old.size !== written.bytes) return false;
  if (before?.file !== undefined && before.sha256 !== undefined && sameStamp(before.file, stampOf(old)))
    return before.sha256 === written.sha256;
  return (await hashOf(path)) === written.sha256;
}

/** The sha256 of a file's content in lower-case hex; a link is not followed. */
export async function hashOf(path: string): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const hash = createHash('sha256');
    for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk);
    return hash.digest('hex');
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

/**
 * Keeps what stands at `path` as NAME.1; what was NAME.1 becomes NAME.2 and so on, at most `count` of them. The file itself is
 * never moved, so that it is there at every instant; after a crash at any step the next call goes on from there.
 */
async function keepVersion(path: string, count: number): Promise<void> {
  if (count === 0) return;
  const [current, latest] = [await statsAt(path), await statsAt(`${path}.1`)];
  // A process that was killed before it replaced the file had kept it already.
  if (current === undefined || current.ino === latest?.ino) return;
  let free = 1;
  while (free < count && (await statsAt(`${path}.${free}`)) !== undefined) free += 1;
  for (let at = free; at > 1; at -= 1) await rename(`${path}.${at - 1}`, `${path}.${at}`);
  const temporary = join(dirname(path), temporaryName());
  try {
    await linkOrCopy(path, temporary);
    await rename(temporary, `${path}.1`);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** A second name for what stands at `path`, or a copy where the file system has no such names. */
async function linkOrCopy(path: string, to: string): Promise<void> {
  try {
    await link(path, to);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(systemCode(error) ?? ''))
      throw error;
    await copyFile(path, to, constants.COPYFILE_EXCL);
    const handle = await open(to, 'r');
    await handle.sync().finally(() => handle.close());
  }
}

/** Awaits what touches the disk; its errors become words about the file. */
function diskErrorsOf({ root, path }: Target): <T>(work: Promise<T>) => Promise<T> {
  return (work) =>
    work.catch((error: unknown) => {
      throw writeError(error, join(root, path));
    });
}

/**
 * The real path of a target, with the directories above it made (0755). A link within the root is followed as long as it
 * stays within.
 *
 * @throws MirrorError MIRROR_OUTSIDE when a link, or the path itself, leads out of the root; MIRROR_BLOCKED, MIRROR_FULL or
 *   MIRROR_UNWRITABLE when the directories cannot be made
 */
export async function reach({ root, path }: Target): Promise<string> {
  const parts = path.split('/');
  const shown = join(root, path);
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new MirrorError('MIRROR_OUTSIDE', JSON.stringify(path), root);
  }
  const name = parts.pop() ?? '';
  try {
    await mkdir(root, { recursive: true, mode: 0o755 });
    const real = await realpath(root);
    let directory = real;
    for (const part of parts) directory = await enter(join(directory, part), real, { root, path });
    return join(directory, name);
  } catch (error) {
    throw writeError(error, shown);
  }
}

/** @returns the real path of a directory, made if there is none */
async function enter(directory: string, realRoot: string, { root, path }: Target): Promise<string> {
  const shown = join(root, path);
  await mkdir(directory, { mode: 0o755 }).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  const real = await realpath(directory).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ELOOP') throw error;
    throw new MirrorError('MIRROR_BLOCKED', shown, `a link that leads nowhere (${directory})`);
  });
  if (!isWithin(real, realRoot)) throw new MirrorError('MIRROR_OUTSIDE', shown, root);
  if ((await stat(real)).isDirectory()) return real;
  throw new MirrorError('MIRROR_BLOCKED', shown, `something that is no directory (${directory})`);
}

/** A name for a file that is not finished; names of the peer never become one like it. */
export function temporaryName(): string {
  return `.peersync-${randomBytes(8).toString('hex')}.tmp`;
}

/**
 * Removes what a killed process left unfinished in a directory: files with names of ours, and nothing else. Links are not
 * followed; what cannot be read or removed is passed over. To be called while nothing is being written there.
 *
 * @param target.path the directory, below the root; nothing is done where a link leads out of the root
 * @param depth how far: the directory alone, or all below it as well
 * @returns how many were removed
 */
export async function sweep({ root, path }: Target, depth: 'alone' | 'below'): Promise<number> {
  const directory = await realpath(join(root, path)).catch(() => '');
  const realRoot = await realpath(root).catch(() => undefined);
  const waiting = realRoot !== undefined && isWithin(directory, realRoot) ? [directory] : [];
  let removed = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    try {
      for await (const entry of await opendir(next)) {
        const path = join(next, entry.name);
        if (entry.isDirectory() && depth === 'below') waiting.push(path);
        if (!entry.isFile() || !TEMPORARY.test(entry.name)) continue;
        await unlink(path);
        removed += 1;
      }
    } catch (error) {
      // Only system errors have a code: a bug of ours is not passed over.
      if (systemCode(error) === undefined) throw error;
    }
  }
  return removed;
}
