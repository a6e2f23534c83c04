import { closeSync, constants, fstatSync, openSync, readlinkSync, realpathSync, type Stats } from 'node:fs';
import { messageOf, systemCode } from '../lib/errors.js';
import { type FileStat, fileStat, sameStat } from '../lib/file.js';
import { isWithin } from '../lib/text.js';

/**
 * Opens files that belong to the user, and proves that what was opened is what was meant.
 *
 * A path is trusted at no time: whoever can write in a watched folder may put a symbolic link in the place of a directory
 * between two system calls. The system names the file behind an open descriptor (`/proc/self/fd`), and that name has to be the
 * path that was meant. On systems without /proc the path is resolved once more after the file was opened; a link that
 * is there for that moment only can escape this weaker check.
 */

const DESCRIPTORS = '/proc/self/fd';
/** `O_PATH` of Linux: no right to list the directory is needed. Node does not name it. */
const O_PATH = 0o10000000;
const DIRECTORY_FLAGS = constants.O_DIRECTORY | constants.O_NOFOLLOW | O_PATH;
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
  /** `code` is the system's (EACCES, EIO), or the message of an error that the system does not know. */
  | { readonly kind: 'unreadable'; readonly code: string };

/** A file to be read, and the stat that it had at rest. */
export interface ReadOrder {
  /** Absolute, links resolved unless `linksWithin` is given. */
  readonly file: string;
  readonly stat: FileStat;
  /** An absolute path, links resolved: links are followed as long as they lead to a file in this directory. @default none is followed */
  readonly linksWithin?: string | undefined;
}

/** Thrown for a file that is not as expected. */
export class ReadRefused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.kind === 'raced' ? 'the file was changed meanwhile' : `the file is ${refusal.kind}`);
  }
}

/** Opens for reading, does not follow a link in the last part, and does not wait for a pipe. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Checks right after a file was opened that it is the one at the path that was meant, as it was at rest.
 *
 * @param found the stat of the descriptor
 * @throws ReadRefused
 */
export function checkOpened(fd: number, path: string, found: Stats, meant: FileStat): void {
  if (!isAt(fd, path)) throw new ReadRefused({ kind: 'raced' });
  checkStat(found, meant);
}

/** @throws ReadRefused for what is no regular file, or another one or another version than `meant` */
export function checkStat(found: Stats, meant: FileStat): void {
  if (!found.isFile()) throw new ReadRefused({ kind: 'notRegular' });
  if (!sameStat(fileStat(found), meant)) throw new ReadRefused({ kind: 'raced' });
}

/** The path itself where it lies in the directory. @throws ReadRefused */
export function within(directory: string, path: string): string {
  if (!isWithin(path, directory)) throw new ReadRefused({ kind: 'notRegular' });
  return path;
}

/** Whether the file behind a descriptor stands at a path in which no part is a link. */
export function isAt(fd: number, path: string): boolean {
  const opened = pathOfDescriptor(fd) ?? realpathSync.native(path);
  if (opened === path) return true;
  // File systems that ignore case, such as mounts from Windows, may name a file as another program wrote its name.
  if (canonical(opened) !== canonical(path)) return false;
  return process.platform === 'linux' ? isAtByParts(fd, path) : true;
}

/** Walks to the path part by part, which no link can lead astray, and compares what is there. */
function isAtByParts(fd: number, path: string): boolean {
  let at = openSync('/', DIRECTORY_FLAGS);
  try {
    const parts = path.split('/').filter((part) => part !== '');
    for (const [i, part] of parts.entries()) {
      const flags = i === parts.length - 1 ? READ_FLAGS : DIRECTORY_FLAGS;
      const next = openSync(`${DESCRIPTORS}/${at}/${part}`, flags);
      closeSync(at);
      at = next;
    }
    const [opened, found] = [fstatSync(fd), fstatSync(at)];
    return opened.ino === found.ino && opened.dev === found.dev;
  } finally {
    closeSync(at);
  }
}

/** The path of an open file as the system knows it; undefined on systems without /proc. */
function pathOfDescriptor(fd: number): string | undefined {
  try {
    return readlinkSync(`${DESCRIPTORS}/${fd}`);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The same for all spellings of a path that some file system takes for one. */
function canonical(path: string): string {
  return path.normalize('NFC').toLowerCase();
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
