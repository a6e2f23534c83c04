import { close, constants, open } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../lib/errors.js';
import { HAS_DESCRIPTORS, isAt, throughDescriptor } from '../lib/file.js';
import { isWithin } from '../lib/text.js';
import { MirrorError, onDisk } from './errors.js';

/** A file below a root directory. No write leaves the root. */
export interface Target {
  /** The directory; created when it does not exist. */
  readonly root: string;
  /** The relative path of the file, with "/" between its parts. */
  readonly path: string;
}

/** The path of a target while its directory is held open. */
export interface HeldPath {
  /** The real path, for messages and records. */
  readonly path: string;
  /**
   * The path for system calls on the file and its neighbours. On Linux it begins with the open
   * directory. It leads there even if another directory is put in its place.
   */
  readonly at: string;
}

interface OpenDirectory {
  readonly fd: number;
  readonly real: string;
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const CHANGED = 'a directory that another program moves or replaces';

// Numbers and not handles: a handle that is left open by a bug ends the process.
const openNumber = promisify(open);
const closeNumber = promisify(close);

/**
 * Runs work on a target while its directory is held open. Missing directories are made (0755). A
 * link is followed as long as it stays within the root.
 *
 * A path is never trusted, as in `lib/file.ts`: another program may replace a directory by a
 * link between two system calls. Each directory is opened, and has to be where it was expected. On
 * systems without /proc the last one is compared before and after the work. A link that exists only
 * in between can escape this weaker check.
 *
 * @throws MirrorError MIRROR_OUTSIDE when a link, or the path itself, leads out of the root;
 *   MIRROR_BLOCKED, MIRROR_FULL or MIRROR_UNWRITABLE when the directories cannot be made, or are
 *   moved meanwhile
 */
export async function withHeldDirectory<T>(
  target: Target,
  work: (place: HeldPath) => Promise<T>,
): Promise<T> {
  const parts = target.path.split('/');
  const shown = join(target.root, target.path);
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    const what = JSON.stringify(target.path);
    throw new MirrorError('MIRROR_OUTSIDE', { what, detail: target.root });
  }
  const name = parts.pop() ?? '';
  const directory = await onDisk(shown, () => openBelow(target.root, parts, shown));
  try {
    const done = await work({
      path: join(directory.real, name),
      at: join(pathOf(directory), name),
    });
    if (!HAS_DESCRIPTORS) checkInPlace(directory, shown);
    return done;
  } finally {
    await closeNumber(directory.fd);
  }
}

function pathOf({ fd, real }: OpenDirectory): string {
  return HAS_DESCRIPTORS ? throughDescriptor(fd) : real;
}

/** Opens a directory below the root, one level after the other. */
async function openBelow(
  root: string,
  parts: readonly string[],
  shown: string,
): Promise<OpenDirectory> {
  await mkdir(root, { recursive: true, mode: 0o755 });
  const top = await realpath(root);
  let directory = await openAt(top, shown);
  for (const part of parts) {
    const above = directory;
    try {
      const real = await ensureIn(above, part, shown);
      if (!isWithin(real, top))
        throw new MirrorError('MIRROR_OUTSIDE', { what: shown, detail: root });
      directory = await openAt(real, shown);
    } finally {
      await closeNumber(above.fd);
    }
  }
  return directory;
}

/** Returns the real path of a directory in another one. Makes it if it is missing. */
async function ensureIn(above: OpenDirectory, part: string, shown: string): Promise<string> {
  const next = join(pathOf(above), part);
  await mkdir(next, { mode: 0o755 }).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  return await realpath(next).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ELOOP') throw error;
    const detail = `a link that leads nowhere (${join(above.real, part)})`;
    throw new MirrorError('MIRROR_BLOCKED', { what: shown, detail });
  });
}

async function openAt(real: string, shown: string): Promise<OpenDirectory> {
  const fd = await openNumber(real, DIRECTORY);
  try {
    const directory = { fd, real };
    checkInPlace(directory, shown);
    return directory;
  } catch (error) {
    await closeNumber(fd);
    throw error;
  }
}

/** @throws MirrorError MIRROR_BLOCKED */
function checkInPlace({ fd, real }: OpenDirectory, shown: string): void {
  if (!isAt(fd, real)) throw new MirrorError('MIRROR_BLOCKED', { what: shown, detail: CHANGED });
}
