import { nextTurn, withPauses } from '../../lib/slices.js';
import { wallClockText } from '../../lib/units.js';
import type { TableText } from '../formats/table-text.js';
import type { Base, StaleSave } from './base-store.js';
import { type Change, type EarlierCopy, REMEMBERED_MS } from './history.js';
import { type Cells, differingColumns, type Grid } from './merge.js';
import { assignKeys } from './row-keys.js';

/** The earlier copy that a file was made from. */
export interface StaleCopy extends Pick<EarlierCopy, 'at' | 'shown' | 'columns'> {
  /** Whether the copy has a row of this key. */
  readonly hasRow: (pk: string) => boolean;
  /** The base for the merge: the copy with the changes that the file itself made since. */
  readonly base: Grid;
}

/**
 * Finds the earlier copy that a file was made from. An editor had opened that copy, the mirror
 * wrote a newer one, and the editor saved its own over it. Compared with the newest copy, the file
 * seems to undo what the peer changed since.
 *
 * A file was made from an earlier copy if it has at least one old value where the peer changed
 * something since, and none of the peer's new values. Changes that came from the file are no
 * evidence: a person may undo an edit of their own. Of several such copies, the one that is closest
 * to the file is returned. A merge with a newer one would still undo changes of the peer.
 *
 * @returns undefined if the file was made from the newest copy, as far as its values show
 */
export async function findStaleCopy(
  local: TableText,
  newest: Base,
  now: number,
): Promise<StaleCopy | undefined> {
  if (newest.history.length === 0) return undefined;
  const rewind = new Rewind(newest.grid);
  const hasNewRows = local.rows.some(({ pk }) => pk === '');
  let rows = await assignKeys(local.rows, () => false, newest.salt);
  let closest: StaleCopy | undefined;
  let leastDistance = Number.POSITIVE_INFINITY;
  for (const copy of newest.history.toReversed()) {
    if (now - copy.until > REMEMBERED_MS) break;
    await nextTurn();
    for await (const change of withPauses(copy.changes)) rewind.undo(change);
    if (missingColumns(local, copy).length > 0) continue;
    if (hasNewRows) rows = await assignKeys(local.rows, rewind.rowsOfCopy(), newest.salt);
    const columns = new Set([...copy.shown, ...newest.shown, ...local.columns]);
    const distance = await rewind.distanceTo({ columns, rows });
    if (distance === undefined || distance >= leastDistance) continue;
    leastDistance = distance;
    const { at, shown, columns: filled } = copy;
    closest = { at, shown, columns: filled, hasRow: rewind.rowsOfCopy(), base: rewind.base() };
  }
  return closest;
}

/** Returns the columns that have values, that the copy showed, and that the file lacks. */
export function missingColumns(
  local: Pick<TableText, 'columns'>,
  { shown, columns }: Pick<EarlierCopy, 'shown' | 'columns'>,
): readonly string[] {
  const filled = new Set(columns);
  return shown.filter((column) => filled.has(column) && !local.columns.includes(column));
}

/** Returns the note about a stale copy, for as long as earlier copies are remembered. */
export function staleNotes(stale: StaleSave | undefined, now: number): readonly string[] {
  if (stale === undefined || now - stale.at > REMEMBERED_MS) return [];
  const textOf = (at: number) => wallClockText(at).slice(0, 16);
  return [
    `At ${textOf(stale.at)} the file was saved from the copy of ${textOf(stale.copyAt)}: the peer's newer changes were kept. To take them back on purpose, save the same once more.`,
  ];
}

/** The file while it is compared: the columns to compare, and its rows by key. */
interface LocalRows {
  readonly columns: ReadonlySet<string>;
  readonly rows: ReadonlyMap<string, Cells>;
}

/** Rows that differ from those of the newest copy. Undefined for a row that did not exist. */
type ChangedRows = Map<string, Cells | undefined>;

/** A cell, or a whole row (`column` is null), that changed since the copy. */
interface Place {
  readonly pk: string;
  readonly column: string | null;
  /** Whether one of its changes came from the file. */
  isByFile: boolean;
}

/**
 * The value of one place in each version: null if the row does not exist there, and the empty text
 * for a row that does.
 */
interface Values {
  readonly local: string | null;
  readonly copy: string | null;
  readonly base: string | null;
  readonly newest: string | null;
}

/**
 * Evidence of one place.
 *
 * - `stale`: the file has the older value, although the peer changed it.
 * - `current`: the file has the newer value of the peer. It was not made from the copy.
 * - `none`: the peer changed nothing here, or the file has a third value.
 */
type Evidence = 'stale' | 'current' | 'none';

/**
 * Rewinds from the newest copy to earlier ones, change by change. The copy that it has reached is
 * the *current* one.
 */
class Rewind {
  readonly #newest: Grid;
  /** The rows of the earlier copy that differ. */
  readonly #copy: ChangedRows = new Map();
  /** The same rows with the changes that the file made since. */
  readonly #base: ChangedRows = new Map();
  readonly #places = new Map<string, Place>();

  constructor(newest: Grid) {
    this.#newest = newest;
  }

  /** Goes one change back. A value that the file set stays in the base. */
  undo([pk, column, was, isByFile]: Change): void {
    const key = JSON.stringify([pk, column]);
    const place = this.#places.get(key) ?? { pk, column, isByFile: false };
    this.#places.set(key, place);
    place.isByFile ||= isByFile;
    this.#restore(this.#copy, pk, column, was);
    if (!place.isByFile) this.#restore(this.#base, pk, column, was);
  }

  /** Returns a test for the rows of the current copy. Later calls of `undo` do not change it. */
  rowsOfCopy(): (pk: string) => boolean {
    const copy = new Map(this.#copy);
    return (pk) => this.#rowIn(copy, pk) !== undefined;
  }

  /** Returns the base for a merge with the current copy. */
  base(): Grid {
    const rows = new Map(this.#newest.rows);
    for (const [pk, row] of this.#base) {
      if (row === undefined) rows.delete(pk);
      else rows.set(pk, row);
    }
    return { columns: this.#newest.columns, rows };
  }

  /**
   * Returns the distance of the file to the current copy: the number of places in which it differs
   * from that, less the number in which it differs from the newest copy. Undefined if the file was
   * not made from the current copy.
   */
  async distanceTo(local: LocalRows): Promise<number | undefined> {
    let distance = 0;
    let isStale = false;
    for await (const place of withPauses(this.#places.values())) {
      if (!isCompared(place, local)) continue;
      const values = this.#valuesAt(place, local);
      distance += Number(differs(values.base, values, place));
      distance -= Number(differs(values.newest, values, place));
      const evidence = this.#evidenceOf(values, place, local);
      if (evidence === 'current') return undefined;
      if (evidence === 'stale') isStale = true;
    }
    return isStale ? distance : undefined;
  }

  #evidenceOf(values: Values, { pk, column }: Place, local: LocalRows): Evidence {
    const { base, newest } = values;
    const isChangedByPeer = base !== newest && !(column !== null && base === null);
    if (!isChangedByPeer) return 'none';
    const hasOldValue = values.local === values.copy || values.local === base;
    const hasNewValue = values.local === newest && !this.#isAnotherRow(pk, column, values, local);
    if (!hasNewValue) return hasOldValue ? 'stale' : 'none';
    return hasOldValue ? 'none' : 'current';
  }

  /** Whether the file and the peer each added a row with this key, and the two rows differ. */
  #isAnotherRow(pk: string, column: string | null, { base }: Values, local: LocalRows): boolean {
    if (column !== null || base !== null) return false;
    const row = local.rows.get(pk);
    const newest = this.#newest.rows.get(pk);
    if (row === undefined || newest === undefined) return false;
    return differingColumns(row, newest, local.columns).length > 0;
  }

  #valuesAt({ pk, column }: Place, local: LocalRows): Values {
    return {
      local: valueIn(local.rows.get(pk), column),
      copy: valueIn(this.#rowIn(this.#copy, pk), column),
      base: valueIn(this.#rowIn(this.#base, pk), column),
      newest: valueIn(this.#newest.rows.get(pk), column),
    };
  }

  #restore(rows: ChangedRows, pk: string, column: string | null, was: string | null): void {
    const row = this.#rowIn(rows, pk);
    if (column === null) rows.set(pk, was === null ? undefined : (row ?? new Map()));
    else if (row !== undefined) rows.set(pk, new Map([...row, [column, was ?? '']]));
  }

  #rowIn(changed: ChangedRows, pk: string): Cells | undefined {
    return changed.has(pk) ? changed.get(pk) : this.#newest.rows.get(pk);
  }
}

/** Whether the file says anything about a place: it has the row, and shows the column. */
function isCompared({ pk, column }: Place, { columns, rows }: LocalRows): boolean {
  return column === null || (rows.has(pk) && columns.has(column));
}

/** Whether the file differs from another version. The cells of a missing row do not count. */
function differs(other: string | null, { local }: Values, { column }: Place): boolean {
  return local !== other && (column === null || other !== null);
}

/** Returns a cell, or the empty text for a row (`column` is null). Null if there is no row. */
function valueIn(row: Cells | undefined, column: string | null): string | null {
  if (row === undefined) return null;
  return column === null ? '' : (row.get(column) ?? '');
}
