import { withPauses } from '../../lib/slices.js';
import type { TableRow } from '../../peer/table.js';

/** The cells of a row by column. An absent cell equals an empty one. */
export type Cells = ReadonlyMap<string, string>;

/** A table in memory: its rows by key. */
export interface Grid {
  readonly columns: readonly string[];
  readonly rows: ReadonlyMap<string, Cells>;
}

/**
 * A cell that both sides changed differently. Without a column it is a row that one side changed
 * and the other removed, or, without a base of the table, one that only the file has. The remote
 * value stays.
 */
export interface MergeConflict {
  readonly pk: string;
  readonly column?: string;
}

/** Changes of rows of the remote table. */
export interface Changes {
  /** Rows to be set: only their changed cells. A new row has its cells that are not empty. */
  readonly set: TableRow[];
  /** Keys of rows to be deleted. */
  readonly deletes: string[];
}

export const NO_CHANGES: Changes = { set: [], deletes: [] };

/** The result of a merge: changes for the peer. The file is then written from the peer's table. */
export interface Merge extends Changes {
  readonly conflicts: MergeConflict[];
  /** Keys of rows that were removed from the file, and that are written back into it. */
  readonly restored: string[];
  /** Changes that both sides made alike. They are not pushed, and count as changes of the file. */
  readonly sameOnBoth: Changes;
}

/** The settings of the table, as the configuration has them (passed by `SyncRun.#merge`). */
export interface MergeRules {
  /** Whether a row that is removed from the file is deleted in the peer. */
  readonly deletes: boolean;
}

/** One row in the three versions of the table. Undefined in a version that does not have it. */
interface RowVersions {
  readonly pk: string;
  readonly base: Cells | undefined;
  readonly remote: Cells | undefined;
  readonly local: Cells | undefined;
}

/**
 * Merges the peer's table (`remote`) and the file (`local`) by key and cell. Both come from `base`.
 *
 * - A change of the file is pushed. A change of the peer stays, and reaches the file later.
 * - An equal change of both sides needs nothing.
 * - Different changes of the same cell are a conflict, and the remote value stays.
 * - A row that both sides added has no base, and is compared whole (`compareWithoutBaseRow`).
 *
 * Without a base of the table (`base` is undefined), all rows are compared in this way. Every
 * difference is a conflict, and nothing is pushed.
 *
 * Only the columns of `local` are compared. The file may show fewer columns than the peer has.
 */
export async function merge(
  base: Grid | undefined,
  remote: Grid,
  local: Grid,
  rules: MergeRules,
): Promise<Merge> {
  const result: Merge = {
    set: [],
    deletes: [],
    conflicts: [],
    restored: [],
    sameOnBoth: { set: [], deletes: [] },
  };
  const keys = new Set([...local.rows.keys(), ...(base?.rows.keys() ?? [])]);
  for await (const pk of withPauses(keys)) {
    const row: RowVersions = {
      pk,
      base: base?.rows.get(pk),
      remote: remote.rows.get(pk),
      local: local.rows.get(pk),
    };
    if (base === undefined) compareWithoutBaseRow(row, local.columns, result);
    else mergeRow(row, local.columns, rules, result);
  }
  return result;
}

function mergeRow(
  row: RowVersions,
  columns: readonly string[],
  rules: MergeRules,
  result: Merge,
): void {
  const { pk, base, remote, local } = row;
  if (local === undefined) {
    mergeRemovedRow(row, rules, result);
  } else if (base === undefined && remote === undefined) {
    result.set.push({ pk, cells: cellsOfNewRow(local, columns) });
  } else if (base === undefined) {
    compareWithoutBaseRow(row, columns, result);
  } else if (remote !== undefined) {
    mergeCells(pk, base, remote, local, columns, result);
  } else if (differingColumns(base, local, columns).length > 0) {
    result.conflicts.push({ pk });
  }
}

/** Merges a row that the base has and the file does not. */
function mergeRemovedRow(
  { pk, base, remote }: RowVersions,
  { deletes }: MergeRules,
  result: Merge,
): void {
  if (base === undefined) return;
  if (remote === undefined) result.sameOnBoth.deletes.push(pk);
  else if (!deletes) result.restored.push(pk);
  else if (hasSameCells(base, remote)) result.deletes.push(pk);
  else result.conflicts.push({ pk });
}

/**
 * Compares a row of the file with the peer's row of the same key, which have no common base. They
 * are not mixed: half of each would be a row that nobody wrote.
 */
function compareWithoutBaseRow(
  { pk, remote, local }: RowVersions,
  columns: readonly string[],
  result: Merge,
): void {
  if (local === undefined) return;
  if (remote === undefined) {
    result.conflicts.push({ pk });
    return;
  }
  const differing = differingColumns(remote, local, columns);
  for (const column of differing) result.conflicts.push({ pk, column });
  if (differing.length === 0) result.sameOnBoth.set.push({ pk, cells: local });
}

/** Merges a row that all three versions have. */
function mergeCells(
  pk: string,
  base: Cells,
  remote: Cells,
  local: Cells,
  columns: readonly string[],
  result: Merge,
): void {
  const changed = new Map<string, string>();
  const sameOnBoth = new Map<string, string>();
  for (const column of differingColumns(base, local, columns)) {
    const localValue = local.get(column) ?? '';
    const remoteValue = remote.get(column) ?? '';
    if (remoteValue === localValue) sameOnBoth.set(column, localValue);
    else if (remoteValue === (base.get(column) ?? '')) changed.set(column, localValue);
    else result.conflicts.push({ pk, column });
  }
  if (changed.size > 0) result.set.push({ pk, cells: changed });
  if (sameOnBoth.size > 0) result.sameOnBoth.set.push({ pk, cells: sameOnBoth });
}

function cellsOfNewRow(local: Cells, columns: readonly string[]): Cells {
  const cells = new Map([...local].filter(([, value]) => value !== ''));
  const [first] = columns;
  // The peer creates a row only with a cell, even if that is empty.
  if (cells.size === 0 && first !== undefined) cells.set(first, '');
  return cells;
}

/** Returns those of the columns in which two rows differ. */
export function differingColumns(a: Cells, b: Cells, columns: Iterable<string>): readonly string[] {
  return [...columns].filter((column) => (a.get(column) ?? '') !== (b.get(column) ?? ''));
}

function hasSameCells(a: Cells, b: Cells): boolean {
  const columns = new Set([...a.keys(), ...b.keys()]);
  return differingColumns(a, b, columns).length === 0;
}

/** Returns two sets of changes as one: those of `a`, then those of `b`. */
export function combined(a: Changes, b: Changes): Changes {
  return { set: [...a.set, ...b.set], deletes: [...new Set([...a.deletes, ...b.deletes])] };
}

export function isEmpty({ set, deletes }: Changes): boolean {
  return set.length === 0 && deletes.length === 0;
}

/**
 * Brings a base up to date after an interrupted run. A change that the run pushed, and that the
 * peer shows, is part of both sides by now, so it becomes part of the base. Otherwise an edit that
 * reverts the change would equal the old base, and would not count as an edit.
 *
 * @returns the new base, and those of the pushed changes that the peer shows
 */
export async function includePushed(
  base: Grid,
  pushed: Changes,
  remote: Grid,
): Promise<{ readonly base: Grid; readonly shown: Changes }> {
  const shown: Changes = { set: [], deletes: [] };
  if (isEmpty(pushed)) return { base, shown };
  const rows = new Map(base.rows);
  for await (const { pk, cells } of withPauses(pushed.set)) {
    const row = remote.rows.get(pk);
    const cellsShown = [...cells].filter(
      ([column, value]) => row !== undefined && (row.get(column) ?? '') === value,
    );
    if (cellsShown.length === 0) continue;
    rows.set(pk, new Map([...(rows.get(pk) ?? []), ...cellsShown]));
    shown.set.push({ pk, cells: new Map(cellsShown) });
  }
  for await (const pk of withPauses(pushed.deletes)) {
    if (remote.rows.has(pk)) continue;
    rows.delete(pk);
    shown.deletes.push(pk);
  }
  return { base: { columns: base.columns, rows }, shown };
}
