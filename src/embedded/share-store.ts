import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { Refusal } from './form.js';

/** The listed facts of a shared object. */
export interface Share {
  /** The group, which is the first folder; empty if the object is directly in `shares/`. */
  readonly c: string;
  /** The rest of the path, with `/` between folders. */
  readonly data: string;
  /** Size in bytes. */
  readonly size: number;
  /** In ms since the epoch. */
  readonly lastModified: number;
}

/** A shared object that is open for reading. The caller closes the handle. */
export interface OpenShare extends Share {
  readonly handle: FileHandle;
}

export interface Listing {
  readonly shares: readonly Share[];
  /** Whether there are more than MAX_LISTED. */
  readonly more: boolean;
}

/** An upload that is being received into a file with a hidden name. */
export interface Upload {
  readonly path: string;
  readonly handle: FileHandle;
}

/** The most objects of a listing. */
const MAX_LISTED = 10_000;
/** The most folders in a name, with its file. Deeper files are not shared. */
const MAX_SEGMENTS = 32;
/** The longest name of a file or folder, in bytes: the limit of Linux. */
const MAX_SEGMENT_BYTES = 255;
const UPLOAD_NAME = /^\.upload-[0-9a-f]{16}\.tmp$/;
/** The system errors of a path that has no file to share. */
const ABSENT_CODES = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EISDIR']);

/**
 * The shared objects: files in the folder `shares`. They are uploaded, or copied there by their
 * owner.
 *
 * Links are not followed, except that `shares` itself may be one. Hidden files are not shared. An
 * upload has a hidden name until all of it is on disk, and then replaces the object by a rename.
 */
export class ShareStore {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /** Creates the folder if it is missing, and removes unfinished uploads. */
  static async open(dir: string): Promise<ShareStore> {
    const root = join(dir, 'shares');
    await mkdir(root, { recursive: true, mode: 0o700 });
    for await (const { name } of await opendir(root))
      if (UPLOAD_NAME.test(name)) await rm(join(root, name), { force: true });
    return new ShareStore(root);
  }

  /** Returns the objects of a peer that another process may run. Nothing is created or removed. */
  static ofPeer(dir: string): ShareStore {
    return new ShareStore(join(dir, 'shares'));
  }

  /** Opens an object; undefined if there is no such file, or its path contains a link. */
  async get(segments: readonly string[]): Promise<OpenShare | undefined> {
    const path = join(this.#root, ...segments);
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(path, flags).catch(undefinedIfAbsent);
    if (!handle) return undefined;
    const found = await handle.stat();
    const real = await realpath(path).catch(undefinedIfAbsent);
    const current = await stat(path).catch(undefinedIfAbsent);
    const hasNoLink = real === join(await realpath(this.#root), ...segments);
    const isSameFile = current?.dev === found.dev && current.ino === found.ino;
    if (found.isFile() && hasNoLink && isSameFile) return { ...shareOf(segments, found), handle };
    await handle.close();
    return undefined;
  }

  /** Lists the objects in a folder by name, at most MAX_LISTED; undefined if it does not exist. */
  async list(folder: readonly string[]): Promise<Listing | undefined> {
    const top = await lstat(join(this.#root, ...folder)).catch(undefinedIfAbsent);
    if (folder.length > 0 && !top?.isDirectory()) return undefined;
    const shares: Share[] = [];
    const isComplete = await this.#collect(folder, shares);
    return { shares: shares.sort(byName), more: !isComplete };
  }

  /** Adds the objects in a folder to `shares`. @returns false if the listing is full */
  async #collect(folder: readonly string[], shares: Share[]): Promise<boolean> {
    for await (const { segments, found } of this.walk(folder)) {
      if (shares.length === MAX_LISTED) return false;
      shares.push(shareOf(segments, found));
    }
    return true;
  }

  /** Yields all objects in a folder, in no order. Each may be gone when it is opened. */
  async *walk(
    folder: readonly string[] = [],
  ): AsyncGenerator<{ readonly segments: readonly string[]; readonly found: Stats }, void> {
    const entries = await opendir(join(this.#root, ...folder)).catch(undefinedIfAbsent);
    for await (const { name } of entries ?? []) {
      // A name that is not UTF-8 cannot be requested.
      if (faultOf(name) !== undefined || name.includes('\ufffd')) continue;
      const segments = [...folder, name];
      const found = await lstat(join(this.#root, ...segments)).catch(undefinedIfAbsent);
      if (found?.isDirectory() && segments.length < MAX_SEGMENTS) yield* this.walk(segments);
      else if (found?.isFile()) yield { segments, found };
    }
  }

  /** Creates a file with a hidden name for an upload. */
  async createUpload(): Promise<Upload> {
    const path = join(this.#root, `.upload-${randomBytes(8).toString('hex')}.tmp`);
    return { path, handle: await open(path, 'wx', 0o600) };
  }

  /**
   * Moves a complete upload to its name. It is on disk when this resolves.
   *
   * @param path of an upload whose content is synced
   * @throws Refusal 409
   */
  async publish(path: string, segments: readonly string[]): Promise<Share> {
    let folder = this.#root;
    for (const segment of segments.slice(0, -1)) {
      const parent = folder;
      folder = join(parent, segment);
      const made = await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
      });
      if (!(await lstat(folder)).isDirectory())
        throw new Refusal(409, `${segment} is not a folder.`);
      if (made) await syncDirectory(parent);
    }
    const target = join(this.#root, ...segments);
    try {
      await rename(path, target);
    } catch (error) {
      if (systemCode(error) === 'EISDIR') throw new Refusal(409, `${segments.at(-1)} is a folder.`);
      throw error;
    }
    await syncDirectory(folder);
    return shareOf(segments, await lstat(target));
  }
}

function shareOf(
  segments: readonly string[],
  { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number },
): Share {
  const [c = '', ...rest] = segments.length === 1 ? ['', ...segments] : segments;
  return { c, data: rest.join('/'), size, lastModified: mtimeMs };
}

/** Compares by path. A folder precedes the files whose names continue its name. */
function byName(a: Share, b: Share): number {
  const key = ({ c, data }: Share): string =>
    (c === '' ? data : `${c}/${data}`).replaceAll('/', '\0');
  return key(a) < key(b) ? -1 : 1;
}

function undefinedIfAbsent(error: unknown): undefined {
  if (!ABSENT_CODES.has(systemCode(error) ?? '')) throw error;
}

/**
 * Returns the folders and the file that `c` and `data` name, below the folder of shares. They
 * cannot lead out of it. Without `data`, returns the folder of the group; empty if `c` is empty.
 *
 * @throws Refusal 400 for an impossible name, 404 for a hidden one
 */
export function shareSegments(c: string, data?: string): readonly string[] {
  const segments = data?.split('/') ?? [];
  if (c !== '') segments.unshift(c);
  if (c.includes('/')) throw new Refusal(400, 'The parameter c cannot contain a slash.');
  if (segments.length > MAX_SEGMENTS) throw new Refusal(400, 'The name has too many folders.');
  for (const segment of segments) {
    const fault = faultOf(segment);
    if (fault === HIDDEN) throw new Refusal(404, 'There is no such shared object.');
    if (fault !== undefined) throw new Refusal(400, `The name of the shared object ${fault}.`);
  }
  return segments;
}

const HIDDEN = 'is hidden';

/** Returns why a segment cannot be part of a name, as the end of a sentence. */
function faultOf(segment: string): string | undefined {
  if (segment === '') return 'begins or ends with a slash, has two in a row, or is empty';
  if (segment === '.' || segment === '..') return 'leads to another folder';
  if (segment.includes('\\') || /\p{Cc}/u.test(segment))
    return 'contains a backslash or an invisible character';
  if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
    return `names a file or folder with more than ${MAX_SEGMENT_BYTES} bytes`;
  return segment.startsWith('.') ? HIDDEN : undefined;
}
