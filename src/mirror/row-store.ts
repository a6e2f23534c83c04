import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { compareByCodePoint } from '../lib/text.js';
import type { TableRow } from '../peer/table.js';
import { MirrorError, onDisk } from './errors.js';
import { KEY_COLUMN } from './formats/write.js';

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
}

/** As many as a spreadsheet has; a peer that answers more is not answering a table. */
const MOST_COLUMNS = 16_384;
const SORTED_CHARACTERS = 2 ** 18;
/** Rows that are sorted at once, without a pause. */
const SORTED_ROWS = 1_000;
/** Bytes that are read of all runs that are merged; of each at least 512, and at most 64 KiB. */
const MERGE_READ_BYTES = 2 ** 21;
/** Most rows in one group of a merge. */
const GROUP = 500;

/** Part of a file, in bytes. */
type Stretch = Readonly<Record<'from' | 'to', number>>;

/** Where a merge stands in one run: at a row of the group that was read last. */
interface Head {
  readonly place: number;
  readonly groups: AsyncIterator<readonly TableRow[], void>;
  group: readonly TableRow[];
  at: number;
  /** Of the row that it stands at. */
  order: string;
}

/**
 * The rows of a table on their way to a file: the peer sends them once, in its own order, and which
 * columns there are is known only at the end. They wait on disk, so that memory does not grow with
 * them.
 *
 * A store is *filled* once, then *read* as often as one likes, then *closed*. While it is filled,
 * rows are sorted as many at a time as fit the budget; each lot goes on with the run before it or
 * begins another. Runs are merged while they are read. Rows of the same key stay all of them, in
 * the order in which they came.
 *
 * Its file has no name any more as soon as it is open: nothing of it stays, however the process
 * ends.
 */
export class RowStore {
  /** How many rows there are. */
  rows = 0;
  /** The columns by their numbers. */
  readonly #numbers = new Map<string, number>();
  #size = 0;
  /** Parts of the file that are in order. */
  readonly #runs: Stretch[] = [];

  private constructor(
    private readonly options: RowStoreOptions,
    private readonly file: FileHandle,
  ) {
    for (const column of options.columns ?? []) this.#numberOf(column);
  }

  /** All columns that are known, without the key, in the order in which they came up first. */
  get columns(): readonly string[] {
    return [...this.#numbers.keys()];
  }

  /**
   * Takes in all rows.
   *
   * @throws MirrorError MIRROR_TOO_WIDE, MIRROR_FULL, MIRROR_BLOCKED, MIRROR_UNWRITABLE; and
   *   whatever `rows` and the signal throw
   */
  static async fill(
    rows: AsyncIterable<readonly TableRow[]>,
    options: RowStoreOptions,
  ): Promise<RowStore> {
    const { directory } = options;
    const file = await onDisk(directory, async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, `.rows-${randomBytes(8).toString('hex')}.tmp`);
      const handle = await open(path, 'wx+', 0o600);
      await rm(path);
      return handle;
    });
    const store = new RowStore(options, file);
    try {
      await store.#fill(rows);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /**
   * The rows in the wanted order. An empty cell may have become an absent one. What compares as
   * equal stays in the order of the runs.
   */
  async *read(): AsyncGenerator<readonly TableRow[], void> {
    const heads: Head[] = [];
    const step = Math.ceil(Math.min(2 ** 16, Math.max(512, MERGE_READ_BYTES / this.#runs.length)));
    for (const [place, run] of this.#runs.entries()) {
      const head: Head = { place, groups: this.#rowsIn(run, step), group: [], at: 0, order: '' };
      await this.#toRow(head, heads);
    }
    let merged: TableRow[] = [];
    for (let head = heads.shift(); head !== undefined; head = heads.shift()) {
      const row = head.group[head.at];
      if (row !== undefined) merged.push(row);
      head.at += 1;
      // What was taken is handed on before more is read: memory holds one group of each run and no
      // more.
      if (head.at === head.group.length || merged.length === GROUP) {
        yield merged;
        merged = [];
      }
      await this.#toRow(head, heads);
    }
  }

  /** Gives the disk back; closing twice is harmless. */
  async close(): Promise<void> {
    await this.file.close();
  }

  async #fill(rows: AsyncIterable<readonly TableRow[]>): Promise<void> {
    const { signal, name } = this.options;
    let lot: { readonly order: string; readonly line: string }[] = [];
    let characters = 0;
    let last: string | undefined;
    const keep = async (): Promise<void> => {
      const [first] = lot.sort((a, b) => compareByCodePoint(a.order, b.order));
      if (first === undefined) return;
      const chunk = Buffer.from(lot.map(({ line }) => line).join(''));
      await onDisk(this.options.directory, () => this.file.writeFile(chunk));
      const goesOn = last !== undefined && compareByCodePoint(last, first.order) <= 0;
      const { from } = (goesOn && this.#runs.pop()) || { from: this.#size };
      this.#size += chunk.length;
      this.#runs.push({ from, to: this.#size });
      last = lot.at(-1)?.order;
      lot = [];
      characters = 0;
    };
    for await (const group of rows) {
      signal?.throwIfAborted();
      for (const row of group) {
        const line = this.#lineOf(row);
        lot.push({ order: this.#orderOf(row), line });
        this.rows += 1;
        characters += line.length;
        if (characters >= SORTED_CHARACTERS || lot.length >= SORTED_ROWS) await keep();
      }
      if (this.#numbers.size > MOST_COLUMNS) {
        throw new MirrorError('MIRROR_TOO_WIDE', name, `${MOST_COLUMNS}`);
      }
    }
    await keep();
  }

  /**
   * Puts a head where it belongs among the others, which are in order, once it stands at a row; one
   * whose run is over goes.
   */
  async #toRow(head: Head, heads: Head[]): Promise<void> {
    if (head.at === head.group.length) {
      head.group = (await head.groups.next()).value ?? [];
      head.at = 0;
    }
    const row = head.group[head.at];
    if (row === undefined) return;
    head.order = this.#orderOf(row);
    let from = 0;
    for (let to = heads.length; from < to; ) {
      const middle = (from + to) >> 1;
      const other = heads[middle] ?? head;
      if ((compareByCodePoint(other.order, head.order) || other.place - head.place) < 0)
        from = middle + 1;
      else to = middle;
    }
    heads.splice(from, 0, head);
  }

  /** By what a row is compared: the texts of the columns asked for, then its key. */
  #orderOf({ pk, cells }: TableRow): string {
    const { sortBy = [] } = this.options;
    return [...sortBy.map((column) => (column === KEY_COLUMN ? pk : cells.get(column))), pk].join(
      '\0',
    );
  }

  /**
   * A JSON list of the key, then of each cell that is not empty the number of its column and its
   * text; no line break within.
   */
  #lineOf({ pk, cells }: TableRow): string {
    const parts: (string | number)[] = [pk];
    for (const [column, text] of cells) {
      const number = this.#numberOf(column);
      if (text !== '') parts.push(number, text);
    }
    return `${JSON.stringify(parts)}\n`;
  }

  #numberOf(column: string): number {
    const number = this.#numbers.get(column) ?? this.#numbers.size;
    this.#numbers.set(column, number);
    return number;
  }

  /** @param step bytes that are read at a time: each group is what one read ends */
  async *#rowsIn({ from, to }: Stretch, step: number): AsyncGenerator<readonly TableRow[], void> {
    const { directory, signal } = this.options;
    const { columns } = this;
    const chunk = Buffer.allocUnsafe(Math.min(step, to - from));
    let begun: Buffer[] = [];
    for (let at = from; at < to; ) {
      signal?.throwIfAborted();
      const length = Math.min(step, to - at);
      const { bytesRead } = await onDisk(directory, () => this.file.read(chunk, 0, length, at));
      at += bytesRead;
      const end = chunk.subarray(0, bytesRead).lastIndexOf('\n');
      if (end !== -1)
        yield rowsOf(Buffer.concat([...begun, chunk.subarray(0, end)]).toString(), columns);
      // What a line begins with is copied: the next read overwrites it.
      const rest = Buffer.from(chunk.subarray(end + 1, bytesRead));
      begun = end === -1 ? [...begun, rest] : [rest];
    }
  }
}

function rowsOf(lines: string, columns: readonly string[]): TableRow[] {
  const lists = JSON.parse(`[${lines.replaceAll('\n', ',')}]`) as (readonly [
    string,
    ...unknown[],
  ])[];
  return lists.map(([pk, ...parts]) => {
    const cells = new Map<string, string>();
    for (let i = 0; i < parts.length; i += 2)
      cells.set(columns[Number(parts[i])] ?? '', String(parts[i + 1]));
    return { pk, cells };
  });
}
