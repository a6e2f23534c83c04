import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readlinkSync,
  realpathSync,
} from 'node:fs';
import { systemCode } from './errors.js';

/**
 * Proves that what was opened is what was meant.
 *
 * A path is trusted at no time: whoever can write in a watched folder, or below a mirror root, may
 * put a symbolic link in the place of a directory between two system calls. The system names the
 * file behind an open descriptor (`/proc/self/fd`), and that name has to be the path that was
 * meant. On systems without /proc the path is resolved once more after the file was opened; a link
 * that is there for that moment only can escape this weaker check.
 */

const DESCRIPTORS = '/proc/self/fd';
/** `O_PATH` of Linux: no right to list the directory is needed. Node does not name it. */
const O_PATH = 0o10000000;
const DIRECTORY_FLAGS = constants.O_DIRECTORY | constants.O_NOFOLLOW | O_PATH;

/** Opens for reading, does not follow a link in the last part, and does not wait for a pipe. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Whether `throughDescriptor` leads anywhere. */
export const HAS_DESCRIPTORS = existsSync(DESCRIPTORS);

/** A path that leads to an open directory, wherever that is now. */
export function throughDescriptor(fd: number): string {
  return `${DESCRIPTORS}/${fd}`;
}

/** Whether the file behind a descriptor stands at a path in which no part is a link. */
export function isAt(fd: number, path: string): boolean {
  const opened = pathOfDescriptor(fd) ?? realpathSync.native(path);
  if (opened === path) return true;
  // File systems that ignore case, such as mounts from Windows, may name a file as another program
  // wrote its name.
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
