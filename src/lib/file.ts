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
 * The encodings of files. `document` means that a reader extracts the text. The order is fixed,
 * because the state on disk stores positions in this list.
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

/** The kinds of document whose text a reader can extract. */
export type DocumentKind =
  | 'pdf'
  | 'word'
  | 'slides'
  | 'sheets'
  | 'openDocument'
  | 'epub'
  | 'rtf'
  | 'mail';

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
