import { close, constants, open } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { HAS_DESCRIPTORS, isAt, throughDescriptor } from '../lib/descriptor.js';
import { systemCode } from '../lib/errors.js';
import { isWithin } from '../lib/text.js';
import { MirrorError, onDisk } from './errors.js';

/** A file below a root directory, which no write leaves. */
export interface Target {
  /** The directory; created when it does not exist. */
  readonly root: string;
  /** Of the file, relative, with "/" between its parts. */
  readonly path: string;
}

/** The place of a target while its directory is held open. */
export interface HeldPath {
  /** The real path, for people and records. */
  readonly path: string;
  /**
   * The path by which the file, and all that stands beside it, is looked at, written, renamed and
   * removed. On Linux it begins with the open directory, and goes on to lead there, whatever is put
   * in its place.
   */
  readonly at: string;
}

interface OpenDirectory {
  readonly fd: number;
  readonly real: string;
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const CHANGED = 'a directory that another program moves or replaces';

// Numbers, and not handles: what is left open by a fault is no error that ends the process.
const openNumber = promisify(open);
const closeNumber = promisify(close);

/**
 * Does some work at the place of a target, with the directories above it made (0755). A link within
 * the root is followed as long as it stays within.
 *
 * A path is trusted at no time, as in `lib/descriptor.ts`: whoever may write below the root may put
 * a link in the place of a directory between two system calls. Each directory is opened, and has to
 * stand where it was meant to. On systems without /proc the last one is compared before and after
 * the work; a link that is there in between can escape this weaker check.
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
    throw new MirrorError('MIRROR_OUTSIDE', JSON.stringify(target.path), target.root);
  }
  const name = parts.pop() ?? '';
  const directory = await onDisk(shown, () => openBelow(target.root, parts, shown));
  try {
    const done = await work({
      path: join(directory.real, name),
      at: join(pathOf(directory), name),
    });
    if (!HAS_DESCRIPTORS) checkStands(directory, shown);
    return done;
  } finally {
    await closeNumber(directory.fd);
  }
}

function pathOf({ fd, real }: OpenDirectory): string {
  return HAS_DESCRIPTORS ? throughDescriptor(fd) : real;
}

/** Opens a directory below the root, from one to the next. */
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
      const real = await madeIn(above, part, shown);
      if (!isWithin(real, top)) throw new MirrorError('MIRROR_OUTSIDE', shown, root);
      directory = await openAt(real, shown);
    } finally {
      await closeNumber(above.fd);
    }
  }
  return directory;
}

/** @returns the real path of a directory in another one, made where nothing stands */
async function madeIn(above: OpenDirectory, part: string, shown: string): Promise<string> {
  const next = join(pathOf(above), part);
  await mkdir(next, { mode: 0o755 }).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  return await realpath(next).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ELOOP') throw error;
    const what = `a link that leads nowhere (${join(above.real, part)})`;
    throw new MirrorError('MIRROR_BLOCKED', shown, what);
  });
}

async function openAt(real: string, shown: string): Promise<OpenDirectory> {
  const fd = await openNumber(real, DIRECTORY);
  try {
    const directory = { fd, real };
    checkStands(directory, shown);
    return directory;
  } catch (error) {
    await closeNumber(fd);
    throw error;
  }
}

/** @throws MirrorError MIRROR_BLOCKED */
function checkStands({ fd, real }: OpenDirectory, shown: string): void {
  if (!isAt(fd, real)) throw new MirrorError('MIRROR_BLOCKED', shown, CHANGED);
}
