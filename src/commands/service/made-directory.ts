import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { systemCode } from '../../lib/errors.js';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** As the kernel does it. */
const MOST_LINKS = 40;
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;
const NO_LINK = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Makes a directory for another user, with all above it that are missing, and gives them to that user.
 *
 * Root does this where others may change things meanwhile, so it goes from directory to open directory, and no link leads it
 * away that anybody but root could have put there: who may write in their home could else be given any directory.
 *
 * @param path absolute
 * @throws Error also for a link of somebody else on the way
 */
export async function makeDirectoryFor(path: string, mode: number, owner: Owner): Promise<void> {
  let links = 0;
  let names = namesOf(path);
  let at = '/';
  let here = await open(at, NO_LINK);
  try {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const next = await enter(here, name, mode, owner);
      const to = typeof next === 'string' ? resolve(at, next) : undefined;
      links += to === undefined ? 0 : 1;
      if (links > MOST_LINKS) throw new Error('there are too many links on the way');
      if (to !== undefined) names = [...namesOf(to), ...names];
      at = to === undefined ? join(at, name) : '/';
      const before = here;
      here = typeof next === 'string' ? await open(at, NO_LINK) : next;
      await before.close();
    }
  } finally {
    await here.close();
  }
}

/** The directory of a name in an open one, made where it was missing; of a link, where that leads. */
async function enter(
  directory: FileHandle,
  name: string,
  mode: number,
  { uid, gid }: Owner,
): Promise<FileHandle | string> {
  const path = `/proc/self/fd/${directory.fd}/${name}`;
  try {
    return await open(path, NO_LINK);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') return await linkOfRoot(directory, path, error);
  }
  await mkdir(path, { mode });
  const made = await open(path, NO_LINK);
  try {
    await made.chown(uid, gid);
    return made;
  } catch (error) {
    await made.close();
    throw error;
  }
}

async function linkOfRoot(directory: FileHandle, path: string, error: unknown): Promise<string> {
  const link = await lstat(path);
  if (!link.isSymbolicLink()) throw error;
  if (link.uid !== 0 || !isKept(await directory.stat()))
    throw new Error('a link on the way to it is not that of root; make the directory yourself');
  return await readlink(path);
}

/** Whether only root may exchange what root has put into a directory. */
function isKept({ uid, mode }: Stats): boolean {
  return uid === 0 && ((mode & OTHERS_WRITE) === 0 || (mode & STICKY) !== 0);
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}
