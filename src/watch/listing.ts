import { isUtf8 } from 'node:buffer';
import { lstat, type Stats } from 'node:fs';
import { opendir, readdir } from 'node:fs/promises';
import { joinPath } from './paths.js';

/** How many names are read, and their stats asked for, at a time. */
const BATCH = 512;
/**
 * How many stats are asked for at once. A disk that hangs in the midst of them keeps as many of the process's threads, of
 * which there may be four, and everything else needs one: the state, other folders, looking up names of hosts.
 */
const STATS_AT_ONCE = 2;

/** What a name in a directory turned out to be; `error` with the system's code where the stat failed. */
export type Found =
  | { readonly name: string; readonly stats: Stats }
  | { readonly name: string; readonly error: NodeJS.ErrnoException };

/**
 * Lists a directory batch by batch, with the stat of each name (links are not followed). Memory does not grow with the
 * directory, and the event loop is never held for more than a batch.
 *
 * @throws the system's error when the directory cannot be listed to its end
 */
export async function* listing(directory: string): AsyncIterable<readonly Found[]> {
  let names: string[] = [];
  for await (const entry of await opendir(directory, { bufferSize: BATCH })) {
    names.push(entry.name);
    if (names.length < BATCH) continue;
    yield await statAll(directory, names);
    names = [];
  }
  if (names.length > 0) yield await statAll(directory, names);
}

/** The names in a directory that are not valid UTF-8, as they are on disk. */
export async function namesNotUtf8(directory: string): Promise<readonly Buffer[]> {
  const names = await readdir(directory, { encoding: 'buffer' });
  return names.filter((name) => !isUtf8(name));
}

/** Resolves to the stat of a path, a link itself and not its target, or to the error. */
export function look(path: string): Promise<Stats | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    lstat(path, (error, stats) => resolve(error ?? stats));
  });
}

function statAll(directory: string, names: readonly string[]): Promise<readonly Found[]> {
  return new Promise((resolve) => {
    const found: Found[] = [];
    let asked = 0;
    const next = () => {
      const name = names[asked];
      if (name === undefined) return;
      asked += 1;
      lstat(joinPath(directory, name), (error, stats) => {
        found.push(error ? { name, error } : { name, stats });
        if (found.length === names.length) resolve(found);
        else next();
      });
    };
    for (let i = 0; i < STATS_AT_ONCE; i += 1) next();
  });
}
