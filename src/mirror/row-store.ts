import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { compareByCodePoint } from '../lib/text.js';
import type { TableRow } from '../peer/table.js';
import { MirrorError, writeError } from './errors.js';
import { KEY_COLUMN } from './formats/write.js';
import { temporaryName } from './whole-file.js';

export interface RowStoreOptions {
  /** Where the rows wait; made (0700) when it does not exist. */
  readonly directory: string;
  /** The table, for errors. */
  readonly name: string;
  /** Columns by which the rows are ordered, as text, "pk" for the key; by key unless given. */
  readonly sortBy?: readonly string[] | undefined;
  /** Columns that are known ahead; they come first. */
  readonly columns?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Characters of rows that are sorted at once. @default 256 Ki; more than 1,000 rows never are */
  readonly budget?: number;
}

/** As many as a spreadsheet has; a peer that answers more is not answering a table. */
const MOST_COLUMNS = 16_384;
const SORTED_CHARACTERS = 2 ** 18;
/** Rows that are sorted at once, without a pause. */
const SORTED_ROWS = 1_000;
const READ_BYTES = 2 ** 17;
/** Of all runs that are merged; of each at least 512 bytes, and no more than 16 KiB. */
const MERGE_READ_BYTES = 2 ** 21;
/** Most rows in one group of a merge. */
const GROUP = 500;
const LINE_FEED = 10;

/** Part of a file, in bytes. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Many of these are in memory at once, and a line is a tenth of a row. */
interface KeyedLine {
  /** By what it is compared: the texts of the columns asked for, then its key. */
  readonly key: readonly string[];
  readonly line: string;
}

/**
 * The rows of a table on their way to a file: the peer sends them once, in its own order, and which columns there are is known
 * only at the end. They wait on disk, so that memory does not grow with them.
 *
 * A store is *filled* once, then *read* as often as one likes, then *closed*. While it is filled, rows are sorted as many at a time
 * as fit the budget; each lot goes on with the run before it or begins another. Runs are merged while they are read. Rows of the
 * same key stay all of them, in the order in which they came.
 */
export class RowStore {
  readonly #options: RowStoreOptions;
  readonly #numbers = new Map<string, number>();
  readonly #columns: string[] = [];
  readonly #file: ScratchFile;
  /** Parts of the file that are in order. */
  readonly #runs: Stretch[] = [];
  #rows = 0;

  private constructor(options: RowStoreOptions, file: ScratchFile) {
    this.#options = options;
    this.#file = file;
    for (const column of options.columns ?? []) this.#numberOf(column);
  }

  /**
   * Takes in all rows.
   *
   * @throws MirrorError MIRROR_TOO_WIDE, MIRROR_FULL, MIRROR_BLOCKED, MIRROR_UNWRITABLE; and whatever `rows` and the signal throw
   */
  static async fill(rows: AsyncIterable<readonly TableRow[]>, options: RowStoreOptions): Promise<RowStore> {
    const store = new RowStore(options, await ScratchFile.open(options.directory));
    try {
      await store.#fill(rows);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** How many rows there are. */
  get rows(): number {
    return this.#rows;
  }

  /** All columns that are known, without the key, in the order in which they came up first. */
  get columns(): readonly string[] {
    return this.#columns;
  }

  /** The rows in the wanted order. An empty cell may have become an absent one. */
  async *read(): AsyncGenerator<readonly TableRow[], void> {
    const [first, second] = this.#runs;
    if (first === undefined) return;
    if (second !== undefined) {
      for await (const group of this.#merge()) yield this.#rowsOf(group.map(({ line }) => line));
      return;
    }
    for await (const lines of this.#file.lines(first, READ_BYTES)) {
      this.#options.signal?.throwIfAborted();
      yield this.#rowsOf(lines);
    }
  }

  /** Gives the disk back; closing twice is harmless. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  async #fill(rows: AsyncIterable<readonly TableRow[]>): Promise<void> {
    const { signal, name, budget = SORTED_CHARACTERS } = this.#options;
    let lot: KeyedLine[] = [];
    let characters = 0;
    let last: KeyedLine | undefined;
    const keep = async (): Promise<void> => {
      const [first] = lot.sort(compare);
      if (first === undefined) return;
      const { from, to } = await this.#file.add(lot);
      const before = last !== undefined && compare(last, first) <= 0 ? this.#runs.pop() : undefined;
      this.#runs.push({ from: before?.from ?? from, to });
      last = lot.at(-1);
      lot = [];
      characters = 0;
    };
    for await (const group of rows) {
      signal?.throwIfAborted();
      for (const row of group) {
        const line = this.#lineOf(row);
        lot.push({ key: this.#keyOf(row), line });
        this.#rows += 1;
        characters += line.length;
        if (characters >= budget || lot.length >= SORTED_ROWS) await keep();
      }
      if (this.#columns.length > MOST_COLUMNS) {
        throw new MirrorError('MIRROR_TOO_WIDE', name, `${MOST_COLUMNS}`);
      }
    }
    await keep();
  }

  /** What compares as equal stays in the order of the runs. */
  async *#merge(): AsyncGenerator<readonly KeyedLine[], void> {
    const heads: Head[] = [];
    const step = Math.min(2 ** 14, Math.max(512, MERGE_READ_BYTES / this.#runs.length));
    for (const [place, run] of this.#runs.entries()) {
      const groups = this.#keyedLines(run, Math.ceil(step));
      const { value: group = [] } = await groups.next();
      insert(heads, { place, groups, group, at: 0 });
    }
    let merged: KeyedLine[] = [];
    for (let head = heads.shift(); head !== undefined; head = heads.shift()) {
      const line = head.group[head.at];
      if (line === undefined) continue;
      merged.push(line);
      head.at += 1;
      // What was taken is handed on before more is read: memory holds one group of each run and no more.
      if (head.at === head.group.length || merged.length === GROUP) {
        yield merged;
        merged = [];
      }
      if (head.at === head.group.length) {
        head.group = (await head.groups.next()).value ?? [];
        head.at = 0;
      }
      insert(heads, head);
    }
  }

  async *#keyedLines(run: Stretch, step: number): AsyncGenerator<readonly KeyedLine[], void> {
    for await (const lines of this.#file.lines(run, step)) {
      this.#options.signal?.throwIfAborted();
      yield this.#rowsOf(lines).map((row, i) => ({ key: this.#keyOf(row), line: lines[i] ?? '' }));
    }
  }

  #keyOf({ pk, cells }: TableRow): readonly string[] {
    const { sortBy = [] } = this.#options;
    return [...sortBy.map((column) => (column === KEY_COLUMN ? pk : (cells.get(column) ?? ''))), pk];
  }

  /** A JSON list of the key, then of each cell that is not empty the number of its column and its text. */
  #lineOf({ pk, cells }: TableRow): string {
    const parts: (string | number)[] = [pk];
    for (const [column, text] of cells) {
      const number = this.#numberOf(column);
      if (text !== '') parts.push(number, text);
    }
    return JSON.stringify(parts);
  }

  #numberOf(column: string): number {
    const number = this.#numbers.get(column) ?? this.#columns.push(column) - 1;
    this.#numbers.set(column, number);
    return number;
  }

  #rowsOf(lines: readonly string[]): TableRow[] {
    const lists = JSON.parse(`[${lines.join(',')}]`) as readonly (readonly [string, ...unknown[]])[];
    return lists.map(([pk, ...parts]) => {
      const cells = new Map<string, string>();
      for (let i = 0; i < parts.length; i += 2) {
        cells.set(this.#columns[Number(parts[i])] ?? '', String(parts[i + 1]));
      }
      return { pk, cells };
    });
  }
}

/** Where a merge stands in one run: at a line of the group that was read last. */
interface Head {
  readonly place: number;
  readonly groups: AsyncIterator<readonly KeyedLine[], void>;
  group: readonly KeyedLine[];
  at: number;
}

/** Puts a head where it belongs among the others, which are in order; one whose run is over goes. */
function insert(heads: Head[], head: Head): void {
  const line = head.group[head.at];
  if (line === undefined) return;
  let from = 0;
  for (let to = heads.length; from < to; ) {
    const middle = (from + to) >> 1;
    const { group = [], at = 0, place = 0 } = heads[middle] ?? {};
    const order = compare(group[at] ?? line, line) || place - head.place;
    if (order < 0) from = middle + 1;
    else to = middle;
  }
  heads.splice(from, 0, head);
}

function compare(a: KeyedLine, b: KeyedLine): number {
  for (let i = 0; i < a.key.length; i += 1) {
    const order = compareByCodePoint(a.key[i] ?? '', b.key[i] ?? '');
    if (order !== 0) return order;
  }
  return 0;
}

/**
 * Lines on disk that are read again later. The file has no name any more as soon as it is open: nothing of it stays, however the
 * process ends.
 */
class ScratchFile {
  readonly #directory: string;
  readonly #handle: FileHandle;
  #size = 0;

  private constructor(directory: string, handle: FileHandle) {
    this.#directory = directory;
    this.#handle = handle;
  }

  /** @throws MirrorError MIRROR_FULL, MIRROR_BLOCKED, MIRROR_UNWRITABLE; so does every other call */
  static async open(directory: string): Promise<ScratchFile> {
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, temporaryName());
      const handle = await open(path, 'wx+', 0o600);
      await unlink(path);
      return new ScratchFile(directory, handle);
    } catch (error) {
      throw writeError(error, directory);
    }
  }

  /** Adds lines; none holds a line break. */
  async add(lines: readonly KeyedLine[]): Promise<Stretch> {
    const chunk = Buffer.from(lines.map(({ line }) => `${line}\n`).join(''));
    await this.#onDisk(this.#handle.writeFile(chunk));
    this.#size += chunk.length;
    return { from: this.#size - chunk.length, to: this.#size };
  }

  /** The lines of a stretch, read about `step` bytes at a time: each group is what one read ends. */
  async *lines({ from, to }: Stretch, step: number): AsyncGenerator<readonly string[], void> {
    const chunk = Buffer.allocUnsafe(Math.min(step, to - from));
    let begun: Buffer[] = [];
    for (let at = from; at < to; ) {
      const bytes = Math.min(step, to - at);
      const { bytesRead } = await this.#onDisk(this.#handle.read(chunk, 0, bytes, at));
      if (bytesRead === 0) throw writeError(new Error('it became shorter'), this.#directory);
      const read = chunk.subarray(0, bytesRead);
      at += bytesRead;
      const end = read.lastIndexOf(LINE_FEED);
      if (end !== -1)
        yield Buffer.concat([...begun, read.subarray(0, end)])
          .toString()
          .split('\n');
      // What a line begins with is copied: the next read overwrites it.
      const rest = Buffer.from(read.subarray(end + 1));
      begun = end === -1 ? [...begun, rest] : [rest];
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  #onDisk<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw writeError(error, this.#directory);
    });
  }
}
