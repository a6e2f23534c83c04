import { createHash } from 'node:crypto';
import { inTurns, nextTurn } from '../../lib/slices.js';
import type { TableRow } from '../../peer/table.js';

export type Cells = ReadonlyMap<string, string>;

/** A table in memory, by key. A cell that is not there is an empty one. */
export interface Grid {
  readonly columns: readonly string[];
  readonly rows: ReadonlyMap<string, Cells>;
}

/**
 * What both sides changed: the peer's stays. Without a column: one side changed the row, the other
 * removed it.
 */
export interface MergeConflict {
  readonly pk: string;
  readonly column?: string;
}

/** Changes of the file that the peer is to be sent. */
export interface Outbound {
  /**
   * To be committed: the changed cells only; of new rows those that are not empty, at least one.
   */
  readonly set: TableRow[];
  /** Keys of rows. */
  readonly deletes: string[];
}

/** The file takes everything else from the peer as it is afterwards. */
export interface Merge extends Outbound {
  readonly conflicts: MergeConflict[];
  /** Keys of rows that were removed from the file, and come back. */
  readonly returned: string[];
  /**
   * Changes that both sides made alike, which the peer need not be sent: they are as much the
   * file's as the peer's.
   */
  readonly alike: Outbound;
}

/** Bytes that are hashed without giving way: a few milliseconds. */
const HASHED_A_TURN = 2 ** 21;

/** The sha256 in lower-case hex; gives way to other work now and then. */
export async function sha256Of(bytes: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += HASHED_A_TURN) {
    hash.update(bytes.subarray(at, at + HASHED_A_TURN));
    await nextTurn();
  }
  return hash.digest('hex');
}

/**
 * Three-way merge by key and cell of `peer` and `mine`, that both come from `base`. Changes of one
 * side go to the other, equal changes are no changes, and of different ones the peer's stays (a
 * conflict). Without a base nobody knows who changed what: then every difference is a conflict, and
 * nothing is sent to the peer.
 *
 * Only the columns of `mine` are compared: of the others the file says nothing.
 *
 * @param rules.deletes whether a row that is removed from the file is removed from the peer
 */
export async function merge(
  base: Grid | undefined,
  peer: Grid,
  mine: Grid,
  rules: { readonly deletes: boolean },
): Promise<Merge> {
  const alike: Outbound = { set: [], deletes: [] };
  const plan: Merge = { set: [], deletes: [], conflicts: [], returned: [], alike };
  for await (const pk of inTurns(new Set([...mine.rows.keys(), ...(base?.rows.keys() ?? [])]))) {
    const rows = [base?.rows.get(pk), peer.rows.get(pk), mine.rows.get(pk)] as const;
    mergeRow(pk, rows, mine.columns, plan, base === undefined ? undefined : rules);
  }
  return plan;
}

/** @param rules undefined where there is no base at all */
function mergeRow(
  pk: string,
  [base, peer, mine]: readonly [
    base: Cells | undefined,
    peer: Cells | undefined,
    mine: Cells | undefined,
  ],
  columns: readonly string[],
  plan: Merge,
  rules: { readonly deletes: boolean } | undefined,
): void {
  if (mine === undefined) {
    if (base === undefined) return;
    if (peer === undefined) plan.alike.deletes.push(pk);
    else if (rules?.deletes !== true) plan.returned.push(pk);
    else if (sameCells(base, peer)) plan.deletes.push(pk);
    else plan.conflicts.push({ pk });
  } else if (peer === undefined) {
    if (base === undefined && rules !== undefined)
      plan.set.push({ pk, cells: cellsOfNew(mine, columns) });
    else if (base === undefined || differing(base, mine, columns).length > 0)
      plan.conflicts.push({ pk });
  } else if (base === undefined) {
    // Two rows that have nothing in common but the key are not mixed: one that is half of each
    // would be a lie.
    const clashes = differing(peer, mine, columns);
    for (const column of clashes) plan.conflicts.push({ pk, column });
    if (clashes.length === 0) plan.alike.set.push({ pk, cells: mine });
  } else {
    const cells = new Map<string, string>();
    const alike = new Map<string, string>();
    for (const column of differing(base, mine, columns)) {
      const wanted = mine.get(column) ?? '';
      const there = peer.get(column) ?? '';
      if (there === wanted) alike.set(column, wanted);
      else if (there === (base.get(column) ?? '')) cells.set(column, wanted);
      else plan.conflicts.push({ pk, column });
    }
    if (cells.size > 0) plan.set.push({ pk, cells });
    if (alike.size > 0) plan.alike.set.push({ pk, cells: alike });
  }
}

function cellsOfNew(mine: Cells, columns: readonly string[]): Cells {
  const cells = new Map([...mine].filter(([, value]) => value !== ''));
  const [first] = columns;
  // A row is created by a cell that is committed, be it empty.
  if (cells.size === 0 && first !== undefined) cells.set(first, '');
  return cells;
}

/** Of these columns those in which two rows differ. */
export function differing(a: Cells, b: Cells, columns: Iterable<string>): readonly string[] {
  return [...columns].filter((column) => (a.get(column) ?? '') !== (b.get(column) ?? ''));
}

/** Whether two rows have the same cells, in all columns that either has. */
function sameCells(a: Cells, b: Cells): boolean {
  return differing(a, b, a.keys()).length === 0 && differing(a, b, b.keys()).length === 0;
}

/**
 * The base as it is after a run was cut short: what that run had sent to the peer, and the peer
 * shows, is common to both sides by now, as if the file had been written. Without this a person who
 * takes such an edit back would be taken for one who changed nothing.
 *
 * @returns also what of it the peer shows
 */
export async function absorb(
  base: Grid,
  sent: Outbound,
  peer: Grid,
): Promise<{ readonly base: Grid; readonly done: Outbound }> {
  const done: Outbound = { set: [], deletes: [] };
  if (sent.set.length + sent.deletes.length === 0) return { base, done };
  const rows = new Map(base.rows);
  for await (const { pk, cells } of inTurns(sent.set)) {
    const shown = peer.rows.get(pk);
    const seen = [...cells].filter(
      ([column, value]) => shown && (shown.get(column) ?? '') === value,
    );
    if (seen.length === 0) continue;
    rows.set(pk, new Map([...(rows.get(pk) ?? []), ...seen]));
    done.set.push({ pk, cells: new Map(seen) });
  }
  for await (const pk of inTurns(sent.deletes)) {
    if (peer.rows.has(pk)) continue;
    rows.delete(pk);
    done.deletes.push(pk);
  }
  return { base: { columns: base.columns, rows }, done };
}

const KEY_LENGTH = 12;

/**
 * Gives new rows their keys: 12 characters [0-9a-z], made of what stands in the row. So a run that
 * ended between the commit of a row and the writing of the file finds the same key again, and adds
 * nothing twice. Of equal rows each has its own, and a key that the base has is of a row that was
 * there before. New rows without anything in them are left out: spreadsheets like to leave such
 * lines.
 *
 * @param isTaken whether the base has a row of this key
 * @param salt differs between mirrors, so that two people who add equal rows add two
 * @returns all rows by their keys
 */
export async function withKeys(
  rows: readonly TableRow[],
  isTaken: (pk: string) => boolean,
  salt: string,
): Promise<ReadonlyMap<string, Cells>> {
  const keyed = new Map<string, Cells>();
  for (const { pk, cells } of rows) if (pk !== '') keyed.set(pk, cells);
  const tries = new Map<string, number>();
  for await (const { pk, cells } of inTurns(rows)) {
    const filled = pk === '' ? [...cells].filter(([, value]) => value !== '') : [];
    if (filled.length === 0) continue;
    // The same for rows with the same cells, in whatever order.
    const content = JSON.stringify(filled.sort(([a], [b]) => (a < b ? -1 : 1)));
    let occurrence = tries.get(content) ?? 0;
    let key = keyOf(salt, content, occurrence);
    while (keyed.has(key) || isTaken(key)) {
      occurrence += 1;
      key = keyOf(salt, content, occurrence);
    }
    tries.set(content, occurrence + 1);
    keyed.set(key, cells);
  }
  return keyed;
}

function keyOf(salt: string, content: string, occurrence: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([salt, content, occurrence]))
    .digest('hex');
  // 15 hexadecimal digits make 60 bits; 12 digits to base 36 hold 62.
  return BigInt(`0x${hash.slice(0, 15)}`)
    .toString(36)
    .padStart(KEY_LENGTH, '0');
}
