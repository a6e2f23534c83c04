import { directoryOf, joinPath } from '../lib/file.js';
import { nextTurn, Pace, SLICE_ITEMS } from '../lib/slices.js';
import type { Entries } from './entries.js';
import { type Counts, EntriesReader, type PlacedLine, zeroCounts } from './entries-reader.js';
import { type Entry, type ItemKey, recordKey } from './entry.js';
import { baseOf, sinceOf, statusOf, type UrlBases, type Work, workOf } from './line.js';

/**
 * Called for each change of a record that has reached the disk, unless its status, the time of that
 * and its destination are as before. A skipped file counts as no record. Must not throw.
 */
export type CommitListener = (after: Work | undefined, before: Work | undefined) => void;

/**
 * The records and small values that differ from the disk and, for a record, its line on disk
 * (undefined if there is none).
 *
 * A change is
 *
 * - *waiting*, from the moment it is made;
 * - *being written*, once a write has begun. A write takes all waiting changes;
 * - removed from here when the write succeeds, or waiting again when it fails.
 *
 * The row of a change is generated late and contains the latest version of the record.
 */
export class Changes {
  #waiting = new Map<string, string | undefined>();
  #writing = new Map<string, string | undefined>();

  get size(): number {
    return this.#waiting.size + this.#writing.size;
  }

  /** @param key `recordKey` of a record, or the name of a small value */
  add(key: string, onDisk?: string): void {
    if (!this.#waiting.has(key)) this.#waiting.set(key, onDisk);
  }

  has(key: string): boolean {
    return this.#writing.has(key) || this.#waiting.has(key);
  }

  /** Returns the line that a changed record has on disk. */
  onDisk(key: string): string | undefined {
    return this.#writing.has(key) ? this.#writing.get(key) : this.#waiting.get(key);
  }

  *keys(): Iterable<string> {
    yield* this.#writing.keys();
    for (const key of this.#waiting.keys()) if (!this.#writing.has(key)) yield key;
  }

  /** Begins a write of all waiting changes. */
  beginWrite(): void {
    this.#writing = this.#waiting;
    this.#waiting = new Map();
  }

  /**
   * Yields the keys being written. Consume a key as its row is generated: the row includes the
   * changes made until then, which stop waiting.
   */
  *keysBeingWritten(): Iterable<string> {
    for (const key of this.#writing.keys()) {
      this.#waiting.delete(key);
      yield key;
    }
  }

  /** Ends a failed write: its changes wait again. */
  abortWrite(): void {
    for (const [key, line] of this.#waiting)
      if (!this.#writing.has(key)) this.#writing.set(key, line);
    this.#waiting = this.#writing;
    this.#writing = new Map();
  }

  /**
   * Removes up to `most` changes of a successful write.
   *
   * @returns the changes removed, each with the line that was on disk before
   */
  *finishWrite(most: number): Iterable<readonly [key: string, before: string | undefined]> {
    let left = most;
    for (const change of this.#writing) {
      if (left === 0) return;
      left -= 1;
      this.#writing.delete(change[0]);
      yield change;
    }
  }

  get isWriting(): boolean {
    return this.#writing.size > 0;
  }
}

/**
 * The records as they are on disk. Status and reports show these, so that a kill makes no statement
 * untrue. They are the records in memory, except for the changes that are not on disk yet.
 */
export class CommittedEntries extends EntriesReader {
  readonly bases: UrlBases;
  readonly #listeners = new Set<CommitListener>();
  /** Counts in memory minus counts on disk, by folder. */
  readonly #uncommittedCounts = new Map<string, Record<Entry['status'], number>>();

  constructor(
    private readonly inMemory: Entries,
    private readonly changes: Changes,
  ) {
    super();
    this.bases = inMemory.bases;
  }

  /** Called when a record was changed in memory. */
  recordChange(
    folder: string,
    path: string,
    before: string | undefined,
    after: string | undefined,
  ): void {
    this.changes.add(recordKey(folder, path), before);
    this.#count(folder, before, after, 1);
  }

  /**
   * Calls `listener` for each change of a record that reaches the disk. Returns a function that
   * unsubscribes.
   */
  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Called when the changes being written are on disk. */
  async afterWrite(): Promise<void> {
    while (this.changes.isWriting) {
      for (const [key, before] of this.changes.finishWrite(SLICE_ITEMS))
        this.#afterChange(key, before);
      if (this.changes.isWriting) await nextTurn();
    }
  }

  #afterChange(key: string, lineBefore: string | undefined): void {
    const [folder = '', path] = key.split('\0');
    if (path === undefined) return;
    const line = this.line(folder, path);
    this.#count(folder, lineBefore, line, -1);
    if (this.#listeners.size === 0 || isSameStage(lineBefore, line)) return;
    const before = lineBefore === undefined ? undefined : workOf(lineBefore, this.bases);
    const after = line === undefined ? undefined : workOf(line, this.bases);
    for (const listener of this.#listeners) listener(after, before);
  }

  line(folder: string, path: string): string | undefined {
    if (this.changes.size === 0) return this.inMemory.line(folder, path);
    const key = recordKey(folder, path);
    return this.changes.has(key) ? this.changes.onDisk(key) : this.inMemory.line(folder, path);
  }

  *lines(folder?: string, directory = ''): Iterable<PlacedLine> {
    // First, so that a reader that continues after one of them skips nothing.
    yield* this.#linesOnDiskOnly(folder, directory);
    for (const placed of this.inMemory.lines(folder, directory)) {
      const key =
        this.changes.size === 0 ? '' : recordKey(placed[0], joinPath(placed[1], placed[2]));
      if (!this.changes.has(key)) yield placed;
      else {
        const line = this.changes.onDisk(key);
        if (line !== undefined) yield [placed[0], placed[1], placed[2], line];
      }
    }
  }

  *linesIn(folder: string, directory: string): Iterable<readonly [name: string, line: string]> {
    for (const [name, inMemory] of this.inMemory.linesIn(folder, directory)) {
      const key = this.changes.size === 0 ? '' : recordKey(folder, joinPath(directory, name));
      const line = this.changes.has(key) ? this.changes.onDisk(key) : inMemory;
      if (line !== undefined) yield [name, line];
    }
  }

  names(folder: string, directory: string): Iterable<string> {
    return this.inMemory.names(folder, directory);
  }

  knownDirectories(folder: string, directory: string): Iterable<string> {
    return this.inMemory.knownDirectories(folder, directory);
  }

  async pathsDeletedUncommitted(folder: string): Promise<string[]> {
    const paths: string[] = [];
    const pace = new Pace();
    for (const key of this.changes.keys()) {
      if (pace.step()) await nextTurn();
      const [name = '', path = ''] = key.split('\0');
      if (name !== folder || this.changes.onDisk(key) === undefined) continue;
      if (this.inMemory.line(name, path) === undefined) paths.push(path);
    }
    return paths;
  }

  counts(folder?: string): Counts {
    const counts = { ...this.inMemory.counts(folder) };
    for (const [name, ahead] of this.#uncommittedCounts) {
      if (folder !== undefined && name !== folder) continue;
      for (const status of Object.keys(ahead) as Entry['status'][]) counts[status] -= ahead[status];
    }
    return counts;
  }

  *folders(): Iterable<string> {
    const inMemory = new Set(this.inMemory.folders());
    yield* inMemory;
    for (const name of this.#uncommittedCounts.keys()) if (!inMemory.has(name)) yield name;
  }

  *quarantinedPlaces(): Iterable<ItemKey> {
    for (const place of this.inMemory.quarantinedPlaces())
      if (!this.changes.has(recordKey(place.folder, place.path))) yield place;
    for (const key of this.changes.keys()) {
      const line = this.changes.onDisk(key);
      const [folder = '', path = ''] = key.split('\0');
      if (line !== undefined && statusOf(line) === 'quarantined') yield { folder, path };
    }
  }

  /** Yields the records that are on disk and no longer in memory. */
  *#linesOnDiskOnly(wanted: string | undefined, below: string): Iterable<PlacedLine> {
    for (const key of this.changes.keys()) {
      const line = this.changes.onDisk(key);
      const [folder = '', path = ''] = key.split('\0');
      if (line === undefined || this.inMemory.line(folder, path) !== undefined) continue;
      if (wanted !== undefined && folder !== wanted) continue;
      if (below !== '' && !path.startsWith(`${below}/`)) continue;
      const directory = directoryOf(path);
      yield [folder, directory, path.slice(directory === '' ? 0 : directory.length + 1), line];
    }
  }

  #count(folder: string, before: string | undefined, after: string | undefined, by: 1 | -1): void {
    let ahead = this.#uncommittedCounts.get(folder);
    if (ahead === undefined) {
      ahead = zeroCounts();
      this.#uncommittedCounts.set(folder, ahead);
    }
    if (before !== undefined) ahead[statusOf(before)] -= by;
    if (after !== undefined) ahead[statusOf(after)] += by;
  }
}

/** Whether two lines have the same status, since the same time, and the same destination. */
function isSameStage(before: string | undefined, after: string | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  return (
    statusOf(before) === statusOf(after) &&
    sinceOf(before) === sinceOf(after) &&
    baseOf(before) === baseOf(after)
  );
}
