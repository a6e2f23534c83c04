import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, realpath, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { Refusal } from './answer.js';

/** A shared object, as it is listed. */
export interface Share {
  readonly c: string;
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

/** Objects of a listing, and names of one folder that are looked at for it. */
export const MOST_LISTED = 10_000;
/** Files of a folder that are looked at together. */
const AT_ONCE = 64;
const INCOMING = /^\.upload-[0-9a-f]{16}\.tmp$/;
/** What the system says of a path that holds no file that can be shared. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EISDIR']);

/**
 * The shared objects: files under `shares/`, put there by a copy or by `place`. Links are not followed, except that `shares`
 * itself may be one. A file that comes in by `place` stands under a hidden name until it is whole and on disk.
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
  async get(name: ShareName): Promise<OpenShare | undefined> {
    const path = join(this.#root, ...name.segments);
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
      absent,
    );
    if (!handle) return undefined;
    try {
      const found = await handle.stat();
      const real = await realpath(path).catch(absent);
      const there = await stat(path).catch(absent);
      const expected = join(await realpath(this.#root), ...name.segments);
      const isPlain =
        found.isFile() && real === expected && there?.dev === found.dev && there.ino === found.ino;
      if (isPlain)
        return { c: name.c, data: name.data, size: found.size, lastModified: found.mtimeMs, handle };
    } catch (error) {
      await handle.close();
      throw error;
    }
    await handle.close();
    return undefined;
  }

  /**
   * The objects under `folder`, folder by folder and by name, at most MOST_LISTED; returns whether there are more. Throws nothing for
   * what vanishes meanwhile.
   */
  async *list(folder: readonly string[]): AsyncGenerator<Share, boolean> {
    const left = { objects: MOST_LISTED };
    const isAll = yield* this.#walk(folder, left);
    return !isAll;
  }

  /** Whether there is such a folder of objects. */
  async has(folder: readonly string[]): Promise<boolean> {
    const found = await lstat(join(this.#root, ...folder)).catch(absent);
    return folder.length === 0 || (found?.isDirectory() ?? false);
  }

  /** Opens a file for an upload, under a hidden name. */
  async incoming(): Promise<{ readonly path: string; readonly handle: FileHandle }> {
    const path = join(this.#root, `.upload-${randomBytes(8).toString('hex')}.tmp`);
    return { path, handle: await open(path, 'wx', 0o600) };
  }

  /** Puts a whole file of `incoming` into its place, on disk when this resolves. @throws Refusal 409 */
  async place(path: string, name: ShareName): Promise<Share> {
    let folder = this.#root;
    for (const segment of name.segments.slice(0, -1)) {
      const parent = folder;
      folder = join(parent, segment);
      const made = await mkdir(folder, { mode: 0o700 }).then(() => true, isThere);
      if (!(await lstat(folder)).isDirectory()) throw new Refusal(409, `${segment} is no folder.`);
      if (made) await syncDirectory(parent);
    }
    const target = join(this.#root, ...name.segments);
    try {
      await rename(path, target);
    } catch (error) {
      if (systemCode(error) === 'EISDIR') throw new Refusal(409, `${name.data} is a folder.`);
      throw error;
    }
    await syncDirectory(folder);
    const { size, mtimeMs } = await lstat(target);
    return { c: name.c, data: name.data, size, lastModified: mtimeMs };
  }

  /** Whether all was listed. */
  async *#walk(folder: readonly string[], left: { objects: number }): AsyncGenerator<Share, boolean> {
    const { names, isAll } = await this.#names(folder);
    for (let i = 0; i < names.length; i += AT_ONCE) {
      const looks = names.slice(i, i + AT_ONCE).map(async (name) => {
        const segments = [...folder, name];
        return { segments, found: await lstat(join(this.#root, ...segments)).catch(absent) };
      });
      for (const { segments, found } of await Promise.all(looks)) {
        if (found?.isDirectory() && segments.length < MOST_SEGMENTS) {
          if (!(yield* this.#walk(segments, left))) return false;
        } else if (found?.isFile()) {
          if (left.objects === 0) return false;
          left.objects -= 1;
          const [c = '', ...rest] = segments.length === 1 ? ['', ...segments] : segments;
          yield { c, data: rest.join('/'), size: found.size, lastModified: found.mtimeMs };
        }
      }
    }
    return isAll;
  }

  async #names(
    folder: readonly string[],
  ): Promise<{ readonly names: readonly string[]; readonly isAll: boolean }> {
    const names: string[] = [];
    const entries = await opendir(join(this.#root, ...folder)).catch(absent);
    if (!entries) return { names, isAll: true };
    let isAll = true;
    for await (const { name } of entries) {
      if (names.length === MOST_LISTED) {
        isAll = false;
        break;
      }
      // A name that is not UTF-8 cannot be asked for.
      if (!isHidden(name) && !/[\ufffd\\\p{Cc}]/u.test(name)) names.push(name);
    }
    return { names: names.sort(), isAll };
  }
}

function absent(error: unknown): undefined {
  if (!ABSENT.has(systemCode(error) ?? '')) throw error;
}

function isThere(error: unknown): false {
  if (systemCode(error) !== 'EEXIST') throw error;
  return false;
}

/** The name of a shared object: where its file stands below the folder of shares. */
export interface ShareName {
  /** The group, which is the first folder; empty where the object stands directly in the folder of shares. */
  readonly c: string;
  /** The rest of the path, with `/` between folders. */
  readonly data: string;
  /** Folders and file, from the folder of shares down. */
  readonly segments: readonly string[];
}

/** Folders and file of a name; what lies deeper is no object. */
export const MOST_SEGMENTS = 32;
/** Bytes; what Linux file systems take. */
const LONGEST_SEGMENT = 255;

/**
 * The name that `c` and `data` make. It cannot lead out of the folder of shares.
 *
 * @throws Refusal 400 for what cannot be a name, 404 for hidden files, which are nobody's objects
 */
export function shareName(c: string, data: string): ShareName {
  const segments = [...shareGroup(c), ...data.split('/')];
  check(segments, 'data');
  const [first = ''] = segments;
  return segments.length === 1
    ? { c: '', data: first, segments }
    : { c: first, data: segments.slice(1).join('/'), segments };
}

/** The folder of the group `c`; none where it is empty. @throws Refusal as for a name */
export function shareGroup(c: string): readonly string[] {
  if (c === '') return [];
  if (c.includes('/')) throw new Refusal(400, 'The parameter c cannot hold a slash.');
  check([c], 'c');
  return [c];
}

function check(segments: readonly string[], parameter: string): void {
  const why = segments.length > MOST_SEGMENTS ? 'names too many folders' : firstTrouble(segments);
  if (why !== undefined) throw new Refusal(400, `The parameter ${parameter} ${why}.`);
  if (segments.some(isHidden)) throw new Refusal(404, 'There is no such shared object.');
}

function firstTrouble(segments: readonly string[]): string | undefined {
  for (const segment of segments) {
    if (segment === '') return 'begins or ends with a slash, has two in a row, or is empty';
    if (segment === '.' || segment === '..') return 'leads to another folder';
    if (segment.includes('\\') || /\p{Cc}/u.test(segment))
      return 'holds a backslash or a character that cannot be seen';
    if (Buffer.byteLength(segment) > LONGEST_SEGMENT)
      return `names a file or folder with more than ${LONGEST_SEGMENT} bytes`;
  }
  return undefined;
}

/** Also what other programs write beside a file until it is whole. */
export function isHidden(segment: string): boolean {
  return segment.startsWith('.');
}
