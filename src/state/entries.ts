import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Entry, type FileStat, type QuarantinedItem, statKey } from './entry.js';
import { decode, encode, statusOf, UrlBases } from './line.js';

/** Names one record. Every Entry is a Place. */
export interface Place {
  readonly folder: string;
  /** Relative to the folder, `/` between names. */
  readonly path: string;
}

/** How many records have each status. */
export type Counts = Readonly<Record<Entry['status'], number>>;

/** Which records a pass is about: all where nothing is given. */
export interface Selection {
  readonly folder?: string | undefined;
  /** Only what is below this directory of the folder. */
  readonly directory?: string | undefined;
  readonly status?: readonly Entry['status'][];
}

/** The records as readers see them. */
export type EntriesView = Omit<Entries, 'bases' | 'encode' | 'put' | 'set' | 'setLine' | 'delete'>;

/** One directory with records in or below it. */
interface Directory {
  readonly path: string;
  readonly parent: Directory | undefined;
  /** By name. */
  readonly lines: Map<string, string>;
  /** By name. */
  directories: Map<string, Directory> | undefined;
}

interface Folder {
  /** By path relative to the folder; the folder itself is `''` and always there. */
  readonly directories: Map<string, Directory>;
  readonly counts: Record<Entry['status'], number>;
  /** Paths relative to the folder. */
  readonly quarantined: Set<string>;
}

type Placed = readonly [folder: string, directory: string, name: string, line: string];

/** So many records are looked at in a slice. */
const SLICE = 1_000;
const NONE: ReadonlyMap<string, string> = new Map();

/**
 * The only copy of the records in memory, a line each, by folder, directory and name: about 270 bytes for a confirmed one. A
 * directory without records is not kept.
 *
 * A record is parsed as it is asked for, each time into a new object: compare what it contains. Iterables are live: they may be
 * followed while records change. A pass over all of 1,000,000 records takes 2 s where each is parsed, and 0.1 s where their
 * status leaves them out: use `slices` for it.
 */
export class Entries {
  readonly bases = new UrlBases();
  readonly #folders = new Map<string, Folder>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(folder: string, path: string): Entry | undefined {
    const line = this.line(folder, path);
    return line === undefined ? undefined : decode(line, folder, path, this.bases);
  }

  /** The record as text; see `linesIn`. */
  line(folder: string, path: string): string | undefined {
    return this.linesIn(folder, parentOf(path)).get(nameOf(path));
  }

  /** The line that the record has, or would have, here. */
  encode(entry: Entry): string {
    return encode(entry, this.bases);
  }

  put(entry: Entry): void {
    this.set(entry, this.encode(entry));
  }

  /** @returns the line that was there before */
  set({ folder, path }: Place, line: string): string | undefined {
    // A name that is cut out of a path would keep the whole path in memory.
    return this.setLine(folder, parentOf(path), copyOf(nameOf(path)), line);
  }

  setLine(folderName: string, parent: string, name: string, line: string): string | undefined {
    const folder = this.#folderFor(folderName);
    const { lines } = directoryFor(folder, parent);
    const status = statusOf(line);
    const before = lines.get(name);
    if (before === undefined) this.#size += 1;
    else uncount(folder, parent, name, statusOf(before));
    lines.set(name, line);
    folder.counts[status] += 1;
    if (status === 'quarantined') folder.quarantined.add(join(parent, name));
    return before;
  }

  /** @returns the line that was there */
  delete(folderName: string, path: string): string | undefined {
    const folder = this.#folders.get(folderName);
    const directory = folder?.directories.get(parentOf(path));
    const before = directory?.lines.get(nameOf(path));
    if (folder === undefined || directory === undefined || before === undefined) return undefined;
    directory.lines.delete(nameOf(path));
    uncount(folder, directory.path, nameOf(path), statusOf(before));
    this.#size -= 1;
    prune(folder, directory);
    return before;
  }

  /**
   * The records of the files directly in `directory`, as text by name. Each begins with the file's stat key
   * (`statKey`); `statusOf` reads its status without parsing it.
   */
  linesIn(folder: string, directory: string): ReadonlyMap<string, string> {
    return this.#folders.get(folder)?.directories.get(directory)?.lines ?? NONE;
  }

  /** Whether a record that is not `gone` has just this version of the file. Parses nothing. */
  isUnchanged(folder: string, path: string, stat: FileStat): boolean {
    const line = this.line(folder, path);
    return line?.startsWith(statKey(stat)) === true && statusOf(line) !== 'gone';
  }

  /** The records of the files directly in `directory` (`''` is the folder itself). */
  *inDirectory(folder: string, directory: string): Iterable<Entry> {
    for (const [name, line] of this.linesIn(folder, directory)) {
      yield decode(line, folder, join(directory, name), this.bases);
    }
  }

  /** The records of all files below `directory`, at a cost of its directories and its records. */
  underDirectory(folder: string, directory: string): Iterable<Entry> {
    return this.#parsed(this.lines(folder, directory));
  }

  /** The names of the directories directly in `directory` that have records in or below them. */
  knownDirectories(folder: string, directory: string): Iterable<string> {
    return this.#folders.get(folder)?.directories.get(directory)?.directories?.keys() ?? [];
  }

  /** All records, or all of one folder, or those with one of the statuses, without a pause. */
  all(folder?: string, ...status: Entry['status'][]): Iterable<Entry> {
    if (status.length === 1 && status[0] === 'quarantined') return this.quarantined(folder);
    return this.#parsed(this.lines(folder), status);
  }

  /**
   * The chosen records, in slices that take a few milliseconds each; the event loop turns between two. Iterate each
   * slice as it comes: a record is read when its turn comes, so that it is never an older one.
   */
  async *slices({ folder, directory, status = [] }: Selection = {}): AsyncGenerator<Iterable<Entry>> {
    const lines = this.lines(folder, directory)[Symbol.iterator]();
    let hasMore = true;
    const slice = function* () {
      for (let i = 0; i < SLICE && hasMore; i += 1) {
        const next = lines.next();
        if (next.done) hasMore = false;
        else yield next.value;
      }
    };
    while (hasMore) {
      yield this.#parsed(slice(), status);
      await nextTurn();
    }
  }

  /** The paths of all records of a folder. Parses nothing. */
  *paths(folder: string): Iterable<string> {
    for (const [, directory, name] of this.lines(folder)) yield join(directory, name);
  }

  /** The quarantined ones of all folders or of one, at a cost of their number. */
  *quarantined(folder?: string): Iterable<QuarantinedItem> {
    for (const name of folder === undefined ? this.#folders.keys() : [folder]) {
      for (const path of this.#folders.get(name)?.quarantined ?? []) {
        const entry = this.get(name, path);
        if (entry?.status === 'quarantined') yield entry;
      }
    }
  }

  /** The names of the folders that have records. */
  *folders(): Iterable<string> {
    for (const [name, folder] of this.#folders)
      if (Object.values(folder.counts).some((n) => n > 0)) yield name;
  }

  counts(folder?: string): Counts {
    const sum = noCounts();
    for (const name of folder === undefined ? this.#folders.keys() : [folder]) {
      const { counts } = this.#folders.get(name) ?? { counts: noCounts() };
      for (const status of Object.keys(sum) as Entry['status'][]) sum[status] += counts[status];
    }
    return sum;
  }

  /** Everything, all of one folder, or what is below one directory of it, as it stands here. */
  *lines(folder?: string, directory?: string): Iterable<Placed> {
    for (const each of folder === undefined ? this.#folders.keys() : [folder]) {
      const directories = this.#folders.get(each)?.directories;
      const chosen = directory ? below(directories?.get(directory)) : directories?.values();
      for (const { path, lines } of chosen ?? []) {
        for (const [name, line] of lines) yield [each, path, name, line];
      }
    }
  }

  *#parsed(lines: Iterable<Placed>, status: readonly Entry['status'][] = []): Iterable<Entry> {
    for (const [folder, directory, name, line] of lines) {
      if (status.length > 0 && !status.includes(statusOf(line))) continue;
      yield decode(line, folder, join(directory, name), this.bases);
    }
  }

  #folderFor(name: string): Folder {
    const known = this.#folders.get(name);
    if (known !== undefined) return known;
    const root: Directory = { path: '', parent: undefined, lines: new Map(), directories: undefined };
    const folder: Folder = {
      directories: new Map([['', root]]),
      counts: noCounts(),
      quarantined: new Set(),
    };
    this.#folders.set(name, folder);
    return folder;
  }
}

function noCounts(): Record<Entry['status'], number> {
  return { pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0, passed: 0 };
}

function uncount(folder: Folder, parent: string, name: string, status: Entry['status']): void {
  folder.counts[status] -= 1;
  if (status === 'quarantined') folder.quarantined.delete(join(parent, name));
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function join(directory: string, name: string): string {
  return directory === '' ? name : `${directory}/${name}`;
}

function copyOf(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

/** The directory and all that stand in it, at any depth. */
function* below(top: Directory | undefined): Iterable<Directory> {
  const stack = top === undefined ? [] : [top];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    yield next;
    stack.push(...(next.directories?.values() ?? []));
  }
}

/** The directory, made known together with all that it stands in. */
function directoryFor(folder: Folder, path: string): Directory {
  const known = folder.directories.get(path);
  if (known !== undefined) return known;
  const parent = directoryFor(folder, parentOf(path));
  const own = copyOf(path);
  const directory: Directory = { path: own, parent, lines: new Map(), directories: undefined };
  parent.directories ??= new Map();
  parent.directories.set(nameOf(own), directory);
  folder.directories.set(own, directory);
  return directory;
}

/** Forgets the directory, and those it stands in, as far as nothing is left in them. */
function prune(folder: Folder, directory: Directory): void {
  let last = directory;
  while (last.parent !== undefined && last.lines.size === 0 && (last.directories?.size ?? 0) === 0) {
    folder.directories.delete(last.path);
    last.parent.directories?.delete(nameOf(last.path));
    last = last.parent;
  }
}
