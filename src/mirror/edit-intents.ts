import type { TableRow } from '../peer/table.js';
import type { Cells, Grid } from './merge.js';

/** What was about to be told to the peer; on disk before it is told, for a run can end at any instant. */
export interface Intents {
  readonly set: readonly TableRow[];
  readonly deletes: readonly string[];
}

export interface Absorbed {
  readonly base: Grid;
  /** The intents that were seen to have come true. */
  readonly done: Intents;
}

/**
 * The base as it is after the last run was cut short: what that run had told the peer, and the peer shows, is common to
 * both sides by now, as if the file had been written. Without this a person who takes such an edit back would be
 * taken for one who changed nothing.
 */
export function absorb(base: Grid, intents: Intents, peer: Grid): Absorbed {
  if (intents.set.length === 0 && intents.deletes.length === 0) {
    return { base, done: { set: [], deletes: [] } };
  }
  const rows = new Map(base.rows);
  const done: { set: TableRow[]; deletes: string[] } = { set: [], deletes: [] };
  for (const { pk, cells } of intents.set) {
    const shown = peer.rows.get(pk);
    if (shown === undefined) continue;
    const true_ = new Map([...cells].filter(([column, value]) => (shown.get(column) ?? '') === value));
    if (true_.size === 0) continue;
    rows.set(pk, new Map([...(rows.get(pk) ?? []), ...true_]));
    done.set.push({ pk, cells: true_ });
  }
  for (const pk of intents.deletes) {
    if (peer.rows.has(pk)) continue;
    rows.delete(pk);
    done.deletes.push(pk);
  }
  return { base: { columns: base.columns, rows }, done };
}

/**
 * A table after everything was told to it that was told.
 *
 * @param now the table as it is: of a row that was set and deleted nobody knows which was last, but whether it is there now
 */
export function applied(grid: Grid, told: Intents, now: Grid | undefined): Grid {
  if (told.set.length === 0 && told.deletes.length === 0) return grid;
  const rows = new Map(grid.rows);
  for (const { pk, cells } of told.set) rows.set(pk, new Map([...(rows.get(pk) ?? []), ...cells]));
  const set = new Set(told.set.map(({ pk }) => pk));
  for (const pk of told.deletes) if (!set.has(pk) || now?.rows.has(pk) === false) rows.delete(pk);
  return { columns: grid.columns, rows };
}

/** Both, the later ones behind the earlier: a cell may have been told twice. */
export function together(a: Intents, b: Intents): Intents {
  return { set: [...a.set, ...b.set], deletes: [...new Set([...a.deletes, ...b.deletes])] };
}

interface StoredIntents {
  readonly base: string;
  readonly set: readonly (readonly [string, readonly (readonly [string, string])[]])[];
  readonly deletes: readonly string[];
}

/** @param base the id of the base that they begin from */
export function storeIntents({ set, deletes }: Intents, base: string): string {
  const stored: StoredIntents = { base, set: set.map(({ pk, cells }) => [pk, [...cells]]), deletes };
  return JSON.stringify(stored);
}

/** Intents of another base, or none that can be read, are none. */
export function readIntents(text: string, base: string): Intents {
  const none: Intents = { set: [], deletes: [] };
  try {
    const stored = JSON.parse(text) as StoredIntents;
    if (stored.base !== base) return none;
    const set = stored.set.map(([pk, cells]): { pk: string; cells: Cells } => ({
      pk,
      cells: new Map(cells),
    }));
    return { set, deletes: stored.deletes };
  } catch {
    return none;
  }
}
