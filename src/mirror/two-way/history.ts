import { withPauses } from '../../lib/slices.js';
import { type Cells, type Changes, differingColumns, type Grid } from './merge.js';

/** The age up to which an earlier copy is remembered, in ms. An older one counts as current. */
export const REMEMBERED_MS = 7 * 86_400_000;
/** The most earlier copies of one table. */
const MAX_COPIES = 100;
/** The most characters of all earlier copies of one table. */
const MAX_CHARACTERS = 2 ** 20;
/** The characters that a change counts for besides its text. */
const CHARACTERS_PER_CHANGE = 32;

/**
 * One difference between a copy and the next one, as it is stored.
 *
 * - `column` is null for a row that was added or removed.
 * - `was` is the value in the older copy. For a row it is null if the row was added, and the empty
 *   text if it was removed.
 * - `byFile` says that the change came from the file, and not from the peer.
 */
export type Change = readonly [
  pk: string,
  column: string | null,
  was: string | null,
  byFile: boolean,
];

/**
 * An earlier copy of the file, stored as the changes that lead back to it from the next copy.
 * Times are ms since the epoch.
 */
export interface EarlierCopy {
  /** When it was mirrored. */
  readonly at: number;
  /** When the next copy was mirrored. */
  readonly until: number;
  /** The columns of the file. */
  readonly shown: readonly string[];
  /** The columns with at least one value, including those that the file did not show. */
  readonly columns: readonly string[];
  readonly changes: readonly Change[];
}

/** The copy of the base, before it becomes an earlier one. */
type Copy = Pick<EarlierCopy, 'at' | 'shown' | 'columns'> & { readonly grid: Grid };

/**
 * Describes a copy as the changes that lead back to it from the rows that replace it.
 *
 * @param byFile the changes that came from the file since that copy
 * @returns undefined if the rows are the same
 */
export async function earlierCopy(
  { at, shown, columns, grid: older }: Copy,
  newer: Grid,
  byFile: Changes,
  now: number,
): Promise<EarlierCopy | undefined> {
  const columnsOfBoth = new Set([...older.columns, ...newer.columns]);
  const setByFile = await cellsByKey(byFile);
  const deletedByFile = new Set(byFile.deletes);
  const changes: Change[] = [];
  const keys = new Set([...older.rows.keys(), ...newer.rows.keys()]);
  for await (const pk of withPauses(keys)) {
    const was = older.rows.get(pk);
    const is = newer.rows.get(pk);
    const set = setByFile.get(pk);
    const isRowByFile = is === undefined ? deletedByFile.has(pk) : set !== undefined;
    if ((was === undefined) !== (is === undefined)) {
      changes.push([pk, null, was === undefined ? null : '', isRowByFile]);
    }
    for (const column of differingColumns(was ?? NO_CELLS, is ?? NO_CELLS, columnsOfBoth)) {
      const isCellByFile =
        is === undefined ? isRowByFile : set?.get(column) === (is.get(column) ?? '');
      changes.push([pk, column, was?.get(column) ?? '', isCellByFile]);
    }
  }
  return changes.length === 0 ? undefined : { at, until: now, shown, columns, changes };
}

const NO_CELLS: Cells = new Map();

async function cellsByKey({ set }: Changes): Promise<ReadonlyMap<string, Cells>> {
  const byKey = new Map<string, Cells>();
  for await (const { pk, cells } of withPauses(set)) {
    byKey.set(pk, new Map([...(byKey.get(pk) ?? []), ...cells]));
  }
  return byKey;
}

/** Appends a copy to a history, and drops the oldest copies that exceed a limit. */
export function extended(
  history: readonly EarlierCopy[],
  copy: EarlierCopy | undefined,
  now: number,
): readonly EarlierCopy[] {
  const latestFirst = [...history, ...(copy === undefined ? [] : [copy])].reverse();
  let characters = 0;
  const end = latestFirst.findIndex(({ until, changes }, index) => {
    for (const [, , was] of changes) characters += CHARACTERS_PER_CHANGE + (was?.length ?? 0);
    return index >= MAX_COPIES || characters > MAX_CHARACTERS || now - until > REMEMBERED_MS;
  });
  return latestFirst.slice(0, end === -1 ? undefined : end).reverse();
}
