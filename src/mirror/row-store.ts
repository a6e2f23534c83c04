import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { compareByCodePoint } from '../lib/text.js';
import type { TableRow } from '../peer/table.js';
import { MirrorError, onDisk } from './errors.js';
import { KEY_COLUMN } from './formats/table-text.js';

export interface RowStoreOptions {
  /** The directory of the temporary file. It is made (0700) if it does not exist. */
  readonly directory: string;
  /** The name of the table, for errors. */
  readonly name: string;
  /** The columns that order the rows, as text. "pk" is the key. @default by key */
  readonly sortBy?: readonly string[] | undefined;
  /** Columns that are known in advance. They come first. */
  readonly columns?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The most columns: as many as a spreadsheet has. More are no table. */
const MAX_COLUMNS = 16_384;
/** The characters that are sorted in memory at once. */
const SORTED_CHARACTERS = 2 ** 18;
/** The rows that are sorted in memory at once. */
const SORTED_ROWS = 1_000;
/** The bytes that are read of all merged runs together: 512 to 65,536 of each. */
const MERGE_READ_BYTES = 2 ** 21;
/** The most rows in one group of a merge. */
const MERGED_ROWS = 500;

/** A sorted part of the file, in bytes. */
type Run = Readonly<Record<'from' | 'to', number>>;

/** The position of a merge in one run: a row of the group that was read last. */
interface Head {
  readonly place: number;
  readonly groups: AsyncIterator<readonly TableRow[], void>;
  group: readonly TableRow[];
  at: number;
  /** The sort key of the current row. */
  order: string;
}

/**
 * Sorts the rows of a table on disk: an external merge sort. The peer sends the rows once, in its
 * own order, and all columns are known only at the end. Memory does not grow with the table.
 *
 * A store is *filled* once, *read* any number of times, then *closed*. While it is filled, rows are
 * sorted in chunks that fit the budget. A chunk continues the run before it, or begins another one.
 * Runs are merged while they are read. Rows of the same key all stay, in the order of arrival.
 *
 * The file is unlinked as soon as it is open, so that nothing is left of it, however the process
 * ends.
 */
export class RowStore {
  /** The number of rows. */
  rows = 0;
  /** The numbers of the columns. */
  readonly #numbers = new Map<string, number>();
  #size = 0;
  /** The sorted parts of the file. */
  readonly #runs: Run[] = [];

  private constructor(
    private readonly options: RowStoreOptions,
    private readonly file: FileHandle,
  ) {
    for (const column of options.columns ?? []) this.#numberOf(column);
  }

  /** All known columns without the key, in the order of their first appearance. */
  get columns(): readonly string[] {
    return [...this.#numbers.keys()];
  }

  /**
   * Fills a store with all rows.
   *
   * @throws MirrorError MIRROR_TOO_WIDE, MIRROR_FULL, MIRROR_BLOCKED, MIRROR_UNWRITABLE; and
   *   the errors of `rows` and of the signal
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
   * Yields the rows in the wanted order. An empty cell may have become an absent one. Equal rows
   * stay in the order of the runs.
   */
  async *read(): AsyncGenerator<readonly TableRow[], void> {
    const heads: Head[] = [];
    const step = Math.ceil(Math.min(2 ** 16, Math.max(512, MERGE_READ_BYTES / this.#runs.length)));
    for (const [place, run] of this.#runs.entries()) {
      const head: Head = { place, groups: this.#rowsIn(run, step), group: [], at: 0, order: '' };
      await this.#insert(head, heads);
    }
    let merged: TableRow[] = [];
    for (let head = heads.shift(); head !== undefined; head = heads.shift()) {
      const row = head.group[head.at];
      if (row !== undefined) merged.push(row);
      head.at += 1;
      // Yields before more is read, so that memory holds one group of each run.
      if (head.at === head.group.length || merged.length === MERGED_ROWS) {
        yield merged;
        merged = [];
      }
      await this.#insert(head, heads);
    }
  }

  /** Frees the disk. Closing twice is harmless. */
  async close(): Promise<void> {
    await this.file.close();
  }

  async #fill(rows: AsyncIterable<readonly TableRow[]>): Promise<void> {
    const { signal, name } = this.options;
    let pending: { readonly order: string; readonly line: string }[] = [];
    let characters = 0;
    let last: string | undefined;
    const flush = async (): Promise<void> => {
      const [first] = pending.sort((a, b) => compareByCodePoint(a.order, b.order));
      if (first === undefined) return;
      const chunk = Buffer.from(pending.map(({ line }) => line).join(''));
      await onDisk(this.options.directory, () => this.file.writeFile(chunk));
      const continuesRun = last !== undefined && compareByCodePoint(last, first.order) <= 0;
      const { from } = (continuesRun && this.#runs.pop()) || { from: this.#size };
      this.#size += chunk.length;
      this.#runs.push({ from, to: this.#size });
      last = pending.at(-1)?.order;
      pending = [];
      characters = 0;
    };
    for await (const group of rows) {
      signal?.throwIfAborted();
      for (const row of group) {
        const line = this.#lineOf(row);
        pending.push({ order: this.#orderOf(row), line });
        this.rows += 1;
        characters += line.length;
        if (characters >= SORTED_CHARACTERS || pending.length >= SORTED_ROWS) await flush();
      }
      if (this.#numbers.size > MAX_COLUMNS) {
        throw new MirrorError('MIRROR_TOO_WIDE', { what: name, detail: `${MAX_COLUMNS}` });
      }
    }
    await flush();
  }

  /**
   * Moves a head to its next row, and inserts it into the sorted list of heads. Drops it at the end
   * of its run.
   */
  async #insert(head: Head, heads: Head[]): Promise<void> {
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

  /** Returns the sort key of a row: the texts of the wanted columns, then its key. */
  #orderOf({ pk, cells }: TableRow): string {
    const { sortBy = [] } = this.options;
    return [...sortBy.map((column) => (column === KEY_COLUMN ? pk : cells.get(column))), pk].join(
      '\0',
    );
  }

  /**
   * Returns a row as a line of JSON: its key, then the column number and the text of each cell that
   * is not empty.
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

  /** @param step the bytes of one read. Each group has the rows that one read completes. */
  async *#rowsIn({ from, to }: Run, step: number): AsyncGenerator<readonly TableRow[], void> {
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
      // The begin of an incomplete line is copied: the next read overwrites the chunk.
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
