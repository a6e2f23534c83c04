import { join } from 'node:path';
import type { TableRow } from '../peer/table.js';
import { type ConditionCode, isTooLarge, quoted, quotedList } from './errors.js';
import { writeTable } from './formats/write.js';
import { type Followed, type FollowOptions, ListedMirror } from './mirror.js';
import type { TablePlan } from './plan.js';
import type { Conflict, MirrorRecord } from './record.js';
import { RowStore } from './row-store.js';
import { BaseStore } from './two-way/base.js';
import { replaceWhole, stampOfTarget } from './whole-file.js';

/** Rows that may go at once without a condition, whatever their share. */
const FEW_ROWS = 10;
/** Keys that are remembered of a table that is not written in their order. */
const MOST_KEYS = 1_000_000;

/** Whether rows of the same key are taken, and whether there are any. */
interface Twice {
  readonly isAllowed: boolean;
  isSeen: boolean;
}

/** Whether more than half of the rows are gone, and more than a few. */
function isFarFewer(rows: number, before = 0): boolean {
  return before - rows > FEW_ROWS && rows < before / 2;
}

/** What mirrors of a table have in common, whether a person edits the file or not. */
export abstract class AnyTableMirror extends ListedMirror<TablePlan> {
  /**
   * Reads the table whole.
   *
   * @param use is given the table as the peer has it now, complete and checked, and the conditions
   *   whose reason lasts; its rows wait on disk until this resolves
   * @returns undefined where there is no such table
   * @throws MirrorCondition where it would replace good data; PeerError
   */
  protected async read<T>(
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
    use: (rows: RowStore, columns: Columns, tolerated: readonly ConditionCode[]) => Promise<T>,
  ): Promise<T | undefined> {
    const { plan, deps } = this;
    const { search, count, maxSize, sortBy, columns: configured } = plan.settings;
    const maxBytes = accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const options = { directory: join(deps.stateDir, 'mirrors'), name: plan.source, sortBy };
    let store: RowStore | undefined;
    let isUtf8 = true;
    try {
      const rows = await deps.ask(signal, (signal) =>
        deps.peer.tables.stream(
          { table: plan.source, search, count },
          async (table) => {
            store = await RowStore.fill(table.rows, { ...options, columns: table.columns, signal });
            isUtf8 = table.isUtf8();
            return store;
          },
          { maxBytes, signal },
        ),
      );
      if (rows === undefined) return undefined;
      // Where no record says how many rows there were, a file that stands there may be all that is
      // left of the table.
      const had = before?.rows ?? (await stampOfTarget(this.target));
      const isMissed = rows.rows === 0 && had !== undefined && had !== 0;
      if (isMissed && !deps.isListed('table', plan.source)) return undefined;
      if (isMissed && !accepted.includes('TABLE_EMPTY')) {
        throw this.condition('TABLE_EMPTY', `${before?.rows ?? 'some'}`);
      }
      if (isFarFewer(rows.rows, before?.rows) && !accepted.includes('ROWS_LOST')) {
        throw this.condition(
          'ROWS_LOST',
          `${(before?.rows ?? 0) - rows.rows} of ${before?.rows} rows`,
        );
      }
      const tolerated = [...accepted, ...(before?.tolerated ?? [])];
      if (!isUtf8 && !tolerated.includes('TABLE_NOT_UTF8')) throw this.condition('TABLE_NOT_UTF8');
      const columns = columnsOf(configured, before?.columns, rows.columns, rows.rows === 0);
      if (columns.lost.length > 0 && !accepted.includes('COLUMNS_LOST')) {
        throw this.condition('COLUMNS_LOST', quotedList(columns.lost));
      }
      return await use(rows, columns, isUtf8 ? [] : ['TABLE_NOT_UTF8']);
    } catch (error) {
      throw isTooLarge(error) ? this.condition('MIRROR_TOO_LARGE', `${maxSize} bytes`) : error;
    } finally {
      await store?.close();
    }
  }
}

/**
 * A table of the peer as a file that is only written.
 *
 * The rows wait on disk, the whole of them is checked, and then the file is written. A table that
 * is gone, or lost all its rows or a column, is a condition. Accepting the latter two writes what
 * there is.
 */
export class TableMirror extends AnyTableMirror {
  override async retire(before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    const conflicts = await super.retire(before);
    await this.#forgetBase();
    return conflicts;
  }

  override async follow(
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<Followed> {
    const { format, neutralise, newline, versions } = this.plan.settings;
    const followed = await this.read(
      before,
      options,
      async (rows, columns, lasting): Promise<Followed> => {
        const twice = {
          isAllowed: [...options.accepted, ...(before?.tolerated ?? [])].includes('KEYS_TWICE'),
          isSeen: false,
        };
        const table = { name: this.plan.source, columns: columns.written, neutralise, newline };
        const text = writeTable(format, table, this.#uniqueRows(rows, twice));
        const { signal } = options;
        const how = { before: this.known(before), versions, signal, onReplace: this.onReplace };
        const { changed, sha256, bytes, file } = await replaceWhole(this.target, text, how);
        const missing = columns.missing.map(
          (column) => `The peer shows no column ${quoted(column)}.`,
        );
        const notes = [...this.notes, ...missing];
        const tolerated = twice.isSeen ? [...lasting, 'KEYS_TWICE'] : lasting;
        const facts = {
          rows: rows.rows,
          bytes,
          sha256,
          file,
          columns: columns.remembered,
          tolerated,
          notes,
        };
        return { kind: 'followed', changed, facts };
      },
    );
    await this.#forgetBase();
    return followed ?? (await this.gone(before, options));
  }

  /** @throws MirrorCondition KEYS_TWICE, while the file is not replaced yet */
  async *#uniqueRows(store: RowStore, twice: Twice): AsyncGenerator<readonly TableRow[], void> {
    const isByKey = this.plan.settings.sortBy === undefined;
    const keys = new Set<string>();
    for await (const group of store.read()) {
      for (const { pk } of group) {
        if (keys.has(pk)) {
          twice.isSeen = true;
          if (!twice.isAllowed) throw this.condition('KEYS_TWICE', `the key ${quoted(pk)}`);
        }
        // In the order of keys, rows of the same key follow each other.
        if (isByKey) keys.clear();
        if (keys.size < MOST_KEYS) keys.add(pk);
      }
      yield group;
    }
  }

  /**
   * What is kept of the time before `edit` was switched off: from now on the file is only written.
   */
  async #forgetBase(): Promise<void> {
    await new BaseStore(this.deps.stateDir, this.name, this.plan.source, this.deps.clock).forget();
  }
}

/**
 * Which columns a table is written with, in this order and without the key, and what became of
 * those it had.
 */
export interface Columns {
  readonly written: readonly string[];
  /** To be remembered: those of the peer. A column that is only configured cannot be lost. */
  readonly remembered: readonly string[];
  /** Remembered, and wanted, but not shown any more. */
  readonly lost: readonly string[];
  /** Configured, and never shown. */
  readonly missing: readonly string[];
}

/**
 * Columns stand as configured; else as they always did, with new ones behind them as the peer has
 * them.
 *
 * @param isEmpty a table without rows may show no columns, and has lost none
 */
function columnsOf(
  configured: readonly string[] | undefined,
  remembered: readonly string[] = [],
  shown: readonly string[],
  isEmpty: boolean,
): Columns {
  const isWanted = (column: string): boolean =>
    configured === undefined || configured.includes(column);
  const before = remembered.filter(isWanted);
  const known = new Set(before);
  const present = new Set(isEmpty ? [...before, ...shown] : shown);
  const added = [...present].filter((column) => isWanted(column) && !known.has(column));
  const kept = [...before.filter((column) => present.has(column)), ...added];
  return {
    written: configured ?? kept,
    remembered: kept,
    lost: before.filter((column) => !present.has(column)),
    missing: (configured ?? []).filter((column) => !present.has(column) && !known.has(column)),
  };
}
