import { join } from 'node:path';
import { counted } from '../lib/text.js';
import { type ConditionCode, isTooLarge, MirrorCondition, quoted, quotedList } from './errors.js';
import type { Target } from './held-directory.js';
import type { FollowOptions, MirrorDeps } from './mirror.js';
import type { TablePlan } from './plan.js';
import { acceptedEarlier, type MirrorRecord } from './record.js';
import { RowStore } from './row-store.js';
import { stampOfTarget } from './whole-file.js';

/** The rows that may disappear at once without a condition, whatever their share. */
const FEW_ROWS = 10;

/** A complete and checked copy of the peer's table. */
export interface TableCopy {
  /** The rows. They are on disk, and can be read several times. */
  readonly rows: RowStore;
  readonly columns: Columns;
  /** The conditions that a person accepted and whose cause lasts. */
  readonly accepted: readonly ConditionCode[];
}

/** The columns that a table is written with, in order and without the key. */
export interface Columns {
  readonly written: readonly string[];
  /** Those to be remembered: columns of the peer. One that is only configured cannot be lost. */
  readonly remembered: readonly string[];
  /** Remembered and wanted columns that the peer does not show any more. */
  readonly lost: readonly string[];
  /** Configured columns that the peer never showed. */
  readonly missing: readonly string[];
}

/**
 * Reads a table of the peer whole, and checks it against what is known of it. A copy that would
 * replace good data is a condition: no rows, far fewer rows, lost columns, broken characters.
 */
export class TableSource {
  constructor(
    private readonly plan: TablePlan,
    private readonly target: Target,
    private readonly deps: MirrorDeps,
  ) {}

  /**
   * Reads the table once.
   *
   * @param use is given the copy, whose rows are removed from disk when it resolves
   * @returns undefined if the peer does not have the table
   * @throws MirrorCondition; PeerError
   */
  async read<T>(
    before: MirrorRecord | undefined,
    options: FollowOptions,
    use: (copy: TableCopy) => Promise<T>,
  ): Promise<T | undefined> {
    const { maxSize } = this.plan.settings;
    let rows: RowStore | undefined;
    try {
      const received = await this.#receive(options, (store) => {
        rows = store;
      });
      if (received === undefined) return undefined;
      const { store, isUtf8 } = received;
      if (await this.#isOffList(store, before)) return undefined;
      return await use(await this.#checked(store, isUtf8, before, options.accepted));
    } catch (error) {
      throw isTooLarge(error) ? this.#condition('MIRROR_TOO_LARGE', `${maxSize} bytes`) : error;
    } finally {
      await rows?.close();
    }
  }

  /** @param onStore is called as soon as there is a store to be closed */
  async #receive(
    { accepted, signal }: FollowOptions,
    onStore: (store: RowStore) => void,
  ): Promise<{ readonly store: RowStore; readonly isUtf8: boolean } | undefined> {
    const { source, settings } = this.plan;
    const { requests, peer, stateDir } = this.deps;
    const { search, count, maxSize, sortBy } = settings;
    const maxBytes = accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const directory = join(stateDir, 'mirrors');
    return await requests.run(signal, (signal) =>
      peer.tables.stream(
        { table: source, search, count },
        async (table) => {
          const { rows, columns } = table;
          const options = { directory, name: source, sortBy, columns, signal };
          const store = await RowStore.fill(rows, options);
          onStore(store);
          return { store, isUtf8: table.isUtf8() };
        },
        { maxBytes, signal },
      ),
    );
  }

  /** Some peers answer for a missing table with no rows. Then the list of tables decides. */
  async #isOffList(store: RowStore, before: MirrorRecord | undefined): Promise<boolean> {
    if (this.deps.catalog.has('table', this.plan.source)) return false;
    return store.rows === 0 && (await this.#hadRows(before));
  }

  async #checked(
    rows: RowStore,
    isUtf8: boolean,
    before: MirrorRecord | undefined,
    accepted: readonly string[],
  ): Promise<TableCopy> {
    const known = before?.rows;
    if (rows.rows === 0 && !accepted.includes('TABLE_EMPTY') && (await this.#hadRows(before))) {
      throw this.#condition('TABLE_EMPTY', known === undefined ? 'some' : counted(known, 'row'));
    }
    if (isFarFewer(rows.rows, known) && !accepted.includes('ROWS_LOST')) {
      throw this.#condition('ROWS_LOST', `${(known ?? 0) - rows.rows} of ${known} rows`);
    }
    const isAccepted = [...accepted, ...acceptedEarlier(before)].includes('TABLE_NOT_UTF8');
    if (!isUtf8 && !isAccepted) throw this.#condition('TABLE_NOT_UTF8');
    const configured = this.plan.settings.columns;
    const columns = columnsOf(configured, before?.columns, rows.columns, rows.rows === 0);
    if (columns.lost.length > 0 && !accepted.includes('COLUMNS_LOST')) {
      throw this.#condition('COLUMNS_LOST', quotedList(columns.lost));
    }
    return { rows, columns, accepted: isUtf8 ? [] : ['TABLE_NOT_UTF8'] };
  }

  /** Without a record, a file at the target may hold all that is left of the table. */
  async #hadRows(before: MirrorRecord | undefined): Promise<boolean> {
    if (before?.rows !== undefined) return before.rows > 0;
    return (await stampOfTarget(this.target)) !== undefined;
  }

  #condition(code: ConditionCode, detail?: string): MirrorCondition {
    const { name, source } = this.plan;
    return new MirrorCondition(code, name, `the table ${quoted(source)}`, detail);
  }
}

/** Whether more than half of the rows are gone, and more than a few. */
function isFarFewer(rows: number, before = 0): boolean {
  return before - rows > FEW_ROWS && rows < before / 2;
}

/**
 * Orders the columns as configured. Without that they keep their order, and new ones follow as the
 * peer has them.
 *
 * @param isEmpty whether the table has no rows: it may show no columns, and has lost none
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
