import { constants, type Stats } from 'node:fs';
import { copyFile, link, lstat, open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemCode } from '../lib/errors.js';
import { temporaryName } from './temporary.js';

/**
 * Keeps what stands at `path` as NAME.1; what was NAME.1 becomes NAME.2 and so on, at most `count` of them. The file itself is
 * never moved, so that it is there at every instant; after a crash at any step the next call goes on from there.
 */
export async function keepVersion(path: string, count: number): Promise<void> {
  if (count === 0) return;
  const [current, latest] = [await statsOf(path), await statsOf(`${path}.1`)];
  // A process that was killed before it replaced the file had kept it already.
  if (current === undefined || current.ino === latest?.ino) return;
  let free = 1;
  while (free < count && (await statsOf(`${path}.${free}`)) !== undefined) free += 1;
  for (let at = free; at > 1; at -= 1) await rename(`${path}.${at - 1}`, `${path}.${at}`);
  const temporary = join(dirname(path), temporaryName());
  try {
    await linkOrCopy(path, temporary);
    await rename(temporary, `${path}.1`);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** A second name for what stands at `path`, or a copy where the file system has no such names. @throws EEXIST */
export async function linkOrCopy(path: string, to: string): Promise<void> {
  try {
    await link(path, to);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(systemCode(error) ?? ''))
      throw error;
    await copyFile(path, to, constants.COPYFILE_EXCL);
    const handle = await open(to, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

async function statsOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
