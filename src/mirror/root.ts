import { mkdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { systemCode } from '../lib/errors.js';
import { MirrorError, writeError } from './errors.js';

/** A file below a root directory, which no write leaves. */
export interface Spot {
  /** The directory; created when it does not exist. */
  readonly root: string;
  /** Of the file, relative, with "/" between its parts. */
  readonly path: string;
}

/**
 * The real path of a spot, with the directories above it made (0755). A link within the root is followed as long as it
 * stays within.
 *
 * @throws MirrorError MIRROR_OUTSIDE when a link, or the path itself, leads out of the root; MIRROR_BLOCKED, MIRROR_FULL or
 *   MIRROR_UNWRITABLE when the directories cannot be made
 */
export async function reach(spot: Spot): Promise<string> {
  const parts = spot.path.split('/');
  const shown = join(spot.root, spot.path);
  const name = parts.pop() ?? '';
  if ([...parts, name].some((part) => part === '' || part === '.' || part === '..')) {
    throw new MirrorError('MIRROR_OUTSIDE', { what: JSON.stringify(spot.path), detail: spot.root });
  }
  try {
    await mkdir(spot.root, { recursive: true, mode: 0o755 });
    const root = await realpath(spot.root);
    let directory = root;
    for (const part of parts) directory = await enter(join(directory, part), root, shown);
    return join(directory, name);
  } catch (error) {
    throw writeError(error, shown);
  }
}

/** The real path of a directory below the root; undefined where there is none, or where it leads out of the root. */
export async function directoryBelow(root: string, path: string): Promise<string | undefined> {
  const real = await realpath(join(root, path)).catch(() => undefined);
  const realRoot = await realpath(root).catch(() => undefined);
  return real !== undefined && realRoot !== undefined && isWithin(real, realRoot) ? real : undefined;
}

function isWithin(real: string, root: string): boolean {
  return `${real}${sep}`.startsWith(root === sep ? sep : `${root}${sep}`);
}

/** @returns the real path of a directory, made if there is none */
async function enter(directory: string, root: string, shown: string): Promise<string> {
  await mkdir(directory, { mode: 0o755 }).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  const real = await realpath(directory).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ELOOP') throw error;
    throw new MirrorError('MIRROR_BLOCKED', {
      what: shown,
      detail: `a link that leads nowhere (${directory})`,
    });
  });
  if (!isWithin(real, root)) {
    throw new MirrorError('MIRROR_OUTSIDE', { what: shown, detail: root });
  }
  if (!(await stat(real)).isDirectory()) {
    throw new MirrorError('MIRROR_BLOCKED', {
      what: shown,
      detail: `something that is no directory (${directory})`,
    });
  }
  return real;
}
