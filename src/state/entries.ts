import type { Entry, QuarantinedItem } from './entry.js';

/** Names one record. Every Entry is a Place. */
export interface Place {
  readonly folder: string;
  /** Relative to the folder, `/` between names. */
  readonly path: string;
}

/** How many records have each status. */
export type Counts = Readonly<Record<Entry['status'], number>>;

/** The records as readers see them. Iterables are live: they may be followed while records change. */
export interface EntriesView {
  readonly size: number;
  get(folder: string, path: string): Entry | undefined;
  /** The records of the files directly in `directory` (`''` is the folder itself). */
  inDirectory(folder: string, directory: string): Iterable<Entry>;
  /** The records of all files below `directory`, at a cost of its directories and its records. */
  underDirectory(folder: string, directory: string): Iterable<Entry>;
  /** The names of the directories directly in `directory` that have records in or below them. */
  knownDirectories(folder: string, directory: string): Iterable<string>;
  /** All records, or all of one folder. */
  all(folder?: string): Iterable<Entry>;
  /** The quarantined ones of all folders or of one, at a cost of their number. */
  quarantined(folder?: string): Iterable<QuarantinedItem>;
  /** The names of the folders that have records. */
  folders(): Iterable<string>;
  counts(folder?: string): Counts;
}

/** One directory with records in or below it. */
interface Directory {
  readonly path: string;
  readonly parent: Directory | undefined;
  readonly entries: Map<string, Entry>;
  /** By name. */
  readonly directories: Map<string, Directory>;
}

interface Folder {
  /** By path relative to the folder; the folder itself is `''` and always there. */
  readonly directories: Map<string, Directory>;
  readonly counts: Record<Entry['status'], number>;
  /** By path relative to the folder. */
  readonly quarantined: Map<string, QuarantinedItem>;
}

/** The only copy of the records in memory, by folder, directory and name. A directory without records is not kept. */
export class Entries implements EntriesView {
  readonly #folders = new Map<string, Folder>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(folder: string, path: string): Entry | undefined {
    return this.#directory(folder, parentOf(path))?.entries.get(nameOf(path));
  }

  /** Returns the record that was there before. */
  set(entry: Entry): Entry | undefined {
    const folder = this.#folderFor(entry.folder);
    const { entries } = directoryFor(folder, parentOf(entry.path));
    const name = nameOf(entry.path);
    const before = entries.get(name);
    entries.set(name, entry);
    if (before === undefined) this.#size += 1;
    else folder.counts[before.status] -= 1;
    folder.counts[entry.status] += 1;
    if (entry.status === 'quarantined') folder.quarantined.set(entry.path, entry);
    else if (before?.status === 'quarantined') folder.quarantined.delete(entry.path);
    return before;
  }

  /** Returns the record that was there. */
  delete(folderName: string, path: string): Entry | undefined {
    const folder = this.#folders.get(folderName);
    const directory = folder?.directories.get(parentOf(path));
    const before = directory?.entries.get(nameOf(path));
    if (folder === undefined || directory === undefined || before === undefined) return undefined;
    directory.entries.delete(nameOf(path));
    folder.counts[before.status] -= 1;
    if (before.status === 'quarantined') folder.quarantined.delete(path);
    this.#size -= 1;
    prune(folder, directory);
    return before;
  }

  inDirectory(folder: string, directory: string): Iterable<Entry> {
    return this.#directory(folder, directory)?.entries.values() ?? [];
  }

  *underDirectory(folder: string, directory: string): Iterable<Entry> {
    const top = this.#directory(folder, directory);
    const stack = top === undefined ? [] : [top];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      yield* next.entries.values();
      stack.push(...next.directories.values());
    }
  }

  knownDirectories(folder: string, directory: string): Iterable<string> {
    return this.#directory(folder, directory)?.directories.keys() ?? [];
  }

  *all(folder?: string): Iterable<Entry> {
    if (folder === undefined) {
      for (const name of this.#folders.keys()) yield* this.all(name);
      return;
    }
    for (const directory of this.#folders.get(folder)?.directories.values() ?? []) {
      yield* directory.entries.values();
    }
  }

  *quarantined(folder?: string): Iterable<QuarantinedItem> {
    if (folder !== undefined) yield* this.#folders.get(folder)?.quarantined.values() ?? [];
    else for (const { quarantined } of this.#folders.values()) yield* quarantined.values();
  }

  *folders(): Iterable<string> {
    for (const [name, folder] of this.#folders)
      if (Object.values(folder.counts).some((n) => n > 0)) yield name;
  }

  counts(folder?: string): Counts {
    if (folder !== undefined) return { ...(this.#folders.get(folder)?.counts ?? noCounts()) };
    const sum = noCounts();
    for (const { counts } of this.#folders.values()) {
      for (const status of STATUSES_OF_RECORDS) sum[status] += counts[status];
    }
    return sum;
  }

  #directory(folder: string, path: string): Directory | undefined {
    return this.#folders.get(folder)?.directories.get(path);
  }

  #folderFor(name: string): Folder {
    const known = this.#folders.get(name);
    if (known !== undefined) return known;
    const root: Directory = { path: '', parent: undefined, entries: new Map(), directories: new Map() };
    const folder: Folder = {
      directories: new Map([['', root]]),
      counts: noCounts(),
      quarantined: new Map(),
    };
    this.#folders.set(name, folder);
    return folder;
  }
}

const STATUSES_OF_RECORDS: readonly Entry['status'][] = [
  'pending',
  'accepted',
  'confirmed',
  'quarantined',
  'gone',
  'passed',
];

function noCounts(): Record<Entry['status'], number> {
  return { pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0, passed: 0 };
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The directory, made known together with all that it stands in. */
function directoryFor(folder: Folder, path: string): Directory {
  const known = folder.directories.get(path);
  if (known !== undefined) return known;
  const parent = directoryFor(folder, parentOf(path));
  const directory: Directory = { path, parent, entries: new Map(), directories: new Map() };
  parent.directories.set(nameOf(path), directory);
  folder.directories.set(path, directory);
  return directory;
}

/** Forgets the directory, and those it stands in, as far as nothing is left in them. */
function prune(folder: Folder, directory: Directory): void {
  let last = directory;
  while (last.parent !== undefined && last.entries.size === 0 && last.directories.size === 0) {
    folder.directories.delete(last.path);
    last.parent.directories.delete(nameOf(last.path));
    last = last.parent;
  }
}
