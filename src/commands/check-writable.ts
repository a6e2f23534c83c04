import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Finding } from './finding.js';

/** A directory that peersync writes to. */
interface Place {
  /** What it is called among the findings. */
  readonly check: string;
  readonly path: string;
  /** The key of the configuration that names it. */
  readonly key: string;
}

/**
 * Whether a directory, or the nearest one above where it is still to be made, can be written and has room.
 *
 * @param freeBytes what is free on the disk of a path, for this user
 */
export async function checkWritable(
  { check, path: directory, key }: Place,
  freeBytes: (path: string) => Promise<number> = freeOf,
): Promise<Finding> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      await access(path, constants.W_OK | constants.X_OK);
      if ((await freeBytes(path)) === 0)
        return {
          check,
          ok: false,
          message: `no space is left on the disk of ${directory}`,
          hint: 'Free some space there; nothing is lost, and a daemon goes on by itself.',
        };
      const message =
        path === directory ? `${directory} can be written` : `${directory} will be made when it is needed`;
      return { check, ok: true, message };
    } catch (error) {
      if (systemCode(error) === 'ENOENT' && path !== dirname(path)) continue;
      const message = `${path} cannot be written: ${messageOf(error)}`;
      return {
        check,
        ok: false,
        message,
        hint: `Let the user that peersync runs as write there, or mend \`${key}\`.`,
      };
    }
  }
}

async function freeOf(path: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(path);
  // Some file systems do not tell how large they are.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}
