/** What the file system says of a file: enough to see that it changed, without reading it. */
export interface FileStat {
  /** Bytes. */
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
}

/** The part of `fs.Stats`, or of a version, that shows that a file changed. */
export function fileStat({ size, mtimeMs, ctimeMs, ino }: FileStat): FileStat {
  return { size, mtimeMs, ctimeMs, ino };
}

export function sameStat(a: FileStat, b: FileStat): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino;
}

/**
 * How the bytes of a file are to be read; `document` where a reader makes text of them. Never
 * reordered: the state on disk holds positions in this list.
 */
export const ENCODINGS = [
  'utf-8',
  'utf-16le',
  'utf-16be',
  'windows-1252',
  'binary',
  'document',
] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The kinds of document that a reader makes text of. */
export type DocumentKind =
  | 'pdf'
  | 'word'
  | 'slides'
  | 'sheets'
  | 'openDocument'
  | 'epub'
  | 'rtf'
  | 'mail';

/** Whether a directory with these permissions lets users write in it who do not own it. */
export function isOpenToOthers(mode: number): boolean {
  return (mode & 0o022) !== 0 && process.platform !== 'win32';
}

/** `a/b` of `a` and `b`, either of which may be the empty path: the folder itself. */
export function joinPath(directory: string, name: string): string {
  return directory === '' || name === '' ? directory + name : `${directory}/${name}`;
}

/** The directory that a path stands in; the empty path for one directly in the folder. */
export function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}
