import type { Stats } from 'node:fs';
import { lstat } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';

/** `a/b` of `a` and `b`; a folder itself is the empty path. */
export function joinPath(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`;
}

/** The directory that a path stands in; the empty path for one directly in the folder. */
export function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The last name of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The directories that a path stands in, the outermost (the folder itself, `''`) first. */
export function directoriesAbove(path: string): readonly string[] {
  const found = [''];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
    found.push(path.slice(0, slash));
  }
  return found;
}

/** Resolves to the stat of a path, a link itself and not its target, or to the error. */
export function look(path: string): Promise<Stats | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    lstat(path, (error, stats) => resolve(error ?? stats));
  });
}

/** Whether an error of the system says that there is nothing at a path; any other says nothing about it. */
export function isAbsence(code: string | undefined): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Where a symbolic link leads, as far as it may be followed. */
export interface Target {
  /** Absolute, all links resolved. */
  readonly path: string;
  readonly stats: Stats;
}

/**
 * Follows a link that stays inside the folder.
 *
 * @param root of the folder, absolute, all links resolved
 * @returns undefined for a link that leads nowhere, out of the folder, or to a directory that the link stands in
 */
export async function followLink(root: string, link: string): Promise<Target | undefined> {
  try {
    const target = await realpath(joinPath(root, link));
    if (!isWithin(root, target)) return undefined;
    const stats = await stat(target);
    const directory = await realpath(joinPath(root, directoryOf(link)));
    if (stats.isDirectory() && isWithin(target, directory)) return undefined;
    return { path: target, stats };
  } catch {
    return undefined;
  }
}

/** How a directory of a folder is reached, by links or not; one that is not there is `plain`. */
export async function reachOf(root: string, directory: string): Promise<'plain' | 'linked' | 'outside'> {
  if (directory === '') return 'plain';
  const path = joinPath(root, directory);
  const real = await realpath(path).catch(() => path);
  if (real === path) return 'plain';
  return isWithin(root, real) ? 'linked' : 'outside';
}

function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);
}

/** Calls `work` for each item, at most `limit` at a time; rejects with the first error after all have ended. */
export async function forEachLimited<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) await work(next.value);
  };
  const ended = await Promise.allSettled(Array.from({ length: limit }, worker));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}
