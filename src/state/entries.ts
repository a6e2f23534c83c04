import { directoryOf, joinPath } from '../lib/file.js';
import { type Counts, EntriesReader, type PlacedLine, zeroCounts } from './entries-reader.js';
import type { Entry, ItemKey } from './entry.js';
import { detachedCopy, encode, statusOf, type UrlBases } from './line.js';

export type { Counts } from './entries-reader.js';
export type { ItemKey } from './entry.js';

/** A read-only view of the records. */
export type EntriesView = Omit<Entries, 'put' | 'set' | 'delete'>;

interface Folder {
  /** Directories by path: the folder itself, and each directory that has records at any depth. */
  readonly directories: Map<string, Directory>;
  readonly counts: Record<Entry['status'], number>;
  /** Paths of quarantined items, relative to the folder. */
  readonly quarantined: Set<string>;
}

interface Directory {
  /** Numbers of the lines in the `LineStore`, by file name. */
  readonly lines: Map<string, number>;
  /** Names of the directories directly in it. */
  directories?: Set<string>;
}

/** Growth of a record until it is confirmed, in bytes, by status. */
const GROWTH_BYTES: Partial<Record<Entry['status'], number>> = { pending: 48, accepted: 28 };
/**
 * The only copy of the records in memory: a line each, by folder, directory and name. A confirmed
 * item takes about 230 bytes. Directories and folders without records are dropped.
 */
export class Entries extends EntriesReader {
  readonly bases: UrlBases = [];
  readonly #folders = new Map<string, Folder>();
  readonly #lines = new LineStore();
  #lineLength = 0;

  /** The length of all records as lines of a file, in characters. */
  get lineLength(): number {
    return this.#lineLength;
  }

  line(folder: string, path: string): string | undefined {
    const at = this.#directory(folder, directoryOf(path))?.lines.get(nameOf(path));
    return at === undefined ? undefined : this.#lines.get(at);
  }

  /** @returns the line before and the new line */
  put(entry: Entry): readonly [before: string | undefined, line: string] {
    const line = encode(entry, this.bases);
    return [this.set(entry.folder, entry.path, line), line];
  }

  /** @returns the line before */
  set(folderName: string, path: string, line: string): string | undefined {
    let folder = this.#folders.get(folderName);
    if (folder === undefined) {
      folder = { directories: new Map(), counts: zeroCounts(), quarantined: new Set() };
      this.#folders.set(folderName, folder);
    }
    const { lines } = directoryIn(folder, directoryOf(path));
    const name = nameOf(path);
    const at = lines.get(name);
    const before = at === undefined ? undefined : this.#lines.get(at);
    if (before !== undefined) count(folder, path, statusOf(before), -1);
    else this.#lineLength += lengthBeside(folderName, path);
    this.#lineLength += line.length - (before?.length ?? 0);
    const status = statusOf(line);
    count(folder, path, status, 1);
    const to = this.#lines.put(line, GROWTH_BYTES[status] ?? 0, at);
    if (at === undefined) lines.set(detachedCopy(name), to);
    else if (to !== at) lines.set(name, to);
    return before;
  }

  /** @returns the line that was removed */
  delete(folderName: string, path: string): string | undefined {
    const folder = this.#folders.get(folderName);
    const directory = folder?.directories.get(directoryOf(path));
    const at = directory?.lines.get(nameOf(path));
    if (folder === undefined || directory === undefined || at === undefined) return undefined;
    const before = this.#lines.get(at);
    this.#lines.remove(at);
    this.#lineLength -= lengthBeside(folderName, path) + before.length;
    count(folder, path, statusOf(before), -1);
    directory.lines.delete(nameOf(path));
    removeEmpty(folder, directoryOf(path));
    if (folder.directories.size === 0) this.#folders.delete(folderName);
    return before;
  }

  names(folder: string, directory: string): Iterable<string> {
    return this.#directory(folder, directory)?.lines.keys() ?? [];
  }

  *linesIn(folder: string, directory: string): Iterable<readonly [name: string, line: string]> {
    for (const [name, at] of this.#directory(folder, directory)?.lines ?? [])
      yield [name, this.#lines.get(at)];
  }

  knownDirectories(folder: string, directory: string): Iterable<string> {
    return this.#directory(folder, directory)?.directories ?? [];
  }

  /** Returns the number of directories of a folder that have records at any depth. */
  directoryCount(folder: string): number {
    return this.#folders.get(folder)?.directories.size ?? 0;
  }

  async pathsDeletedUncommitted(): Promise<string[]> {
    return [];
  }

  *quarantinedPlaces(): Iterable<ItemKey> {
    for (const [folder, { quarantined }] of this.#folders)
      for (const path of quarantined) yield { folder, path };
  }

  folders(): Iterable<string> {
    return this.#folders.keys();
  }

  counts(folder?: string): Counts {
    const sum = zeroCounts();
    for (const name of folder === undefined ? this.#folders.keys() : [folder]) {
      const counts = this.#folders.get(name)?.counts ?? zeroCounts();
      for (const status of Object.keys(sum) as Entry['status'][]) sum[status] += counts[status];
    }
    return sum;
  }

  *lines(folder?: string, directory = ''): Iterable<PlacedLine> {
    for (const each of folder === undefined ? this.#folders.keys() : [folder]) {
      for (const [path, { lines }] of below(this.#folders.get(each), directory)) {
        for (const [name, at] of lines) yield [each, path, name, this.#lines.get(at)];
      }
    }
  }

  #directory(folder: string, path: string): Directory | undefined {
    return this.#folders.get(folder)?.directories.get(path);
  }
}

/** The length of a line in a file beside the record: the checksum, the folder and the path. */
function lengthBeside(folder: string, path: string): number {
  return '01234567 "","",\n'.length + folder.length + path.length;
}

/** Counts a record that was added (1) or removed (-1). */
function count(folder: Folder, path: string, status: Entry['status'], by: 1 | -1): void {
  folder.counts[status] += by;
  if (status !== 'quarantined') return;
  if (by === 1) folder.quarantined.add(detachedCopy(path));
  else folder.quarantined.delete(path);
}

/** Returns the directory; creates it and its parents if they are missing. */
function directoryIn(folder: Folder, path: string): Directory {
  const known = folder.directories.get(path);
  if (known !== undefined) return known;
  const made = { lines: new Map() };
  folder.directories.set(detachedCopy(path), made);
  if (path !== '') {
    const outer = directoryIn(folder, directoryOf(path));
    outer.directories ??= new Set();
    outer.directories.add(detachedCopy(nameOf(path)));
  }
  return made;
}

/** Removes the directory and its parents, as long as they are empty. */
function removeEmpty(folder: Folder, path: string): void {
  const directory = folder.directories.get(path);
  if ((directory?.lines.size ?? 0) + (directory?.directories?.size ?? 0) > 0) return;
  folder.directories.delete(path);
  if (path === '') return;
  folder.directories.get(directoryOf(path))?.directories?.delete(nameOf(path));
  removeEmpty(folder, directoryOf(path));
}

/** Yields the directory and all directories below it, with their paths. */
function* below(folder: Folder | undefined, path: string): Iterable<readonly [string, Directory]> {
  const directory = folder?.directories.get(path);
  if (directory === undefined) return;
  yield [path, directory];
  for (const name of directory.directories ?? []) yield* below(folder, joinPath(path, name));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Slots are a multiple of this size, in bytes. */
const UNIT_BYTES = 16;
/**
 * Header of a slot: the length of its text in bytes and the size of the slot in units, 4 bytes
 * each.
 */
const HEADER_BYTES = 8;
const SLAB_UNITS = 65_536;

/**
 * Stores lines of text by number, outside the heap of V8. A million strings that change a few times
 * each fragment the heap and keep the garbage collector busy: 427 MB of heap for 289 MB of strings,
 * and pauses of 50 to 90 ms. Here a line is overwritten in its slot while it fits, and a freed slot
 * is reused for the next line of its size.
 *
 * Memory is allocated 1 MiB at a time and never freed.
 */
export class LineStore {
  readonly #slabs: Buffer[] = [];
  /** Free slots by their size in units. */
  readonly #free = new Map<number, number[]>();
  /** Units used in the last slab. */
  #usedUnits = SLAB_UNITS;

  get(at: number): string {
    const slab = this.#slabOf(at);
    const start = offsetOf(at) + HEADER_BYTES;
    return slab.toString('utf8', start, start + slab.readUInt32LE(start - HEADER_BYTES));
  }

  /**
   * @param room how much the line is likely to grow, in bytes, if it needs a new slot
   * @param at the number of the line that it replaces
   * @returns the number of the line, valid until the line is replaced or removed
   */
  put(line: string, room: number, at?: number): number {
    const bytes = Buffer.byteLength(line);
    let to = at;
    if (to === undefined || HEADER_BYTES + bytes > UNIT_BYTES * this.#unitsOf(to)) {
      if (to !== undefined) this.remove(to);
      to = this.#allocate(Math.ceil((HEADER_BYTES + bytes + room) / UNIT_BYTES));
    }
    const slab = this.#slabOf(to);
    slab.writeUInt32LE(bytes, offsetOf(to));
    slab.write(line, offsetOf(to) + HEADER_BYTES);
    return to;
  }

  remove(at: number): void {
    const units = this.#unitsOf(at);
    const free = this.#free.get(units);
    if (free === undefined) this.#free.set(units, [at]);
    else free.push(at);
  }

  /**
   * Returns a free slot of this size, or a new one at the end. A slot larger than a slab gets a
   * slab of its own.
   */
  #allocate(units: number): number {
    const free = this.#free.get(units)?.pop();
    if (free !== undefined) return free;
    if (this.#usedUnits + units > SLAB_UNITS) {
      this.#slabs.push(Buffer.allocUnsafeSlow(UNIT_BYTES * Math.max(SLAB_UNITS, units)));
      this.#usedUnits = 0;
    }
    const at = (this.#slabs.length - 1) * SLAB_UNITS + this.#usedUnits;
    this.#usedUnits += units;
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

/** Returns the offset of a slot in its slab, in bytes. */
function offsetOf(at: number): number {
  return UNIT_BYTES * (at % SLAB_UNITS);
}
