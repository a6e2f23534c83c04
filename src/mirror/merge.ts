import type { TableRow } from '../peer/table.js';

export type Cells = ReadonlyMap<string, string>;

/** A table in memory, by key. A cell that is not there is an empty one. */
export interface Grid {
  readonly columns: readonly string[];
  readonly rows: ReadonlyMap<string, Cells>;
}

/** Rows that are merged without giving way to other work. */
const ROWS_A_TURN = 1_000;

/** What was changed on both sides: the peer's stays. Without a column: one side changed the row, the other removed it. */
export interface Clash {
  readonly pk: string;
  readonly column?: string;
}

/** What one side is to be told of the other. The file takes the rest from the peer as it is afterwards. */
export interface Merge {
  /** To be committed: the changed cells only; of new rows those that are not empty, at least one. */
  readonly set: readonly TableRow[];
  /** Keys, to be deleted. */
  readonly deletes: readonly string[];
  readonly clashes: readonly Clash[];
  /** Keys of rows that were removed from the file, and come back. */
  readonly returned: readonly string[];
}

export interface MergeRules {
  /** Whether a row that is removed from the file is removed from the peer. */
  readonly deletes: boolean;
}

/** Which sides have a row, and what each has there. */
interface Sides {
  readonly pk: string;
  readonly base: Cells | undefined;
  readonly peer: Cells | undefined;
  readonly mine: Cells | undefined;
}

/**
 * Three-way merge by key and cell of `peer` and `mine`, that both come from `base`. Changes of one side go to the other,
 * equal changes are no changes, and of different ones the peer's stays (a clash). Without a base nobody knows who
 * changed what: then every difference is a clash, and nothing is told to the peer.
 *
 * Only the columns of `mine` are compared: of the others the file says nothing.
 */
export function merge(base: Grid | undefined, peer: Grid, mine: Grid, rules: MergeRules): Merge {
  const merging = mergeInTurns(base, peer, mine, rules);
  for (;;) {
    const { done, value } = merging.next();
    if (done) return value;
  }
}

/** As `merge`; yields now and then, so that other work can go on. */
export function* mergeInTurns(
  base: Grid | undefined,
  peer: Grid,
  mine: Grid,
  rules: MergeRules,
): Generator<void, Merge> {
  const plan: Plan = { set: [], deletes: [], clashes: [], returned: [] };
  let rows = 0;
  for (const pk of keysOf(mine, base)) {
    const sides = { pk, base: base?.rows.get(pk), peer: peer.rows.get(pk), mine: mine.rows.get(pk) };
    if (base === undefined) compareRow(sides, mine.columns, plan);
    else mergeRow(sides, mine.columns, rules, plan);
    rows += 1;
    if (rows % ROWS_A_TURN === 0) yield;
  }
  return plan;
}

/**
 * What both merges of the same sides come to, where nobody knows which of two bases it was: what only one of them would tell
 * the peer is a clash.
 */
export function agreed(a: Merge, b: Merge): Merge {
  const clashes = new Map<string, Clash>();
  const clash = (pk: string, column?: string): void => {
    clashes.set(JSON.stringify([pk, column]), column === undefined ? { pk } : { pk, column });
  };
  for (const { pk, column } of [...a.clashes, ...b.clashes]) clash(pk, column);
  const set: TableRow[] = [];
  for (const [rows, others] of [
    [a.set, byKey(b.set)],
    [b.set, byKey(a.set)],
  ] as const) {
    for (const { pk, cells } of rows) {
      const both = new Map([...cells].filter(([column]) => others.get(pk)?.has(column)));
      for (const column of cells.keys()) if (!both.has(column)) clash(pk, column);
      if (rows === a.set && both.size > 0) set.push({ pk, cells: both });
    }
  }
  const inB = new Set(b.deletes);
  const deletes = a.deletes.filter((pk) => inB.has(pk));
  const inBoth = new Set(deletes);
  for (const pk of [...a.deletes, ...b.deletes]) if (!inBoth.has(pk)) clash(pk);
  const returned = [...new Set([...a.returned, ...b.returned])];
  return { set, deletes, clashes: [...clashes.values()], returned };
}

function byKey(rows: readonly TableRow[]): ReadonlyMap<string, Cells> {
  return new Map(rows.map(({ pk, cells }) => [pk, cells]));
}

/** The keys of the file, and then those that it does not have any more. */
function* keysOf(mine: Grid, base: Grid | undefined): Generator<string, void> {
  yield* mine.rows.keys();
  for (const pk of base?.rows.keys() ?? []) if (!mine.rows.has(pk)) yield pk;
}

interface Plan {
  readonly set: TableRow[];
  readonly deletes: string[];
  readonly clashes: Clash[];
  readonly returned: string[];
}

function mergeRow(sides: Sides, columns: readonly string[], rules: MergeRules, plan: Plan): void {
  const { pk, base, peer, mine } = sides;
  if (mine === undefined) {
    if (base === undefined || peer === undefined) return;
    if (!rules.deletes) plan.returned.push(pk);
    else if (sameCells(base, peer)) plan.deletes.push(pk);
    else plan.clashes.push({ pk });
    return;
  }
  if (peer === undefined) {
    if (base === undefined) plan.set.push({ pk, cells: cellsOfNew(mine, columns) });
    else if (differing(base, mine, columns).length > 0) plan.clashes.push({ pk });
    return;
  }
  if (base === undefined) compareRow(sides, columns, plan);
  else mergeCells({ pk, base, peer, mine }, columns, plan);
}

function mergeCells(
  { pk, base, peer, mine }: { readonly [K in keyof Sides]-?: Exclude<Sides[K], undefined> },
  columns: readonly string[],
  plan: Plan,
): void {
  const cells = new Map<string, string>();
  for (const column of differing(base, mine, columns)) {
    const wanted = mine.get(column) ?? '';
    const there = peer.get(column) ?? '';
    if (there === wanted) continue;
    if (there === (base.get(column) ?? '')) cells.set(column, wanted);
    else plan.clashes.push({ pk, column });
  }
  if (cells.size > 0) plan.set.push({ pk, cells });
}

/**
 * Two rows that have nothing in common but the key. They are not mixed: a row that is half of one and half of the other
 * would be a lie.
 */
function compareRow({ pk, peer, mine }: Sides, columns: readonly string[], plan: Plan): void {
  if (mine === undefined) return;
  if (peer === undefined) {
    plan.clashes.push({ pk });
    return;
  }
  for (const column of differing(peer, mine, columns)) plan.clashes.push({ pk, column });
}

function cellsOfNew(mine: Cells, columns: readonly string[]): Cells {
  const cells = new Map([...mine].filter(([, value]) => value !== ''));
  const [first] = columns;
  // A row is created by a cell that is committed, be it empty.
  if (cells.size === 0 && first !== undefined) cells.set(first, '');
  return cells;
}

function differing(a: Cells, b: Cells, columns: readonly string[]): readonly string[] {
  return columns.filter((column) => (a.get(column) ?? '') !== (b.get(column) ?? ''));
}

/** Whether two rows have the same cells, in all columns that either has. */
function sameCells(a: Cells, b: Cells): boolean {
  const differs = ([column, value]: readonly [string, string], other: Cells) =>
    value !== (other.get(column) ?? '');
  return ![...a].some((cell) => differs(cell, b)) && ![...b].some((cell) => differs(cell, a));
}
