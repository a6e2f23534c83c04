import { createHash } from 'node:crypto';
import { constants, createReadStream, lstatSync, type Stats, unlinkSync } from 'node:fs';
import { copyFile, type FileHandle, link, lstat, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { MirrorError, onDisk } from './errors.js';
import { type HeldPath, type Target, withHeldDirectory } from './held-directory.js';
import type { Facts } from './record.js';

/** Identifies a state of a file without reading it. */
export interface FileStamp {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** Thrown when somebody writes the file during a run. It is as they left it. */
export class FileChanged extends Error {}

export interface WrittenFile {
  /** Whether the file was replaced. Otherwise it had the wanted content already. */
  readonly changed: boolean;
  /** The real path. */
  readonly path: string;
  /** The sha256 of the content, in lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  /** The stamp of the file. */
  readonly file: FileStamp;
}

/** A regular file that is about to be replaced or removed. */
export interface ExistingFile {
  /** The path for system calls, as `HeldPath.at`. Valid only during the call. */
  readonly path: string;
  readonly stamp: FileStamp;
}

export interface ReplaceOptions {
  /**
   * The record of the existing file. A file with the same stamp and hash is not even read.
   */
  readonly before?: Pick<Facts, 'sha256' | 'file'> | undefined;
  /**
   * The earlier versions to keep beside the file, as NAME.1 (the latest) and so on. @default 0
   */
  readonly versions?: number;
  /** The most bytes of content. @default unlimited */
  readonly maxBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with the sha256 of the new content when that is complete, even if the file has it
   * already.
   */
  readonly onWritten?: ((sha256: string) => Promise<void>) | undefined;
  /**
   * Called before the file is replaced or removed, with the sha256 of the new content (undefined
   * for a removal) and the existing file. An error leaves the old file as it is.
   */
  readonly onReplace?:
    | ((sha256: string | undefined, old: ExistingFile | undefined) => Promise<void>)
    | undefined;
  /**
   * Called with the path (`HeldPath.at`) when the new content is on disk, in the same turn as the
   * rename or removal. An error leaves the old file as it is. @default throws FileChanged if the
   * file changed meanwhile
   */
  readonly lastLook?: ((path: string) => void) | undefined;
}

/**
 * Replaces a file whole. A reader sees the old content or the new, never a part and never nothing,
 * even if the process is killed or the power fails. The content is streamed to a temporary file
 * beside it, and renamed. Equal content changes nothing, so that mtime is the time of the last
 * change. A new file has mode 0644 less the umask. An existing one keeps its mode and, if allowed,
 * its owner.
 *
 * @throws MirrorError MIRROR_OUTSIDE, MIRROR_BLOCKED, MIRROR_FULL, MIRROR_UNWRITABLE,
 *   MIRROR_TOO_LARGE; FileChanged; the errors of `content`, of the callbacks and of the signal. The
 *   old file is as it was.
 */
export async function replaceWhole(
  target: Target,
  content: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  options: ReplaceOptions = {},
): Promise<WrittenFile> {
  const shown = join(target.root, target.path);
  return await onDisk(shown, () =>
    withHeldDirectory(target, (held) => new Replacement(held, shown, options).run(content)),
  );
}

/** One replacement of a file, while its directory is held open. */
class Replacement {
  readonly #temporary: string;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #lastLook: ReplaceOptions['lastLook'];
  #result: WrittenFile | undefined;

  /** @param shown the path for messages */
  constructor(
    private readonly held: HeldPath,
    private readonly shown: string,
    private readonly options: ReplaceOptions,
  ) {
    this.#temporary = temporaryOf(held.at);
    this.#lastLook = options.lastLook;
  }

  async run(
    content: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  ): Promise<WrittenFile> {
    const { at: path } = this.held;
    // A file that only some may read is not readable for all while it is written. It is writable
    // for us, even if the existing file is not.
    const mode = ((await regularFile(path))?.mode ?? 0o644) & 0o777;
    await writeFileAtomic(path, this.#hashed(content), {
      mode: mode | 0o600,
      temporary: this.#temporary,
      ready: (handle) => this.#ready(handle),
      lastLook: () => this.#lastLook?.(path),
    });
    if (this.#result === undefined) throw new TypeError('A file that was never written');
    return this.#result;
  }

  /** Hashes and counts the content while it is written. */
  async *#hashed(
    content: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    const { maxBytes = Number.POSITIVE_INFINITY, signal } = this.options;
    for await (const piece of content) {
      signal?.throwIfAborted();
      const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
      this.#bytes += chunk.length;
      if (this.#bytes > maxBytes) {
        const detail = `${maxBytes} bytes`;
        throw new MirrorError('MIRROR_TOO_LARGE', { what: this.shown, detail });
      }
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** Called when the content is complete. Returns whether it replaces the file. */
  async #ready(handle: FileHandle): Promise<boolean> {
    const { at: path, path: real } = this.held;
    const { before, onReplace, onWritten, signal } = this.options;
    const written = { path: real, sha256: this.#hash.digest('hex'), bytes: this.#bytes };
    await onWritten?.(written.sha256);
    const current = await statsAt(path);
    this.#lastLook ??= () => assertUnchanged(path, current);
    const existing = current?.isFile() ? current : undefined;
    if (existing !== undefined && (await isSame(path, existing, written, before))) {
      this.#result = { ...written, changed: false, file: stampOf(existing) };
      return false;
    }
    await onReplace?.(written.sha256, existing && { path, stamp: stampOf(existing) });
    if (existing !== undefined) await this.#takeOver(handle, existing);
    const file = stampOf(await handle.stat());
    this.#result = { ...written, changed: true, file };
    signal?.throwIfAborted();
    if ((await stat(this.#temporary)).ino === file.ino) return true;
    const detail = 'a file of another process';
    throw new MirrorError('MIRROR_BLOCKED', { what: this.shown, detail });
  }

  /** Gives the new file the owner and mode of the existing one, and keeps that as a version. */
  async #takeOver(handle: FileHandle, existing: Stats): Promise<void> {
    // Only root may change the owner, and only members may choose a group. Otherwise it is ours.
    await handle.chown(existing.uid, existing.gid).catch(() => undefined);
    await handle.chmod(existing.mode & 0o777);
    await keepVersion(this.held.at, this.options.versions);
  }
}

/**
 * Removes a file. If versions are wanted, it is kept as one first.
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
 * Returns the stamp of a target. Undefined if it is no regular file, or cannot be accessed.
 */
export async function stampOfTarget({ root, path }: Target): Promise<FileStamp | undefined> {
  const stats = await regularFile(join(root, path)).catch(() => undefined);
  return stats && stampOf(stats);
}

/** Returns whether two stamps are of the same state of a file, or both of none. */
export function sameStamp(a: FileStamp | undefined, b: FileStamp | undefined): boolean {
  return a?.size === b?.size && a?.mtimeMs === b?.mtimeMs && a?.ino === b?.ino;
}

export function stampOf({ size, mtimeMs, ino }: FileStamp): FileStamp {
  return { size, mtimeMs, ino };
}

/**
 * Checks that a file is in the state of a stamp. Without a stamp there must be no file.
 *
 * @throws FileChanged
 */
export function assertUnchanged(path: string, stamp: FileStamp | undefined): void {
  if (!sameStamp(lstatSync(path, { throwIfNoEntry: false }), stamp)) throw new FileChanged();
}

/** Returns the stats of a path, undefined if there is nothing. */
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

/** Returns the sha256 of a file in lower-case hex. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

/**
 * Keeps the file as NAME.1. NAME.1 becomes NAME.2 and so on, at most `count` of them. The file
 * itself is never moved, so that it exists at every instant. After a crash at any step the next
 * call continues.
 */
async function keepVersion(path: string, count = 0): Promise<void> {
  if (count === 0) return;
  const [current, latest] = [await statsAt(path), await statsAt(`${path}.1`)];
  // A process that was killed before the rename has kept it already.
  if (current === undefined || current.ino === latest?.ino) return;
  let free = 1;
  while (free < count && (await statsAt(`${path}.${free}`)) !== undefined) free += 1;
  for (let at = free; at > 1; at -= 1) await rename(`${path}.${at - 1}`, `${path}.${at}`);
  const temporary = temporaryOf(path, 'version');
  await rm(temporary, { force: true });
  // A hard link, or a copy if the file system has none.
  await link(path, temporary).catch(() => copyFile(path, temporary, constants.COPYFILE_EXCL));
  await rename(temporary, `${path}.1`);
}

/**
 * Returns the path of the temporary file beside a file. It is always the same, so that the next try
 * replaces what a killed process left. No name of the peer becomes one like it.
 */
export function temporaryOf(path: string, use = 'content'): string {
  const hash = createHash('sha256')
    .update(`${use} of ${basename(path)}`)
    .digest('hex');
  return join(dirname(path), `.peersync-${hash.slice(0, 16)}.tmp`);
}
