import type { Stats } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { joinPath } from './paths.js';

/** Where a symbolic link leads, as far as it may be followed. */
export interface Target {
  /** Absolute, all links resolved. */
  readonly path: string;
  readonly stats: Stats;
}

/** How a directory of a folder is reached. */
export type Standing = 'plain' | 'linked' | 'outside';

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
    const directory = await realpath(joinPath(root, link.slice(0, Math.max(0, link.lastIndexOf('/')))));
    if (stats.isDirectory() && isWithin(target, directory)) return undefined;
    return { path: target, stats };
  } catch {
    return undefined;
  }
}

/** Whether a link is passed on the way to a directory; a directory that is not there is `plain`. */
export async function standingOf(root: string, directory: string): Promise<Standing> {
  if (directory === '') return 'plain';
  const path = joinPath(root, directory);
  const real = await realpath(path).catch(() => path);
  if (real === path) return 'plain';
  return isWithin(root, real) ? 'linked' : 'outside';
}

function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);
}
