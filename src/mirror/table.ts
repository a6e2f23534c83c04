import { join } from 'node:path';
import { compareByCodePoint } from '../lib/text.js';
import type { TableStream } from '../peer/table.js';
import { isTooLarge, quoted, quotedList } from './errors.js';
import { writeTable } from './formats/write.js';
import { type Followed, type FollowOptions, ListedMirror } from './mirror.js';
import type { TablePlan } from './plan.js';
import type { MirrorRecord } from './record.js';
import { RowStore } from './row-store.js';
import { replaceWhole, stampOfTarget } from './whole-file.js';

/** A table as the peer has it now, complete and checked; its rows wait on disk until `rows` is closed. */
interface ReadTable {
  readonly rows: RowStore;
  readonly columns: Columns;
}

/** What mirrors of a table have in common, whether a person edits the file or not. */
export abstract class AnyTableMirror extends ListedMirror<TablePlan> {
  /**
   * Reads the table whole.
   *
   * @returns undefined where there is no such table
   * @throws MirrorAlarm where it would replace good data; PeerError
   */
  protected async read(
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
  ): Promise<ReadTable | undefined> {
    const { settings, source } = this.plan;
    const rows = await this.#rows(accepted, signal).catch((error: unknown) => {
      throw isTooLarge(error) ? this.alarm('MIRROR_TOO_LARGE', `${settings.maxSize} bytes`) : error;
    });
    if (rows === undefined) return undefined;
    try {
      // Where no record says how many rows there were, a file that stands there may be all that is left of the table.
      const had = before?.rows ?? (await stampOfTarget(this.target));
      const isMissed = rows.rows === 0 && had !== undefined && had !== 0;
      if (isMissed && !this.deps.isListed('table', source)) {
        await rows.close();
        return undefined;
      }
      if (isMissed && !accepted.includes('TABLE_EMPTY')) {
        throw this.alarm('TABLE_EMPTY', `${before?.rows ?? 'some'}`);
      }
      const columns = columnsOf(settings.columns, before?.columns, rows.columns, rows.rows === 0);
      if (columns.lost.length > 0 && !accepted.includes('COLUMNS_LOST')) {
        throw this.alarm('COLUMNS_LOST', quotedList(columns.lost));
      }
      return { rows, columns };
    } catch (error) {
      await rows.close();
      throw error;
    }
  }

  async #rows(accepted: readonly string[], signal: AbortSignal): Promise<RowStore | undefined> {
    const { plan, deps } = this;
    const { search, count, maxSize, sortBy } = plan.settings;
    const maxBytes = accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const query = { table: plan.source, search, count };
    const options = { directory: join(deps.stateDir, 'mirrors'), name: plan.source, sortBy };
    let store: RowStore | undefined;
    const fill = async ({ rows, columns }: TableStream, signal: AbortSignal): Promise<RowStore> => {
      store = await RowStore.fill(rows, { ...options, columns, signal });
      return store;
    };
    try {
      return await deps.ask(signal, (signal) =>
        deps.peer.tables.stream(query, (table) => fill(table, signal), { maxBytes, signal }),
      );
    } catch (error) {
      // The rows were complete, and the answer was not.
      await store?.close();
      throw error;
    }
  }
}

/**
 * A table of the peer as a file that is only written.
 *
 * The rows wait on disk, the whole of them is checked, and then the file is written. A table that is gone, without
 * rows where it had some, or without columns that it had, is an alarm. Accepting the latter two writes what there is.
 */
export class TableMirror extends AnyTableMirror {
  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { plan } = this;
    const { format, neutralise, versions } = plan.settings;
    const read = await this.read(before, options);
    if (read === undefined) return await this.gone(before, options);
    const { rows, columns } = read;
    try {
      const table = { name: plan.source, columns: columns.written, neutralise };
      const text = writeTable(format, table, rows.read());
      const { changed, sha256, bytes, file } = await replaceWhole(this.target, text, {
        before: this.known(before),
        versions,
        signal: options.signal,
      });
      const missing = columns.missing.map((column) => `The peer shows no column ${quoted(column)}.`);
      const notes = [...this.notes, ...missing];
      const facts = { rows: rows.rows, bytes, sha256, file, columns: columns.remembered, notes };
      return { kind: 'followed', changed, facts };
    } finally {
      await rows.close();
    }
  }
}

/** Which columns a table is written with, in this order and without the key, and what became of those it had. */
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
 * Columns stand as configured; else as they always did, with new ones behind them by code point.
 *
 * @param isEmpty a table without rows may show no columns, and has lost none
 */
function columnsOf(
  configured: readonly string[] | undefined,
  remembered: readonly string[] = [],
  shown: readonly string[],
  isEmpty: boolean,
): Columns {
  const isWanted = (column: string): boolean => configured === undefined || configured.includes(column);
  const before = remembered.filter(isWanted);
  const known = new Set(before);
  const present = new Set(isEmpty ? [...before, ...shown] : shown);
  const added = [...present].filter((column) => isWanted(column) && !known.has(column));
  const kept = [...before.filter((column) => present.has(column)), ...added.sort(compareByCodePoint)];
  return {
    written: configured ?? kept,
    remembered: kept,
    lost: before.filter((column) => !present.has(column)),
    missing: (configured ?? []).filter((column) => !present.has(column) && !known.has(column)),
  };
}
