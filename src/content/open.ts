import type { Stats } from 'node:fs';
import { isAt } from '../lib/descriptor.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { type FileStat, fileStat, sameStat } from '../lib/file.js';
import { isWithin } from '../lib/text.js';

/** Checks that what was opened is the file of the user that was meant; see `lib/descriptor.ts`. */

/** Codes that say nothing of the file. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR', 'EBUSY', 'ESTALE']);

/** Why a file could not be read as expected. */
export type Refusal =
  /** It was written, moved or replaced meanwhile. */
  | { readonly kind: 'raced' }
  /** The system lacked something for a moment (open files, memory); to be tried again. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'vanished' }
  | { readonly kind: 'notRegular' }
  /**
   * `code` is the system's (EACCES, EIO), or the message of an error that the system does not know.
   */
  | { readonly kind: 'unreadable'; readonly code: string };

/** A file to be read, and the stat that it had at rest. */
export interface ReadOrder {
  /** Absolute, links resolved unless `linksWithin` is given. */
  readonly file: string;
  readonly stat: FileStat;
  /**
   * An absolute path, links resolved: links are followed as long as they lead to a file in this
   * directory. @default none is followed
   */
  readonly linksWithin?: string | undefined;
}

/** Thrown for a file that is not as expected. */
export class ReadRefused extends Error {
  constructor(readonly refusal: Refusal) {
    super(
      refusal.kind === 'raced' ? 'the file was changed meanwhile' : `the file is ${refusal.kind}`,
    );
  }
}

/**
 * Checks right after a file was opened that it is the one at the path that was meant, as it was at
 * rest.
 *
 * @param found the stat of the descriptor
 * @throws ReadRefused
 */
export function checkOpened(fd: number, path: string, found: Stats, meant: FileStat): void {
  if (!isAt(fd, path)) throw new ReadRefused({ kind: 'raced' });
  checkStat(found, meant);
}

/**
 * @throws ReadRefused for what is no regular file, or another one or another version than `meant`
 */
export function checkStat(found: Stats, meant: FileStat): void {
  if (!found.isFile()) throw new ReadRefused({ kind: 'notRegular' });
  if (!sameStat(fileStat(found), meant)) throw new ReadRefused({ kind: 'raced' });
}

/** The path itself where it lies in the directory. @throws ReadRefused */
export function within(directory: string, path: string): string {
  if (!isWithin(path, directory)) throw new ReadRefused({ kind: 'notRegular' });
  return path;
}

/** Explains why reading a file failed. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof ReadRefused) return error.refusal;
  const code = systemCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'vanished' };
  // A link, and a socket or a device without a driver.
  if (code === 'ELOOP' || code === 'ENXIO' || code === 'ENODEV') return { kind: 'notRegular' };
  if (code !== undefined && PASSING.has(code)) return { kind: 'busy' };
  return { kind: 'unreadable', code: code ?? messageOf(error) };
}
