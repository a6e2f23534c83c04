import { join } from 'node:path';
import { counted } from '../lib/text.js';
import type { TableRow } from '../peer/table.js';
import { type ConditionCode, isTooLarge, MirrorCondition, quoted, quotedList } from './errors.js';
import { writeTable } from './formats/formats.js';
import type { Target } from './held-directory.js';
import { type FollowOptions, type FollowResult, ListedMirror, type MirrorDeps } from './mirror.js';
import type { TablePlan } from './plan.js';
import { acceptedEarlier, type Conflict, type MirrorRecord } from './record.js';
import { RowStore } from './row-store.js';
import { BaseStore } from './two-way/base-store.js';
import { replaceWhole, stampOfTarget } from './whole-file.js';

/** The keys that are remembered of a table that is not written in the order of its keys. */
const MAX_KEYS = 1_000_000;

/** Tracks keys that the peer shows more than once. */
interface DuplicateKeys {
  readonly isAccepted: boolean;
  isFound: boolean;
}

/**
 * Mirrors a table of the peer to a file, one way.
 *
 * The rows are stored on disk and checked as a whole (`TableSource`). Then the file is written.
 */
export class TableMirror extends ListedMirror<TablePlan> {
  readonly #source = new TableSource(this.plan, this.target, this.deps);

  override async follow(
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<FollowResult> {
    const result = await this.#source.read(before, options, (copy) =>
      this.#write(copy, before, options),
    );
    await this.#removeBase();
    return result ?? (await this.gone(before, options));
  }

  override async retire(before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    const conflicts = await super.retire(before);
    await this.#removeBase();
    return conflicts;
  }

  async #write(
    copy: TableCopy,
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
  ): Promise<FollowResult> {
    const { format, neutralise, newline, versions } = this.plan.settings;
    const { rows, columns } = copy;
    const duplicates: DuplicateKeys = {
      isAccepted: [...accepted, ...acceptedEarlier(before)].includes('KEYS_TWICE'),
      isFound: false,
    };
    const table = { name: this.plan.source, columns: columns.written, neutralise, newline };
    const text = writeTable(format, table, this.#uniqueRows(rows, duplicates));
    const { changed, sha256, bytes, file } = await replaceWhole(this.target, text, {
      before: this.known(before),
      versions,
      signal,
      onReplace: this.beforeReplace,
    });
    const missing = columns.missing.map((column) => `The peer shows no column ${quoted(column)}.`);
    return {
      kind: 'current',
      changed,
      facts: {
        rows: rows.rows,
        bytes,
        sha256,
        file,
        columns: columns.remembered,
        accepted: duplicates.isFound ? [...copy.accepted, 'KEYS_TWICE'] : copy.accepted,
        notes: [...this.notes, ...missing],
      },
    };
  }

  /** @throws MirrorCondition KEYS_TWICE, before the file is replaced */
  async *#uniqueRows(
    store: RowStore,
    duplicates: DuplicateKeys,
  ): AsyncGenerator<readonly TableRow[], void> {
    const isByKey = this.plan.settings.sortBy === undefined;
    const keys = new Set<string>();
    for await (const group of store.read()) {
      for (const { pk } of group) {
        if (keys.has(pk)) {
          duplicates.isFound = true;
          if (!duplicates.isAccepted) throw this.condition('KEYS_TWICE', `the key ${quoted(pk)}`);
        }
        // In the order of keys, rows of the same key follow each other.
        if (isByKey) keys.clear();
        if (keys.size < MAX_KEYS) keys.add(pk);
      }
      yield group;
    }
  }

  /** Removes the base that is left from a time when `edit` was on. */
  async #removeBase(): Promise<void> {
    await new BaseStore(this.deps.stateDir, this.name, this.plan.source, this.deps.clock).remove();
  }
}

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
