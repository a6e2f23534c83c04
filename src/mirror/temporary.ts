import { randomBytes } from 'node:crypto';
import { opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../lib/errors.js';

const TEMPORARY = /^\.peersync-[\da-f]{16}\.tmp$/;

/** A name for a file that is not finished; names of the peer never become one like it. */
export function temporaryName(): string {
  return `.peersync-${randomBytes(8).toString('hex')}.tmp`;
}

/**
 * Removes what a killed process left unfinished in a directory: files with names of ours, and nothing else. Links are not
 * followed; what cannot be read or removed is passed over. To be called while nothing is being written there.
 *
 * @param depth how far: the directory alone, or all below it as well
 * @param spared names of files that are gone on with
 * @returns how many were removed
 */
export async function sweep(
  directory: string,
  depth: 'alone' | 'below',
  spared: ReadonlySet<string> = new Set(),
): Promise<number> {
  let removed = 0;
  const waiting = [directory];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    try {
      for await (const entry of await opendir(next)) {
        const path = join(next, entry.name);
        if (entry.isDirectory() && depth === 'below') waiting.push(path);
        if (!entry.isFile() || !TEMPORARY.test(entry.name) || spared.has(entry.name)) continue;
        await unlink(path);
        removed += 1;
      }
    } catch (error) {
      // Only system errors have a code: a bug of ours is not passed over.
      if (systemCode(error) === undefined) throw error;
    }
  }
  return removed;
}
