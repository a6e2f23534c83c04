import { join } from 'node:path';
import { compareByCodePoint } from '../lib/text.js';
import type { TableStream } from '../peer/table.js';
import { type AlarmCode, isTooLarge, MirrorAlarm, MirrorError, quoted, quotedList } from './errors.js';
import { writeTable } from './formats/write.js';
import { type Followed, type FollowOptions, Mirror } from './mirror.js';
import type { TablePlan } from './plan.js';
import type { Conflict, MirrorRecord } from './record.js';
import { RowStore } from './row-store.js';
import { removeWhole, replaceWhole, stampOfTarget } from './whole-file.js';

/** A table as the peer has it now, complete and checked; its rows wait on disk until `rows` is closed. */
interface ReadTable {
  readonly rows: RowStore;
  readonly columns: Columns;
}

/** What mirrors of a table have in common, whether a person edits the file or not. */
export abstract class AnyTableMirror extends Mirror<TablePlan> {
  /**
   * Reads the table whole.
   *
   * @returns undefined where there is no such table and none is missed: a person accepted that it is gone, or accepts it now, or
   *   it was only ever seen on the list of tables
   * @throws MirrorAlarm where it would replace good data; MirrorError MIRROR_NOTHING where there never was one; PeerError
   */
  protected async read(
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
  ): Promise<ReadTable | undefined> {
    const { settings, source, role } = this.plan;
    const isListed = this.deps.isListed('table', source);
    const what = `the table ${quoted(source)}`;
    const alarm = (code: AlarmCode, detail?: string) => new MirrorAlarm(code, this.name, what, detail);
    const came = await this.#rows(accepted, signal).catch((error: unknown) => {
      throw isTooLarge(error) ? alarm('MIRROR_TOO_LARGE', `${settings.maxSize} bytes`) : error;
    });
    // Where no record says how many rows there were, a file that stands there may be all that is left of the table.
    const hadRows =
      before?.rows === undefined ? (await stampOfTarget(this.target)) !== undefined : before.rows > 0;
    if (came === undefined || (came.rows === 0 && hadRows && !isListed)) {
      await came?.close();
      if (before?.absentSince !== undefined) return undefined;
      // It was on the list, and went before it was read.
      if (before?.file === undefined && role === 'member' && !isListed) return undefined;
      if (before?.file === undefined) throw new MirrorError('MIRROR_NOTHING', what, 'table');
      if (!accepted.includes('TABLE_GONE')) throw alarm('TABLE_GONE');
      return undefined;
    }
    try {
      const isEmpty = came.rows === 0;
      if (isEmpty && hadRows && !accepted.includes('TABLE_EMPTY')) {
        throw alarm('TABLE_EMPTY', `${before?.rows ?? 'some'}`);
      }
      const columns = columnsOf(settings.columns, before?.columns, came.columns, isEmpty);
      if (columns.lost.length > 0 && !accepted.includes('COLUMNS_LOST')) {
        throw alarm('COLUMNS_LOST', quotedList(columns.lost));
      }
      return { rows: came, columns };
    } catch (error) {
      await came.close();
      throw error;
    }
  }

  /** @param remove removes the file, and says what conflicts are left */
  protected async withoutTable(
    before: MirrorRecord | undefined,
    remove: () => Promise<readonly Conflict[]>,
  ): Promise<Followed> {
    const { plan, deps } = this;
    const { absentSince, file } = before ?? {};
    const isMember = plan.role === 'member';
    // There never was a file of ours: what stands there is not touched.
    if (isMember && file === undefined && absentSince === undefined) return { kind: 'over', changed: false };
    if (absentSince !== undefined) {
      return { kind: 'followed', changed: false, facts: { absentSince, conflicts: before?.conflicts } };
    }
    const changed = (await stampOfTarget(this.target)) !== undefined;
    const conflicts = await remove();
    if (isMember && conflicts.length === 0) return { kind: 'over', changed };
    return { kind: 'followed', changed, facts: { absentSince: deps.clock.now(), conflicts } };
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
 * rows where it had some, or without columns that it had, is an alarm. Accepting that it is gone removes the file, and the
 * mirror waits for the table to come back; accepting the others writes what there is.
 */
export class TableMirror extends AnyTableMirror {
  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { plan } = this;
    const { format, neutralise, versions } = plan.settings;
    const read = await this.read(before, options);
    if (read === undefined) {
      return this.withoutTable(before, async () => {
        await removeWhole(this.target, { versions });
        return [];
      });
    }
    const { rows, columns } = read;
    try {
      const table = { name: plan.source, columns: columns.written, neutralise };
      const text = writeTable(format, table, rows.read());
      const { changed, sha256, bytes, file } = await replaceWhole(this.target, text, {
        before: before?.path === this.target.path ? before : undefined,
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
