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

/** The metadata of a file that shows a change without reading it. */
export interface FileStat {
  /** Size in bytes. */
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
}

/** Returns the metadata that shows a change, from `fs.Stats` or from a version. */
export function fileStat({ size, mtimeMs, ctimeMs, ino }: FileStat): FileStat {
  return { size, mtimeMs, ctimeMs, ino };
}

export function sameStat(a: FileStat, b: FileStat): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino;
}

/**
 * The encodings of files. `document` means that a reader extracts the text, `unknown-8bit` that it
 * is text in an encoding that was not recognised. The order is fixed, because the state on disk
 * stores positions in this list.
 */
export const ENCODINGS = [
  'utf-8',
  'utf-16le',
  'utf-16be',
  'windows-1252',
  'binary',
  'document',
  'koi8-u',
  'windows-1251',
  'iso-8859-5',
  'iso-8859-7',
  'windows-1253',
  'windows-1255',
  'windows-1256',
  'gb18030',
  'big5',
  'euc-jp',
  'shift_jis',
  'euc-kr',
  'unknown-8bit',
] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The kinds of document whose text a reader can extract. */
export type DocumentKind =
  | 'pdf'
  | 'word'
  | 'slides'
  | 'sheets'
  | 'openDocument'
  | 'epub'
  | 'rtf'
  | 'mail'
  | 'mbox'
  /** ZIP, tar and tar.gz. */
  | 'archive'
  /** PNG, JPEG, TIFF, WebP and BMP, read by OCR. */
  | 'picture'
  /** A file that a program reads (see content/helpers/programs.ts). */
  | 'helper';

/** How the text of a document was found, for `peersync why`. */
export interface ExtractedBy {
  readonly reader: string;
  /** Number of words that it found. */
  readonly words: number;
  /** How long it took, in ms. */
  readonly ms?: number;
  readonly pages?: number;
  /** Number of pages that were read by OCR. */
  readonly ocrPages?: number;
  /** Mean confidence of the words that OCR found, from 0 to 100. */
  readonly confidence?: number;
  /** Pages that could not be read: `3, 7-9`. */
  readonly unreadPages?: string;
  /** Sentences about what was left out. */
  readonly leftOut?: string;
}

/** Whether these permissions let other users than the owner write in a directory. */
export function isOpenToOthers(mode: number): boolean {
  return (mode & 0o022) !== 0 && process.platform !== 'win32';
}

/** Joins two paths with `/`. Either may be empty, which is the folder itself. */
export function joinPath(directory: string, name: string): string {
  return directory === '' || name === '' ? directory + name : `${directory}/${name}`;
}

/** Returns the directory of a path; empty for a file directly in the folder. */
export function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/**
 * Proves that an opened file is the file at the path that was meant.
 *
 * No path can be trusted. A user who can write in a watched folder, or below a mirror root, can
 * replace a directory by a symbolic link between two system calls. Linux shows the path of an open
 * descriptor (`/proc/self/fd`), and that must equal the path that was meant. Without /proc, the
 * path is resolved again after the file is opened. A link that exists only at that moment can
 * escape this weaker check.
 */

const DESCRIPTORS = '/proc/self/fd';
/** `O_PATH` of Linux, which Node does not name. It needs no right to list the directory. */
const O_PATH = 0o10000000;
const DIRECTORY_FLAGS = constants.O_DIRECTORY | constants.O_NOFOLLOW | O_PATH;

/**
 * The flags to open a file for reading. They refuse a link in the last part, and do not block on a
 * pipe.
 */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Whether `throughDescriptor` works on this system. */
export const HAS_DESCRIPTORS = existsSync(DESCRIPTORS);

/** Returns a path to an open directory that stays valid if the directory is moved. */
export function throughDescriptor(fd: number): string {
  return `${DESCRIPTORS}/${fd}`;
}

/** Whether an open file is at this path, and no part of the path is a link. */
export function isAt(fd: number, path: string): boolean {
  const opened = pathOfDescriptor(fd) ?? realpathSync.native(path);
  if (opened === path) return true;
  // File systems that ignore case, such as mounts from Windows, may show the name in the spelling
  // of another program.
  if (canonical(opened) !== canonical(path)) return false;
  return process.platform === 'linux' ? isAtByParts(fd, path) : true;
}

/** Walks down the path, part by part and through no link, and compares the file found there. */
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

/** Returns the path of an open file as the system shows it; undefined on systems without /proc. */
function pathOfDescriptor(fd: number): string | undefined {
  try {
    return readlinkSync(`${DESCRIPTORS}/${fd}`);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns one spelling for all paths that some file system considers equal. */
function canonical(path: string): string {
  return path.normalize('NFC').toLowerCase();
}
