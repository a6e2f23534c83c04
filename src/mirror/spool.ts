import type { TableRow } from '../peer/table.js';
import { MirrorError } from './errors.js';
import { mergeRuns } from './merge-runs.js';
import { RowLines } from './row-lines.js';
import { type RowOrder, rowOrder, type SortKey } from './row-order.js';
import { ScratchFile } from './scratch-file.js';

export interface SpoolOptions {
  /** Where the rows wait; made when it does not exist. */
  readonly directory: string;
  /** The table, for errors. */
  readonly name: string;
  /** Columns by which the rows are ordered, as text, "pk" for the key; by key unless given. */
  readonly sortBy?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bytes of rows that are sorted in memory at once; 4 MiB unless given. */
  readonly budget?: number;
}

/** As many as a spreadsheet has; a peer that answers more is not answering a table. */
const MOST_COLUMNS = 16_384;
const BUDGET_BYTES = 4 * 2 ** 20;
const READ_BYTES = 2 ** 17;
/** Of each run that is merged: there may be many. */
const MERGE_READ_BYTES = 2 ** 15;
/** Rows that are sorted without a pause. */
const SORTED_AT_ONCE = 1000;
/** Runs that are merged at once. */
const FAN_IN = 64;

interface Stretch {
  readonly from: number;
  readonly to: number;
}

interface Keyed {
  readonly key: SortKey;
}

/** Many of these are in memory at once, and a line is a tenth of a row. */
interface KeyedLine extends Keyed {
  readonly line: string;
}

interface KeyedRow extends Keyed {
  readonly row: TableRow;
}

type AddRun = (run: AsyncIterable<readonly KeyedLine[]>) => Promise<void>;

/**
 * The rows of a table on their way to a file: the peer tells them once, in its own order, and which columns there are is known
 * only at the end. They wait on disk, so that memory does not grow with them.
 *
 * It is *filled* once, then *read* as often as one likes, then *closed*. Rows that came in the wanted order are read back as
 * they came; others are sorted at the first reading: as much as the budget allows in memory, then merged from disk. Rows of
 * the same key stay all of them, in the order in which they came.
 */
export class RowSpool {
  readonly #options: SpoolOptions;
  readonly #order: RowOrder;
  readonly #lines = new RowLines();
  #file: ScratchFile;
  /** Parts of the file that are in order. */
  #runs: readonly Stretch[] = [];
  #inOrder = true;
  /** Ends when the rows are sorted; undefined while nobody asked. */
  #sorted: Promise<void> | undefined;
  #rows = 0;

  private constructor(options: SpoolOptions, file: ScratchFile) {
    this.#options = options;
    this.#order = rowOrder(options.sortBy);
    this.#file = file;
  }

  /**
   * Takes in all rows.
   *
   * @throws MirrorError MIRROR_TOO_WIDE, MIRROR_FULL, MIRROR_UNWRITABLE; and whatever `rows` and the signal throw
   */
  static async fill(rows: AsyncIterable<readonly TableRow[]>, options: SpoolOptions): Promise<RowSpool> {
    const spool = new RowSpool(options, await ScratchFile.open(options.directory));
    try {
      await spool.#fill(rows);
      return spool;
    } catch (error) {
      await spool.close();
      throw error;
    }
  }

  /** How many rows there are. */
  get rows(): number {
    return this.#rows;
  }

  /** All columns that any row has, without the key, in the order in which they came up first. */
  get columns(): readonly string[] {
    return this.#lines.columns;
  }

  /** The rows in the wanted order. An empty cell may have become an absent one. */
  async *read(): AsyncGenerator<readonly TableRow[], void> {
    if (!this.#inOrder) this.#sorted ??= this.#sort();
    await this.#sorted;
    const [only, ...more] = this.#runs;
    if (only === undefined) return;
    if (more.length > 0) {
      const merged = this.#merge(this.#runs, (lines) => this.#keyedRows(lines));
      for await (const group of merged) yield group.map(({ row }) => row);
    } else {
      for await (const lines of this.#file.lines(only.from, only.to, READ_BYTES)) {
        this.#options.signal?.throwIfAborted();
        yield this.#lines.rows(lines);
      }
    }
  }

  /** Gives the disk back; closing twice is harmless. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  async #fill(rows: AsyncIterable<readonly TableRow[]>): Promise<void> {
    let last: SortKey | undefined;
    for await (const group of rows) {
      this.#options.signal?.throwIfAborted();
      for (const row of group) {
        const key = this.#order.keyOf(row);
        if (last !== undefined && this.#order.compare(last, key) > 0) this.#inOrder = false;
        last = key;
        await this.#file.add(this.#lines.line(row));
        this.#rows += 1;
      }
      if (this.columns.length > MOST_COLUMNS) {
        throw new MirrorError('MIRROR_TOO_WIDE', { what: this.#options.name, detail: `${MOST_COLUMNS}` });
      }
    }
    if (this.#rows > 0) this.#runs = [{ from: 0, to: await this.#file.flush() }];
  }

  async #sort(): Promise<void> {
    await this.#rewrite((add) => this.#sortInMemory(add));
    while (this.#runs.length > FAN_IN) {
      await this.#rewrite(async (add) => {
        for (let at = 0; at < this.#runs.length; at += FAN_IN) {
          await add(this.#merge(this.#runs.slice(at, at + FAN_IN), (lines) => this.#keyedLines(lines)));
        }
      });
    }
  }

  /** Writes runs to a new file, which then takes the place of the old one. */
  async #rewrite(write: (add: AddRun) => Promise<void>): Promise<void> {
    const file = await ScratchFile.open(this.#options.directory);
    const runs: Stretch[] = [];
    let from = 0;
    try {
      await write(async (run) => {
        for await (const group of run) {
          for (const { line } of group) await file.add(line);
        }
        const to = await file.flush();
        runs.push({ from, to });
        from = to;
      });
    } catch (error) {
      await file.close();
      throw error;
    }
    await this.#file.close();
    this.#file = file;
    this.#runs = runs;
  }

  /** Makes runs of what fits the budget. */
  async #sortInMemory(add: AddRun): Promise<void> {
    const [all] = this.#runs;
    if (all === undefined) return;
    let sorted: (readonly KeyedLine[])[] = [];
    let size = 0;
    for await (const lines of this.#file.lines(all.from, all.to, READ_BYTES)) {
      this.#options.signal?.throwIfAborted();
      for (let at = 0; at < lines.length; at += SORTED_AT_ONCE) {
        sorted.push(this.#keyedLines(lines.slice(at, at + SORTED_AT_ONCE)).sort(this.#compare));
      }
      size += lines.reduce((sum, line) => sum + line.length, 0);
      if (size < (this.#options.budget ?? BUDGET_BYTES)) continue;
      await add(mergeRuns(sorted.map(inOneGroup), this.#compare));
      sorted = [];
      size = 0;
    }
    if (sorted.length > 0) await add(mergeRuns(sorted.map(inOneGroup), this.#compare));
  }

  #merge<T extends Keyed>(
    stretches: readonly Stretch[],
    keyed: (lines: readonly string[]) => readonly T[],
  ): AsyncGenerator<readonly T[], void> {
    return mergeRuns(
      stretches.map((stretch) => this.#readKeyed(stretch, keyed)),
      this.#compare,
    );
  }

  async *#readKeyed<T>(
    { from, to }: Stretch,
    keyed: (lines: readonly string[]) => readonly T[],
  ): AsyncGenerator<readonly T[], void> {
    for await (const lines of this.#file.lines(from, to, MERGE_READ_BYTES)) {
      this.#options.signal?.throwIfAborted();
      yield keyed(lines);
    }
  }

  #keyedLines(lines: readonly string[]): KeyedLine[] {
    const rows = this.#lines.rows(lines);
    return rows.map((row, i) => ({ key: this.#order.keyOf(row), line: lines[i] ?? '' }));
  }

  #keyedRows(lines: readonly string[]): KeyedRow[] {
    return this.#lines.rows(lines).map((row) => ({ key: this.#order.keyOf(row), row }));
  }

  readonly #compare = (a: Keyed, b: Keyed): number => this.#order.compare(a.key, b.key);
}

async function* inOneGroup<T>(items: readonly T[]): AsyncGenerator<readonly T[], void> {
  yield items;
}
