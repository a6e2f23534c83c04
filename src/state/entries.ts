import { setImmediate as nextTurn } from 'node:timers/promises';
import { directoryOf, joinPath } from '../lib/file.js';
import { pathBelow } from '../lib/text.js';
import { type Entry, isLiveAt, type Place, type QuarantinedItem } from './entry.js';
import { decode, encode, ownCopy, statusOf, type UrlBases } from './line.js';

export type { Place } from './entry.js';

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
export type EntriesView = Omit<Entries, 'bases' | 'put' | 'set' | 'delete'>;

interface Folder {
  /** By path; those with records in or below them, and the folder itself. */
  readonly directories: Map<string, Directory>;
  readonly counts: Record<Entry['status'], number>;
  /** Paths relative to the folder. */
  readonly quarantined: Set<string>;
}

interface Directory {
  /** Where the lines are kept, by the name of the file. */
  readonly lines: Map<string, number>;
  /** The names of the directories in it. */
  directories?: Set<string>;
}

type Placed = readonly [folder: string, directory: string, name: string, line: string];

/** So many bytes a record grows by until it is confirmed. */
const ROOM: Partial<Record<Entry['status'], number>> = { pending: 48, accepted: 28 };
/** So many records are looked at in a slice. */
const SLICE = 1_000;

/**
 * The only copy of the records in memory, a line each, by folder, directory and name: about 230 bytes for a confirmed one. A
 * directory or a folder without records is not kept.
 *
 * A record is parsed as it is asked for, each time into a new object: compare what it contains. Iterables are live: they may be
 * followed while records change. A pass over all of 1,000,000 records takes 2 s where each is parsed, and 0.1 s where their
 * status leaves them out: use `slices` for it.
 */
export class Entries {
  readonly bases: UrlBases = [];
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
    const at = this.#directory(folder, directoryOf(path))?.lines.get(nameOf(path));
    return at === undefined ? undefined : this.#lines.get(at);
  }

  /** @returns the line that was there before, and that of now */
  put(entry: Entry): readonly [before: string | undefined, line: string] {
    const line = encode(entry, this.bases);
    return [this.set(entry.folder, entry.path, line), line];
  }

  /** @returns the line that was there before */
  set(folderName: string, path: string, line: string): string | undefined {
    let folder = this.#folders.get(folderName);
    if (folder === undefined) {
      folder = { directories: new Map(), counts: noCounts(), quarantined: new Set() };
      this.#folders.set(folderName, folder);
    }
    const { lines } = directoryIn(folder, directoryOf(path));
    const name = nameOf(path);
    const at = lines.get(name);
    const before = at === undefined ? undefined : this.#lines.get(at);
    if (before !== undefined) count(folder, path, statusOf(before), -1);
    const status = statusOf(line);
    count(folder, path, status, 1);
    const to = this.#lines.put(line, ROOM[status] ?? 0, at);
    if (at === undefined) lines.set(ownCopy(name), to);
    else if (to !== at) lines.set(name, to);
    return before;
  }

  /** @returns the line that was there */
  delete(folderName: string, path: string): string | undefined {
    const folder = this.#folders.get(folderName);
    const directory = folder?.directories.get(directoryOf(path));
    const at = directory?.lines.get(nameOf(path));
    if (folder === undefined || directory === undefined || at === undefined) return undefined;
    const before = this.#lines.get(at);
    this.#lines.remove(at);
    count(folder, path, statusOf(before), -1);
    directory.lines.delete(nameOf(path));
    removeEmpty(folder, directoryOf(path));
    if (folder.directories.size === 0) this.#folders.delete(folderName);
    return before;
  }

  /** The names of the files directly in `directory` that have records. */
  names(folder: string, directory: string): Iterable<string> {
    return this.#directory(folder, directory)?.lines.keys() ?? [];
  }

  /** The names of the directories directly in `directory` that have records in or below them. */
  knownDirectories(folder: string, directory: string): Iterable<string> {
    return this.#directory(folder, directory)?.directories ?? [];
  }

  /** The records of all files below `directory`, at a cost of its directories and its records. */
  underDirectory(folder: string, directory: string): Iterable<Entry> {
    return this.#parsed(this.lines(folder, directory));
  }

  /** All records, or all of one folder, or those with one of the statuses, without a pause. */
  all(folder?: string, ...status: Entry['status'][]): Iterable<Entry> {
    return this.#parsed(this.lines(folder), { status });
  }

  /**
   * The chosen records, in slices that take a few milliseconds each; the event loop turns between two. Iterate each
   * slice as it comes: a record is read when its turn comes, so that it is never an older one.
   */
  async *slices(selection: Selection = {}): AsyncGenerator<Iterable<Entry>> {
    const lines = this.lines(selection.folder, selection.directory)[Symbol.iterator]();
    let hasMore = true;
    const slice = function* () {
      for (let i = 0; i < SLICE && hasMore; i += 1) {
        const next = lines.next();
        if (next.done) hasMore = false;
        else yield next.value;
      }
    };
    while (hasMore) {
      yield this.#parsed(slice(), selection);
      await nextTurn();
    }
  }

  /** The quarantined ones, at a cost of their number. */
  *quarantined(): Iterable<QuarantinedItem> {
    for (const [folder, { quarantined }] of this.#folders) {
      for (const path of quarantined) {
        const entry = this.get(folder, path);
        if (entry?.status === 'quarantined') yield entry;
      }
    }
  }

  /** The names of the folders that have records. */
  folders(): Iterable<string> {
    return this.#folders.keys();
  }

  /** The record of another file that is there, and has this URL for its document or may have had it. */
  ownerOf(url: string, except: Place): Entry | undefined {
    for (const entry of this.mayBeAt(url))
      if ((entry.folder !== except.folder || entry.path !== except.path) && isLiveAt(entry, url))
        return entry;
    return undefined;
  }

  /** The records of all files, of any folder, that have or ever had this URL, and of some others. */
  *mayBeAt(url: string): Iterable<Entry> {
    const seen = new Set<string>();
    for (const base of this.bases) {
      const path = base?.url === undefined ? undefined : pathBelow(base.url, url);
      if (path === undefined) continue;
      for (const form of new Set([path, path.normalize('NFD')])) {
        if (seen.has(form)) continue;
        seen.add(form);
        for (const folder of this.#folders.keys()) {
          const entry = this.get(folder, form);
          if (entry !== undefined) yield entry;
        }
      }
    }
  }

  counts(folder?: string): Counts {
    const sum = noCounts();
    for (const name of folder === undefined ? this.#folders.keys() : [folder]) {
      const counts = this.#folders.get(name)?.counts ?? noCounts();
      for (const status of Object.keys(sum) as Entry['status'][]) sum[status] += counts[status];
    }
    return sum;
  }

  /** Everything, all of one folder, or what is below one directory of it, as it stands here. */
  *lines(folder?: string, directory = ''): Iterable<Placed> {
    for (const each of folder === undefined ? this.#folders.keys() : [folder]) {
      for (const [path, { lines }] of below(this.#folders.get(each), directory)) {
        for (const [name, at] of lines) yield [each, path, name, this.#lines.get(at)];
      }
    }
  }

  *#parsed(lines: Iterable<Placed>, { status = [], where }: Selection = {}): Iterable<Entry> {
    for (const [folder, directory, name, line] of lines) {
      if (status.length > 0 && !status.includes(statusOf(line))) continue;
      if (where?.(line) === false) continue;
      yield decode(line, folder, joinPath(directory, name), this.bases);
    }
  }

  #directory(folder: string, path: string): Directory | undefined {
    return this.#folders.get(folder)?.directories.get(path);
  }
}

function noCounts(): Record<Entry['status'], number> {
  return {
    pending: 0,
    accepted: 0,
    confirmed: 0,
    quarantined: 0,
    gone: 0,
    skipped: 0,
    removing: 0,
    removed: 0,
  };
}

/** The record comes (1) or goes (-1). */
function count(folder: Folder, path: string, status: Entry['status'], by: 1 | -1): void {
  folder.counts[status] += by;
  if (status !== 'quarantined') return;
  if (by === 1) folder.quarantined.add(ownCopy(path));
  else folder.quarantined.delete(path);
}

/** The directory, made where it is not known, with those that it stands in. */
function directoryIn(folder: Folder, path: string): Directory {
  const known = folder.directories.get(path);
  if (known !== undefined) return known;
  const made = { lines: new Map() };
  folder.directories.set(ownCopy(path), made);
  if (path !== '') {
    const outer = directoryIn(folder, directoryOf(path));
    outer.directories ??= new Set();
    outer.directories.add(ownCopy(nameOf(path)));
  }
  return made;
}

/** Removes the directory, and those that it stands in, as far as nothing is left in them. */
function removeEmpty(folder: Folder, path: string): void {
  const directory = folder.directories.get(path);
  if ((directory?.lines.size ?? 0) + (directory?.directories?.size ?? 0) > 0) return;
  folder.directories.delete(path);
  if (path === '') return;
  folder.directories.get(directoryOf(path))?.directories?.delete(nameOf(path));
  removeEmpty(folder, directoryOf(path));
}

/** The directory and all that stand in it, at any depth, with their paths. */
function* below(folder: Folder | undefined, path: string): Iterable<readonly [string, Directory]> {
  const directory = folder?.directories.get(path);
  if (directory === undefined) return;
  yield [path, directory];
  for (const name of directory.directories ?? []) yield* below(folder, joinPath(path, name));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Texts are kept in steps of so many bytes. */
const UNIT = 16;
/** Before each text stand its length in bytes and the units of its place, 4 bytes each. */
const HEADER = 8;
const SLAB_UNITS = 65_536;

/**
 * Keeps lines of text outside of the heap of V8, by number. A million strings that change a few times each leave a heap full of
 * holes and keep its collector busy: 427 MB of heap for 289 MB of strings, and pauses of 50 to 90 ms. Here a line is
 * written over itself while it fits, and the place of one that went is taken by the next of its size.
 *
 * Memory is taken 1 MiB at a time and never given back.
 */
export class LineStore {
  readonly #slabs: Buffer[] = [];
  /** Free places by their units. */
  readonly #free = new Map<number, number[]>();
  /** Units taken of the last slab. */
  #taken = SLAB_UNITS;

  get(at: number): string {
    const slab = this.#slabOf(at);
    const start = offsetOf(at) + HEADER;
    return slab.toString('utf8', start, start + slab.readUInt32LE(start - HEADER));
  }

  /**
   * @param room how much the line is likely to grow, in bytes, where it needs a place
   * @param at the number of the line that it replaces
   * @returns the number of the line, until it is put anew or removed
   */
  put(line: string, room: number, at?: number): number {
    const bytes = Buffer.byteLength(line);
    let to = at;
    if (to === undefined || HEADER + bytes > UNIT * this.#unitsOf(to)) {
      if (to !== undefined) this.remove(to);
      to = this.#take(Math.ceil((HEADER + bytes + room) / UNIT));
    }
    const slab = this.#slabOf(to);
    slab.writeUInt32LE(bytes, offsetOf(to));
    slab.write(line, offsetOf(to) + HEADER);
    return to;
  }

  remove(at: number): void {
    const units = this.#unitsOf(at);
    const free = this.#free.get(units);
    if (free === undefined) this.#free.set(units, [at]);
    else free.push(at);
  }

  /** A free place, or a new one at the end; a slab for itself where it is larger than one. */
  #take(units: number): number {
    const free = this.#free.get(units)?.pop();
    if (free !== undefined) return free;
    if (this.#taken + units > SLAB_UNITS) {
      this.#slabs.push(Buffer.allocUnsafeSlow(UNIT * Math.max(SLAB_UNITS, units)));
      this.#taken = 0;
    }
    const at = (this.#slabs.length - 1) * SLAB_UNITS + this.#taken;
    this.#taken += units;
    this.#slabOf(at).writeUInt32LE(units, offsetOf(at) + 4);
    return at;
  }

  #unitsOf(at: number): number {
    return this.#slabOf(at).readUInt32LE(offsetOf(at) + 4);
  }

  #slabOf(at: number): Buffer {
    const slab = this.#slabs[Math.floor(at / SLAB_UNITS)];
    if (slab === undefined) throw new Error(`there is no line ${at}`);
    return slab;
  }
}

/** Of a place in its slab, in bytes. */
function offsetOf(at: number): number {
  return UNIT * (at % SLAB_UNITS);
}
