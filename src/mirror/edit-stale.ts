import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Base, BaseStore, Last, Stale } from './edit-base.js';
import { LONGEST_KEPT } from './edit-copies.js';
import { applied } from './edit-intents.js';
import { withKeys } from './edit-key.js';
import { lackedColumns } from './edit-reading.js';
import type { TableText } from './formats/read.js';
import type { Cells, Grid } from './merge.js';

/** The earlier copy that a file was made from. */
export interface Earlier {
  readonly copy: Base;
  /** Its rows. */
  readonly grid: Grid;
  /** What file and peer would have in common by now if nobody but the person had changed anything since. */
  readonly common: Grid;
}

/** Rows that are compared without giving way to other work. */
const ROWS_A_TURN = 1_000;

/**
 * Finds the earlier copy that a file was plainly made from: an editor had opened it, the mirror wrote a newer one, and the
 * editor saved its own over that. Compared with the newest copy such a file looks as if the person had taken back
 * what the peer changed since.
 *
 * Plain it is where nothing that the peer changed since stands in the file as the peer has it, and at least one thing stands
 * there as it was. What the person changed since, as the intents tell, is no change of the peer: to undo one's own edit is an
 * edit. Of several copies it is the one from which the file differs least: merged with a newer one it would still
 * look as if changes of the peer were taken back.
 */
export async function findEarlier(
  mine: TableText,
  last: Last,
  bases: Pick<BaseStore, 'earlier'>,
): Promise<Earlier | undefined> {
  const newest = last.other ?? last.base;
  const newestGrid = applied(await newest.grid(), last.intents, undefined);
  let found: Earlier | undefined;
  let least = Number.POSITIVE_INFINITY;
  for await (const { copy, told } of bases.earlier(last)) {
    if (lackedColumns(mine, copy).length > 0) continue;
    const grid = await copy.grid();
    const common = applied(grid, told, newestGrid);
    const columns = new Set([...copy.shown, ...newest.shown, ...mine.columns]);
    const differences = await differencesFrom(
      {
        copy: grid,
        common: applied(common, last.intents, newestGrid),
        newest: newestGrid,
        mine: withKeys(mine.rows, mine.columns, grid, copy.salt),
      },
      [...columns],
    );
    if (differences === undefined || differences >= least) continue;
    least = differences;
    found = { copy, grid, common };
  }
  return found;
}

/** What a person is told of it, until the file is edited again, and for as long as earlier copies are kept. */
export function staleNotes(stale: Stale | undefined, now: number): readonly string[] {
  if (stale === undefined || now - stale.at > LONGEST_KEPT) return [];
  const copy = stale.copyAt === undefined ? 'an earlier copy' : `the copy of ${timeText(stale.copyAt)}`;
  return [
    `At ${timeText(stale.at)} the file was saved from ${copy}: the peer's newer changes were kept. To take them back on purpose, save the same once more.`,
  ];
}

function timeText(at: number): string {
  return new Date(at).toLocaleString('sv-SE').slice(0, 16);
}

interface Compared {
  readonly copy: Grid;
  /** The copy, with what the person changed since. */
  readonly common: Grid;
  readonly newest: Grid;
  readonly mine: Grid;
}

/** In how many places the file differs from the copy; undefined where it was not plainly made from it. */
async function differencesFrom(
  { copy, common, newest, mine }: Compared,
  columns: readonly string[],
): Promise<number | undefined> {
  const keys = new Set([...common.rows.keys(), ...newest.rows.keys(), ...mine.rows.keys()]);
  let differences = 0;
  let isPlain = false;
  let rows = 0;
  for (const pk of keys) {
    rows += 1;
    if (rows % ROWS_A_TURN === 0) await nextTurn();
    const row = {
      copy: copy.rows.get(pk),
      common: common.rows.get(pk),
      newest: newest.rows.get(pk),
      mine: mine.rows.get(pk),
    };
    for (const place of placesOf(row, columns)) {
      if (place.mine !== place.common) differences += 1;
      if (place.common === place.newest) continue;
      const isAsCopied = place.mine === place.copy || place.mine === place.common;
      if (place.mine !== place.newest) isPlain ||= isAsCopied;
      else if (!isAsCopied) return undefined;
    }
  }
  return isPlain ? differences : undefined;
}

type Sides<T> = { readonly [side in keyof Compared]: T };

/** What stands in each place of a row on all sides: first whether there is the row, then, where it is in the file, the cells. */
function* placesOf(
  { copy, common, newest, mine }: Sides<Cells | undefined>,
  columns: readonly string[],
): Generator<Sides<unknown>> {
  const isThere = (row: Cells | undefined) => row !== undefined;
  // A row that both added is the peer's only if it is the same.
  const isAnother =
    common === undefined &&
    newest !== undefined &&
    columns.some((column) => mine !== undefined && (mine.get(column) ?? '') !== (newest.get(column) ?? ''));
  yield {
    copy: isThere(copy),
    common: isThere(common),
    newest: isThere(newest),
    mine: isAnother ? 'another' : isThere(mine),
  };
  if (common === undefined || mine === undefined) return;
  for (const column of columns) {
    const cellOf = (row: Cells) => row.get(column) ?? '';
    const was = cellOf(common);
    // Of a row that is not there its cells say nothing.
    yield {
      copy: copy === undefined ? was : cellOf(copy),
      common: was,
      newest: newest === undefined ? was : cellOf(newest),
      mine: cellOf(mine),
    };
  }
}
