import { join } from 'node:path';
import { isTooLarge, quoted, quotedList } from './errors.js';
import { writeTable } from './formats/write.js';
import { type Followed, type FollowOptions, ListedMirror } from './mirror.js';
import type { TablePlan } from './plan.js';
import type { Conflict, MirrorRecord } from './record.js';
import { RowStore } from './row-store.js';
import { BaseStore } from './two-way/base.js';
import { EditedFile, Overtaken } from './two-way/edited-file.js';
import { replaceWhole, stampOfTarget } from './whole-file.js';

/** What mirrors of a table have in common, whether a person edits the file or not. */
export abstract class AnyTableMirror extends ListedMirror<TablePlan> {
  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    try {
      return await this.sync(before, options);
    } catch (error) {
      if (error instanceof Overtaken) return { kind: 'later' };
      throw error;
    }
  }

  /** @throws Overtaken while somebody writes the file */
  protected abstract sync(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed>;

  /**
   * Reads the table whole.
   *
   * @param use is given the table as the peer has it now, complete and checked; its rows wait on disk until this resolves
   * @returns undefined where there is no such table
   * @throws MirrorAlarm where it would replace good data; PeerError
   */
  protected async read<T>(
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
    use: (rows: RowStore, columns: Columns) => Promise<T>,
  ): Promise<T | undefined> {
    const { plan, deps } = this;
    const { search, count, maxSize, sortBy, columns: configured } = plan.settings;
    const maxBytes = accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const options = { directory: join(deps.stateDir, 'mirrors'), name: plan.source, sortBy };
    let store: RowStore | undefined;
    try {
      const rows = await deps.ask(signal, (signal) =>
        deps.peer.tables.stream(
          { table: plan.source, search, count },
          async ({ rows, columns }) => {
            store = await RowStore.fill(rows, { ...options, columns, signal });
            return store;
          },
          { maxBytes, signal },
        ),
      );
      if (rows === undefined) return undefined;
      // Where no record says how many rows there were, a file that stands there may be all that is left of the table.
      const had = before?.rows ?? (await stampOfTarget(this.target));
      const isMissed = rows.rows === 0 && had !== undefined && had !== 0;
      if (isMissed && !deps.isListed('table', plan.source)) return undefined;
      if (isMissed && !accepted.includes('TABLE_EMPTY')) {
        throw this.alarm('TABLE_EMPTY', `${before?.rows ?? 'some'}`);
      }
      const columns = columnsOf(configured, before?.columns, rows.columns, rows.rows === 0);
      if (columns.lost.length > 0 && !accepted.includes('COLUMNS_LOST')) {
        throw this.alarm('COLUMNS_LOST', quotedList(columns.lost));
      }
      return await use(rows, columns);
    } catch (error) {
      throw isTooLarge(error) ? this.alarm('MIRROR_TOO_LARGE', `${maxSize} bytes`) : error;
    } finally {
      await store?.close();
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
  override async retire(before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    const conflicts = await this.#keepEdits(before, undefined);
    await super.retire(before);
    return conflicts ?? [];
  }

  protected async sync(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { format, neutralise, newline, versions } = this.plan.settings;
    const followed = await this.read(before, options, async (rows, columns): Promise<Followed> => {
      const conflicts = await this.#keepEdits(before, options.signal);
      const table = { name: this.plan.source, columns: columns.written, neutralise, newline };
      const text = writeTable(format, table, rows.read());
      const how = { before: this.known(before), versions, signal: options.signal };
      const { changed, sha256, bytes, file } = await replaceWhole(this.target, text, how);
      const missing = columns.missing.map((column) => `The peer shows no column ${quoted(column)}.`);
      const notes = [...this.notes, ...missing];
      const facts = { rows: rows.rows, bytes, sha256, file, columns: columns.remembered, conflicts, notes };
      return { kind: 'followed', changed, facts };
    });
    return followed ?? (await this.gone(before, options));
  }

  /**
   * Where the file was edited before `edit` was switched off, what did not reach the peer is saved as a conflict file.
   *
   * @returns the conflicts that stand
   * @throws Overtaken while somebody writes the file
   */
  async #keepEdits(
    before: MirrorRecord | undefined,
    signal: AbortSignal | undefined,
  ): Promise<readonly Conflict[] | undefined> {
    const { stateDir, clock } = this.deps;
    const bases = new BaseStore(stateDir, this.name, this.plan.source, clock);
    const isBaseThere = await bases.isThere();
    if (!isBaseThere && !before?.conflicts?.length) return undefined;
    const file = new EditedFile(this.target, clock, (code, detail) => this.alarm(code, detail));
    const read = isBaseThere ? await file.read(signal) : undefined;
    const base = read && (await bases.load(read.sha256)).last?.base;
    if (read && base?.file !== read.sha256) await file.saveConflict(read);
    await bases.forget();
    return await file.standing(before?.conflicts);
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
 * Columns stand as configured; else as they always did, with new ones behind them as the peer has them.
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
  const kept = [...before.filter((column) => present.has(column)), ...added];
  return {
    written: configured ?? kept,
    remembered: kept,
    lost: before.filter((column) => !present.has(column)),
    missing: (configured ?? []).filter((column) => !present.has(column) && !known.has(column)),
  };
}
