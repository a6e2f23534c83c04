import type { Stats } from 'node:fs';
import { isAt } from '../lib/descriptor.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { type FileStat, fileStat, sameStat } from '../lib/file.js';
import { isWithin } from '../lib/text.js';

/** Checks that an opened file is the user's file that was meant; see `lib/descriptor.ts`. */

/** System error codes that say nothing about the file. */
const TRANSIENT_CODES = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EAGAIN',
  'EINTR',
  'EBUSY',
  'ESTALE',
]);

/** Why a file could not be read as expected. */
export type Refusal =
  /** The file was written, moved or replaced meanwhile. */
  | { readonly kind: 'raced' }
  /** The system was short of something for a moment (open files, memory). Try again. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'vanished' }
  | { readonly kind: 'notRegular' }
  /** `code` is a system error code (EACCES, EIO), or the message of an error without one. */
  | { readonly kind: 'unreadable'; readonly code: string };

/** A file to read, and its stat when it was found at rest. */
export interface ReadOrder {
  /** Absolute path; links are resolved unless `linksWithin` is given. */
  readonly file: string;
  readonly stat: FileStat;
  /**
   * Absolute path of a directory, links resolved. Links are followed if they lead to a file in this
   * directory.
   *
   * @default no link is followed
   */
  readonly linksWithin?: string | undefined;
}

/** Thrown if a file is not as expected. */
export class ReadRefused extends Error {
  constructor(readonly refusal: Refusal) {
    super(
      refusal.kind === 'raced' ? 'the file was changed meanwhile' : `the file is ${refusal.kind}`,
    );
  }
}

/**
 * Checks, right after opening, that the file is still the one at the path and has not changed since
 * it was found at rest.
 *
 * @param found the stat of the descriptor
 * @throws ReadRefused
 */
export function checkOpened(fd: number, path: string, found: Stats, meant: FileStat): void {
  if (!isAt(fd, path)) throw new ReadRefused({ kind: 'raced' });
  checkStat(found, meant);
}

/**
 * Checks that a stat is that of the expected file.
 *
 * @throws ReadRefused if it is not a regular file, or differs from `meant`
 */
export function checkStat(found: Stats, meant: FileStat): void {
  if (!found.isFile()) throw new ReadRefused({ kind: 'notRegular' });
  if (!sameStat(fileStat(found), meant)) throw new ReadRefused({ kind: 'raced' });
}

/**
 * Returns the path if it is in the directory.
 *
 * @throws ReadRefused otherwise
 */
export function within(directory: string, path: string): string {
  if (!isWithin(path, directory)) throw new ReadRefused({ kind: 'notRegular' });
  return path;
}

/** Returns why reading a file failed. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof ReadRefused) return error.refusal;
  const code = systemCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'vanished' };
  // ELOOP: a link. ENXIO and ENODEV: a socket, or a device without a driver.
  if (code === 'ELOOP' || code === 'ENXIO' || code === 'ENODEV') return { kind: 'notRegular' };
  if (code !== undefined && TRANSIENT_CODES.has(code)) return { kind: 'busy' };
  return { kind: 'unreadable', code: code ?? messageOf(error) };
}
