import { randomBytes } from 'node:crypto';
import { renameSync } from 'node:fs';
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes a rename or unlink in `directory` survive a power cut. */
export async function syncDirectory(directory: string, openFile = open): Promise<void> {
  const handle = await openFile(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export interface AtomicOptions {
  /** Permission bits of the new file; 0600 unless given. */
  readonly mode?: number;
  /**
   * Where the content is written first, in the same directory; a name of its own unless given. What
   * a killed process left there goes.
   */
  readonly temporary?: string;
  /** Called once the content is written: whether it is to take the place of what stands there. */
  readonly ready?: (handle: FileHandle) => Promise<boolean>;
  /**
   * Called in the same turn as the rename, when the content is on disk: what it throws leaves the
   * old file as it is.
   */
  readonly lastLook?: (() => void) | undefined;
}

/**
 * Replaces `path` whole: a reader sees the old content or the new, never a part, also after a power
 * cut.
 */
export async function writeFileAtomic(
  path: string,
  content: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  options: AtomicOptions = {},
): Promise<void> {
  const temporary = options.temporary ?? `${path}.${randomBytes(6).toString('hex')}.tmp`;
  if (options.temporary !== undefined) await rm(temporary, { force: true });
  const handle = await open(temporary, 'wx', options.mode ?? 0o600);
  let isMoved = false;
  try {
    await writeFile(handle, content);
    if ((await options.ready?.(handle)) === false) return;
    await handle.sync();
    options.lastLook?.();
    renameSync(temporary, path);
    isMoved = true;
  } finally {
    await handle.close();
    if (!isMoved) await rm(temporary, { force: true });
  }
  await syncDirectory(dirname(path));
}
