import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';

/** A path in one of the configured folders. */
export interface Located {
  readonly folder: FolderConfig;
  /** Relative to the folder; `''` is the folder itself. */
  readonly path: string;
}

/**
 * Finds the folder that a path is in, also where links lead there by another way than the configuration names: a shell
 * that stands in a linked directory gives its files by their real path.
 */
export async function locate(config: Config, file: string): Promise<Located | undefined> {
  const absolute = resolve(file);
  for (const folder of config.folders) {
    if (isWithin(folder.path, absolute)) return { folder, path: relative(folder.path, absolute) };
  }
  const real = await realOf(absolute);
  for (const folder of config.folders) {
    const root = await realpath(folder.path).catch(() => folder.path);
    for (const path of real) if (isWithin(root, path)) return { folder, path: relative(root, path) };
  }
  return undefined;
}

/** The real path of what a path names, and the one of its name in its directory, which may be a link or gone. */
async function realOf(path: string): Promise<readonly string[]> {
  const above = dirname(path);
  if (above === path) return [path];
  const [directory = above] = await realpath(above).then(
    (real) => [real],
    () => realOf(above),
  );
  const named = join(directory, basename(path));
  return [named, await realpath(named).catch(() => named)];
}

function isWithin(directory: string, path: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}
