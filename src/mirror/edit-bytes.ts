import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { systemCode } from '../lib/errors.js';

/** Bytes: a larger file is not taken for one that a person edits. */
export const LARGEST_EDITED = 64 * 2 ** 20;

/** Undefined where nothing stands there. */
export async function statsAt(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Undefined where nothing stands there by now, or a link. */
export async function openExisting(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ELOOP') return undefined;
    throw error;
  }
}

/** From its beginning, at most one byte more than may be edited. */
export async function contentOf(handle: FileHandle): Promise<Buffer> {
  const { size } = await handle.stat();
  const buffer = Buffer.alloc(Math.min(size, LARGEST_EDITED) + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}
