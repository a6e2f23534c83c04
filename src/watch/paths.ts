/** `a/b` of `a` and `b`; a folder itself is the empty path. */
export function joinPath(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`;
}

/** The directory that a path stands in; the empty path for one directly in the folder. */
export function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The last name of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The directories that a path stands in, the outermost (the folder itself, `''`) first. */
export function directoriesAbove(path: string): readonly string[] {
  const found = [''];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
    found.push(path.slice(0, slash));
  }
  return found;
}
