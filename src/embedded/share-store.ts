import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, realpath, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { Refusal } from './form.js';

/** A shared object, as it is listed. */
export interface Share {
  /** The group, which is the first folder; empty where the object stands directly in the folder of shares. */
  readonly c: string;
  /** The rest of the path, with `/` between folders. */
  readonly data: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly lastModified: number;
}

/** A shared object that is open for reading; whoever has it closes the handle. */
export interface OpenShare extends Share {
  readonly handle: FileHandle;
}

export interface Listing {
  readonly shares: readonly Share[];
  /** Whether there are more than MOST_LISTED. */
  readonly more: boolean;
}

/** Objects of a listing. */
export const MOST_LISTED = 10_000;
/** Folders and file of a name; what lies deeper is no object. */
const MOST_SEGMENTS = 32;
/** Bytes; what Linux file systems take. */
const LONGEST_SEGMENT = 255;
const INCOMING = /^\.upload-[0-9a-f]{16}\.tmp$/;
/** What the system says of a path that holds no file that can be shared. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EISDIR']);

/**
 * The shared objects: files under `shares/`, put there by a copy or by `place`. Links are not followed, except that `shares`
 * itself may be one. Hidden files are nobody's objects: a file that comes in stands under a hidden name until it is whole and on disk.
 */
export class ShareStore {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /** Makes the folder where it is missing and removes what a broken-off upload left. */
  static async open(dir: string): Promise<ShareStore> {
    const root = join(dir, 'shares');
    await mkdir(root, { recursive: true, mode: 0o700 });
    for await (const { name } of await opendir(root))
      if (INCOMING.test(name)) await rm(join(root, name), { force: true });
    return new ShareStore(root);
  }

  /** undefined where there is no such file, or the way to it leads over a link. */
  async get(segments: readonly string[]): Promise<OpenShare | undefined> {
    const path = join(this.#root, ...segments);
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(path, flags).catch(absent);
    if (!handle) return undefined;
    const found = await handle.stat();
    const real = await realpath(path).catch(absent);
    const there = await stat(path).catch(absent);
    const isPlace = real === join(await realpath(this.#root), ...segments);
    if (found.isFile() && isPlace && there?.dev === found.dev && there.ino === found.ino)
      return { ...shareOf(segments, found), handle };
    await handle.close();
    return undefined;
  }

  /** The objects under `folder` by their names, at most MOST_LISTED; undefined where there is no such folder. */
  async list(folder: readonly string[]): Promise<Listing | undefined> {
    const top = await lstat(join(this.#root, ...folder)).catch(absent);
    if (folder.length > 0 && !top?.isDirectory()) return undefined;
    const shares: Share[] = [];
    const isAll = await this.#walk(folder, shares);
    return { shares: shares.sort(byName), more: !isAll };
  }

  /** Whether all is in `shares`. */
  async #walk(folder: readonly string[], shares: Share[]): Promise<boolean> {
    const entries = await opendir(join(this.#root, ...folder)).catch(absent);
    for await (const { name } of entries ?? []) {
      // A name that is not UTF-8 cannot be asked for.
      if (troubleOf(name) !== undefined || name.includes('\ufffd')) continue;
      const segments = [...folder, name];
      const found = await lstat(join(this.#root, ...segments)).catch(absent);
      if (found?.isDirectory() && segments.length < MOST_SEGMENTS) {
        if (!(await this.#walk(segments, shares))) return false;
      } else if (found?.isFile()) {
        if (shares.length === MOST_LISTED) return false;
        shares.push(shareOf(segments, found));
      }
    }
    return true;
  }

  /** Opens a file for an upload, under a hidden name. */
  async incoming(): Promise<{ readonly path: string; readonly handle: FileHandle }> {
    const path = join(this.#root, `.upload-${randomBytes(8).toString('hex')}.tmp`);
    return { path, handle: await open(path, 'wx', 0o600) };
  }

  /** Puts a whole file of `incoming` into its place, on disk when this resolves. @throws Refusal 409 */
  async place(path: string, segments: readonly string[]): Promise<Share> {
    let folder = this.#root;
    for (const segment of segments.slice(0, -1)) {
      const parent = folder;
      folder = join(parent, segment);
      const made = await mkdir(folder, { mode: 0o700 }).then(
        () => true,
        (error: unknown) => {
          if (systemCode(error) !== 'EEXIST') throw error;
          return false;
        },
      );
      if (!(await lstat(folder)).isDirectory()) throw new Refusal(409, `${segment} is no folder.`);
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

/** As folders are walked by their names. */
function byName(a: Share, b: Share): number {
  const key = ({ c, data }: Share): string => (c === '' ? data : `${c}/${data}`).replaceAll('/', '\0');
  return key(a) < key(b) ? -1 : 1;
}

function absent(error: unknown): undefined {
  if (!ABSENT.has(systemCode(error) ?? '')) throw error;
}

/**
 * The folders and the file that `c` and `data` name, from the folder of shares down; the way cannot lead out of it. Without `data` the
 * folder of the group, none where `c` is empty.
 *
 * @throws Refusal 400 for what cannot be a name, 404 for hidden files
 */
export function shareSegments(c: string, data?: string): readonly string[] {
  const segments = data?.split('/') ?? [];
  if (c !== '') segments.unshift(c);
  if (c.includes('/')) throw new Refusal(400, 'The parameter c cannot hold a slash.');
  if (segments.length > MOST_SEGMENTS) throw new Refusal(400, 'The name has too many folders.');
  for (const segment of segments) {
    const trouble = troubleOf(segment);
    if (trouble === 'is hidden') throw new Refusal(404, 'There is no such shared object.');
    if (trouble !== undefined) throw new Refusal(400, `The name of the shared object ${trouble}.`);
  }
  return segments;
}

function troubleOf(segment: string): string | undefined {
  if (segment === '') return 'begins or ends with a slash, has two in a row, or is empty';
  if (segment === '.' || segment === '..') return 'leads to another folder';
  if (segment.includes('\\') || /\p{Cc}/u.test(segment))
    return 'holds a backslash or a character that cannot be seen';
  if (Buffer.byteLength(segment) > LONGEST_SEGMENT)
    return `names a file or folder with more than ${LONGEST_SEGMENT} bytes`;
  return segment.startsWith('.') ? 'is hidden' : undefined;
}
