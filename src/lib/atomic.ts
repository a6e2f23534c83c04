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
  /** Permission bits of the new file. @default 0600 */
  readonly mode?: number;
  /**
   * The path of the temporary file, in the same directory. A file that a killed process left there
   * is removed. @default a random name
   */
  readonly temporary?: string;
  /**
   * Called when the content is written, before it is synced. If it returns false, the old file
   * stays.
   */
  readonly ready?: (handle: FileHandle) => Promise<boolean>;
  /**
   * Called right before the rename, when the content is on disk. If it throws, the old file stays.
   */
  readonly lastLook?: (() => void) | undefined;
}

/** Replaces `path` atomically. A reader sees the old content or the new, also after a power cut. */
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
