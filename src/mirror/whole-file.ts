import { createHash } from 'node:crypto';
import { constants, createReadStream, lstatSync, type Stats, unlinkSync } from 'node:fs';
import { copyFile, type FileHandle, link, lstat, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { MirrorError, onDisk } from './errors.js';
import { type HeldPath, type Target, withHeldDirectory } from './held-directory.js';
import type { Facts } from './record.js';

/** What tells one state of a file from another without reading it. */
export interface FileStamp {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

/**
 * Somebody is writing the file, or wrote it just before it was to be replaced: it is as they left
 * it.
 */
export class FileChanged extends Error {}

export interface WrittenFile {
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

/** A regular file that is about to be replaced, or removed. */
export interface ExistingFile {
  /** As `Place.at`: good for as long as the work at the place goes on. */
  readonly path: string;
  readonly stamp: FileStamp;
}

export interface ReplaceOptions {
  /**
   * What is known of the file that stands there: with the same stamp and the same hash it is not
   * even read.
   */
  readonly before?: Pick<Facts, 'sha256' | 'file'> | undefined;
  /**
   * Earlier versions that stay beside the file, as NAME.1 (the latest) and so on; 0 unless given.
   */
  readonly versions?: number;
  /** Most bytes of content; unlimited unless given. */
  readonly maxBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with the sha256 of the new content when that is complete, also where it is what stands
   * there.
   */
  readonly onWritten?: ((sha256: string) => Promise<void>) | undefined;
  /**
   * Called when the new content is complete and not what stands there: with its sha256 (of a
   * removal undefined), and with what stands there. What it throws leaves the old file as it is.
   */
  readonly onReplace?:
    | ((sha256: string | undefined, old: ExistingFile | undefined) => Promise<void>)
    | undefined;
  /**
   * Called with the path (as `Place.at`) when the new content is complete, on disk and not what
   * stands there, in the same turn as the rename or removal: what it throws leaves the old file as
   * it is. Unless given it throws Overtaken where the file changed meanwhile.
   */
  readonly lastLook?: ((path: string) => void) | undefined;
}

/**
 * Replaces a file whole: a reader sees the old content or the new, never a part and never nothing,
 * also when the process is killed or the power goes. The content is streamed to a temporary file
 * beside it. Content that is what stands there changes nothing, so that mtime tells when it
 * changed. A new file is 0644 less the umask, an existing one keeps its mode and, where that is
 * allowed, its owner.
 *
 * @throws MirrorError MIRROR_OUTSIDE, MIRROR_BLOCKED, MIRROR_FULL, MIRROR_UNWRITABLE,
 *   MIRROR_TOO_LARGE; Overtaken; and whatever `content`, `onWritten`, `onReplace`, `lastLook` or
 *   the signal throws. The old file is as it was.
 */
export async function replaceWhole(
  target: Target,
  content: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  options: ReplaceOptions = {},
): Promise<WrittenFile> {
  const shown = join(target.root, target.path);
  return await onDisk(shown, () =>
    withHeldDirectory(target, (place) => replaceAt(place, shown, content, options)),
  );
}

async function replaceAt(
  { path: real, at: path }: HeldPath,
  shown: string,
  content: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  options: ReplaceOptions,
): Promise<WrittenFile> {
  const {
    before,
    versions,
    maxBytes = Number.POSITIVE_INFINITY,
    signal,
    onWritten,
    onReplace,
  } = options;
  const hash = createHash('sha256');
  let bytes = 0;
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const piece of content) {
      signal?.throwIfAborted();
      const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
      bytes += chunk.length;
      if (bytes > maxBytes) throw new MirrorError('MIRROR_TOO_LARGE', shown, `${maxBytes} bytes`);
      hash.update(chunk);
      yield chunk;
    }
  }
  let whole: WrittenFile | undefined;
  let lastLook = options.lastLook;
  const temporary = temporaryOf(path);
  const ready = async (handle: FileHandle): Promise<boolean> => {
    const written = { path: real, sha256: hash.digest('hex'), bytes };
    await onWritten?.(written.sha256);
    const there = await statsAt(path);
    lastLook ??= () => assertUnchanged(path, there);
    const old = there?.isFile() ? there : undefined;
    if (old !== undefined && (await isSame(path, old, written, before))) {
      whole = { ...written, changed: false, file: stampOf(old) };
      return false;
    }
    await onReplace?.(written.sha256, old && { path, stamp: stampOf(old) });
    if (old !== undefined) {
      // Only root may give files away, and only members may choose a group: a file of ours is as
      // good.
      await handle.chown(old.uid, old.gid).catch(() => undefined);
      await handle.chmod(old.mode & 0o777);
      await keepVersion(path, versions);
    }
    whole = { ...written, changed: true, file: stampOf(await handle.stat()) };
    signal?.throwIfAborted();
    if ((await stat(temporary)).ino === whole.file.ino) return true;
    throw new MirrorError('MIRROR_BLOCKED', shown, 'what another process writes');
  };
  // What only some may read is not shown to all while it is on its way. We write it, also where the
  // file may only be read.
  const mode = ((await regularFile(path))?.mode ?? 0o644) & 0o777;
  await writeFileAtomic(path, hashed(), {
    mode: mode | 0o600,
    temporary,
    ready,
    lastLook: () => lastLook?.(path),
  });
  if (whole === undefined) throw new TypeError('A file that was never written');
  return whole;
}

/**
 * Removes a file, after a version of it was kept where versions are asked for.
 *
 * @returns whether there was one
 * @throws MirrorError as `replaceWhole`
 */
export async function removeWhole(
  target: Target,
  options: Pick<ReplaceOptions, 'versions' | 'onReplace' | 'lastLook'> = {},
): Promise<boolean> {
  const shown = join(target.root, target.path);
  return await onDisk(shown, () => withHeldDirectory(target, ({ at }) => removeAt(at, options)));
}

async function removeAt(
  path: string,
  options: Pick<ReplaceOptions, 'versions' | 'onReplace' | 'lastLook'>,
): Promise<boolean> {
  const old = await regularFile(path);
  if (old === undefined) return false;
  const { versions, onReplace, lastLook = () => assertUnchanged(path, old) } = options;
  await onReplace?.(undefined, { path, stamp: stampOf(old) });
  await keepVersion(path, versions);
  lastLook(path);
  unlinkSync(path);
  await syncDirectory(dirname(path));
  return true;
}

/**
 * The stamp of the file that stands at a target; undefined where there is no regular file, or
 * nobody can look.
 */
export async function stampOfTarget({ root, path }: Target): Promise<FileStamp | undefined> {
  const stats = await regularFile(join(root, path)).catch(() => undefined);
  return stats && stampOf(stats);
}

/** Whether it is the same state of a file, or twice none. */
export function sameStamp(a: FileStamp | undefined, b: FileStamp | undefined): boolean {
  return a?.size === b?.size && a?.mtimeMs === b?.mtimeMs && a?.ino === b?.ino;
}

export function stampOf({ size, mtimeMs, ino }: FileStamp): FileStamp {
  return { size, mtimeMs, ino };
}

/**
 * @throws Overtaken when something else stands there than `stamp` says, or when something or
 *   nothing does
 */
export function assertUnchanged(path: string, stamp: FileStamp | undefined): void {
  if (!sameStamp(lstatSync(path, { throwIfNoEntry: false }), stamp)) throw new FileChanged();
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

async function isSame(
  path: string,
  old: Stats,
  written: { readonly sha256: string; readonly bytes: number },
  before: ReplaceOptions['before'],
): Promise<boolean> {
  if (old.size !== written.bytes) return false;
  const known = sameStamp(before?.file, old) ? before?.sha256 : undefined;
  return (known ?? (await hashOf(path))) === written.sha256;
}

/** The sha256 of a file's content in lower-case hex. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

/**
 * Keeps what stands at `path` as NAME.1; what was NAME.1 becomes NAME.2 and so on, at most `count`
 * of them. The file itself is never moved, so that it is there at every instant; after a crash at
 * any step the next call goes on from there.
 */
async function keepVersion(path: string, count = 0): Promise<void> {
  if (count === 0) return;
  const [current, latest] = [await statsAt(path), await statsAt(`${path}.1`)];
  // A process that was killed before it replaced the file had kept it already.
  if (current === undefined || current.ino === latest?.ino) return;
  let free = 1;
  while (free < count && (await statsAt(`${path}.${free}`)) !== undefined) free += 1;
  for (let at = free; at > 1; at -= 1) await rename(`${path}.${at - 1}`, `${path}.${at}`);
  const temporary = temporaryOf(path, 'version');
  await rm(temporary, { force: true });
  // A second name for the file, or a copy where the file system has no such names.
  await link(path, temporary).catch(() => copyFile(path, temporary, constants.COPYFILE_EXCL));
  await rename(temporary, `${path}.1`);
}

/**
 * Where the new content of a file is written before it is whole. It is always the same place beside
 * the file, so that what a killed process left there goes with the next try; names of the peer
 * never become one like it.
 */
export function temporaryOf(path: string, use = 'content'): string {
  const hash = createHash('sha256')
    .update(`${use} of ${basename(path)}`)
    .digest('hex');
  return join(dirname(path), `.peersync-${hash.slice(0, 16)}.tmp`);
}
