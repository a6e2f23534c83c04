import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Entry, QuarantinedItem } from './entry.js';
import { decode, encode, ownCopy, statusOf, UrlBases } from './line.js';
import { LineStore } from './line-store.js';

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
  /** Only those whose line, not parsed yet, is as this says. */
  readonly where?: (line: string) => boolean;
}

/** The records as readers see them. */
export type EntriesView = Omit<Entries, 'bases' | 'encode' | 'put' | 'set' | 'into' | 'delete'>;

/** One directory with records in or below it. Both by name. */
interface Directory {
  /** Where the lines are kept. */
  readonly lines: Map<string, number>;
  directories?: Map<string, Directory>;
}

interface Folder {
  readonly root: Directory;
  readonly counts: Record<Entry['status'], number>;
  /** Paths relative to the folder. */
  readonly quarantined: Set<string>;
}

type Placed = readonly [folder: string, directory: string, name: string, line: string];

/** A pending record grows by so many bytes until it is confirmed. */
const ROOM = 48;
/** So many records are looked at in a slice. */
const SLICE = 1_000;
const NONE = new Map<string, never>();

/**
 * The only copy of the records in memory, a line each, by folder, directory and name: about 230 bytes for a confirmed one. A
 * directory or a folder without records is not kept.
 *
 * A record is parsed as it is asked for, each time into a new object: compare what it contains. Iterables are live: they may be
 * followed while records change. A pass over all of 1,000,000 records takes 2 s where each is parsed, and 0.1 s where their
 * status leaves them out: use `slices` for it.
 */
export class Entries {
  readonly bases = new UrlBases();
  readonly #folders = new Map<string, Folder>();
  readonly #lines = new LineStore();

  get size(): number {
    return Object.values(this.counts()).reduce((sum, count) => sum + count, 0);
  }

  get(folder: string, path: string): Entry | undefined {
    const line = this.line(folder, path);
    return line === undefined ? undefined : decode(line, folder, path, this.bases);
  }

  /** The record as text; `statusOf` reads its status without parsing it. */
  line(folder: string, path: string): string | undefined {
    const at = this.#directory(folder, parentOf(path))?.lines.get(nameOf(path));
    return at === undefined ? undefined : this.#lines.get(at);
  }

  /** The line that the record has, or would have, here. */
  encode(entry: Entry): string {
    return encode(entry, this.bases);
  }

  put(entry: Entry): void {
    this.set(entry.folder, entry.path, this.encode(entry));
  }

  /** @returns the line that was there before */
  set(folder: string, path: string, line: string): string | undefined {
    return this.into(folder, parentOf(path))(ownCopy(nameOf(path)), line);
  }

  /**
   * Sets many records of one directory, by a name that is no part of another text. To be used until something is deleted.
   *
   * @returns how to set one; that returns the line that was there before
   */
  into(folderName: string, path: string): (name: string, line: string) => string | undefined {
    let folder = this.#folders.get(folderName);
    if (folder === undefined) {
      folder = { root: { lines: new Map() }, counts: noCounts(), quarantined: new Set() };
      this.#folders.set(folderName, folder);
    }
    const known = folder;
    let directory = folder.root;
    for (const name of namesOf(path)) {
      directory.directories ??= new Map();
      let inner = directory.directories.get(name);
      if (inner === undefined) {
        inner = { lines: new Map() };
        directory.directories.set(ownCopy(name), inner);
      }
      directory = inner;
    }
    const { lines } = directory;
    return (name, line) => {
      const at = lines.get(name);
      const before = at === undefined ? undefined : this.#lines.get(at);
      if (before !== undefined) count(known, path, name, before, -1);
      const room = statusOf(line) === 'pending' ? ROOM : 0;
      const to = at === undefined ? this.#lines.add(line, room) : this.#lines.set(at, line, room);
      if (to !== at) lines.set(name, to);
      count(known, path, name, line, 1);
      return before;
    };
  }

  /** @returns the line that was there */
  delete(folderName: string, path: string): string | undefined {
    const folder = this.#folders.get(folderName);
    const at = this.#directory(folderName, parentOf(path))?.lines.get(nameOf(path));
    if (at === undefined || folder === undefined) return undefined;
    const before = this.#lines.get(at);
    this.#lines.remove(at);
    count(folder, parentOf(path), nameOf(path), before, -1);
    if (remove(folder.root, path)) this.#folders.delete(folderName);
    return before;
  }

  /** The names of the files directly in `directory` that have records. */
  names(folder: string, directory: string): Iterable<string> {
    return (this.#directory(folder, directory)?.lines ?? NONE).keys();
  }

  /** The records of all files below `directory`, at a cost of its directories and its records. */
  underDirectory(folder: string, directory: string): Iterable<Entry> {
    return this.#parsed(this.lines(folder, directory));
  }

  /** The names of the directories directly in `directory` that have records in or below them. */
  knownDirectories(folder: string, directory: string): Iterable<string> {
    return (this.#directory(folder, directory)?.directories ?? NONE).keys();
  }

  /** All records, or all of one folder, or those with one of the statuses, without a pause. */
  all(folder?: string, ...status: Entry['status'][]): Iterable<Entry> {
    return this.#parsed(this.lines(folder), status);
  }

  /**
   * The chosen records, in slices that take a few milliseconds each; the event loop turns between two. Iterate each
   * slice as it comes: a record is read when its turn comes, so that it is never an older one.
   */
  async *slices({ folder, directory, status = [], where }: Selection = {}): AsyncGenerator<Iterable<Entry>> {
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
      yield this.#parsed(slice(), status, where);
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
  folders(): Iterable<string> {
    return this.#folders.keys();
  }

  /** Every URL base that a record of any folder ever had. */
  *urlBases(): Iterable<string> {
    for (let number = 0; number < this.bases.size; number += 1) {
      const url = this.bases.get(number)?.url;
      if (url !== undefined) yield url;
    }
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
  *lines(folder?: string, directory = ''): Iterable<Placed> {
    for (const each of folder === undefined ? this.#folders.keys() : [folder]) {
      for (const [path, { lines }] of treeOf(directory, this.#directory(each, directory))) {
        for (const [name, at] of lines) yield [each, path, name, this.#lines.get(at)];
      }
    }
  }

  *#parsed(
    lines: Iterable<Placed>,
    status: readonly Entry['status'][] = [],
    where = (_line: string) => true,
  ): Iterable<Entry> {
    for (const [folder, directory, name, line] of lines) {
      if ((status.length > 0 && !status.includes(statusOf(line))) || !where(line)) continue;
      yield decode(line, folder, join(directory, name), this.bases);
    }
  }

  #directory(folder: string, path: string): Directory | undefined {
    let directory = this.#folders.get(folder)?.root;
    for (const name of namesOf(path)) directory = directory?.directories?.get(name);
    return directory;
  }
}

function noCounts(): Record<Entry['status'], number> {
  return { pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0, passed: 0 };
}

/** The record comes (1) or goes (-1). */
function count(folder: Folder, directory: string, name: string, line: string, by: 1 | -1): void {
  const status = statusOf(line);
  folder.counts[status] += by;
  if (status !== 'quarantined') return;
  if (by === 1) folder.quarantined.add(join(directory, name));
  else folder.quarantined.delete(join(directory, name));
}

/** Removes a record, and the directories it stands in as far as nothing is left in them. Returns whether nothing is left. */
function remove(directory: Directory, path: string): boolean {
  const slash = path.indexOf('/');
  const name = path.slice(0, slash);
  const inner = slash === -1 ? undefined : directory.directories?.get(name);
  if (inner === undefined) directory.lines.delete(path);
  else if (remove(inner, path.slice(slash + 1))) directory.directories?.delete(name);
  return directory.lines.size === 0 && (directory.directories?.size ?? 0) === 0;
}

/** The directory and all that stand in it, at any depth, with their paths. */
function* treeOf(path: string, directory?: Directory): Iterable<readonly [string, Directory]> {
  if (directory === undefined) return;
  yield [path, directory];
  for (const [name, inner] of directory.directories ?? []) yield* treeOf(join(path, name), inner);
}

function namesOf(path: string): readonly string[] {
  return path === '' ? [] : path.split('/');
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
