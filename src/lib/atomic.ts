import { randomBytes } from 'node:crypto';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes a rename or unlink in `directory` survive a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Replaces `path` whole: a reader sees the old content or the new, never a part, also after a power cut.
 *
 * @param options.mode permission bits of the new file; 0600 unless given
 * @param options.temporary where the content is written first, in the same directory; a name of its own unless given. What a killed
 *   process left there goes
 */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  options: { readonly mode?: number; readonly temporary?: string } = {},
): Promise<void> {
  const temporary = options.temporary ?? `${path}.${randomBytes(6).toString('hex')}.tmp`;
  if (options.temporary !== undefined) await rm(temporary, { force: true });
  try {
    const handle = await open(temporary, 'wx', options.mode ?? 0o600);
    try {
      await writeFile(handle, content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}
