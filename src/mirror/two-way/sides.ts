import type { TableMirrorConfig } from '../../config/config.js';
import { inSlices } from '../../lib/slices.js';
import { counted, numberText } from '../../lib/text.js';
import type { TableRow } from '../../peer/table.js';
import { type ConditionCode, quoted, quotedList } from '../errors.js';
import { namesColumnsWithoutRows, readTable, writeTable } from '../formats/formats.js';
import type { TableText } from '../formats/table-text.js';
import type { FollowOptions, MirrorDeps } from '../mirror.js';
import type { TablePlan } from '../plan.js';
import type { MirrorRecord } from '../record.js';
import type { Columns, TableCopy, TableSource } from '../table.js';
import { type EditedFile, type FileContent, MAX_EDITED_BYTES } from './edited-file.js';
import type { EarlierCopy } from './history.js';
import type { Cells, Changes, Grid } from './merge.js';
import { missingColumns } from './stale-copy.js';

/** The most rows of a table that can be edited. */
const MAX_ROWS = 100_000;
/** The rows that are formatted between two pauses. */
const ROWS_PER_SLICE = 100;
/** The most characters of a key, or of the name of a column. */
const MAX_NAME_LENGTH = 500;

/**
 * Reads the table from the edited file.
 *
 * @throws MirrorCondition EDIT_UNREADABLE, EDIT_TOO_LARGE
 */
export async function readLocalTable(
  file: EditedFile,
  { bytes }: FileContent,
  format: TableMirrorConfig['format'],
): Promise<TableText> {
  const result = await readTable(format, bytes);
  if ('fault' in result) {
    const { line, column, what } = result.fault;
    throw file.condition('EDIT_UNREADABLE', `line ${line}, column ${column}: ${what}`);
  }
  const count = result.table.rows.length;
  if (count > MAX_ROWS) {
    const detail = `it has ${numberText(count)} rows, of at most ${numberText(MAX_ROWS)}`;
    throw file.condition('EDIT_TOO_LARGE', detail);
  }
  return result.table;
}

/**
 * Refuses a table that lacks columns of the copy that it was made from, or has others than the
 * configured ones.
 *
 * @throws MirrorCondition EDIT_COLUMNS
 */
export function checkColumns(
  file: EditedFile,
  table: TableText,
  copy: Pick<EarlierCopy, 'shown' | 'columns'> | undefined,
  { format, columns: configured }: TableMirrorConfig,
): void {
  // Without a header, a file without rows names no columns, and lacks none.
  if (!namesColumnsWithoutRows(format) && table.rows.length === 0) return;
  const missing = copy === undefined ? [] : missingColumns(table, copy);
  if (missing.length > 0) {
    throw file.condition('EDIT_COLUMNS', `lacks columns that it had: ${quotedList(missing)}`);
  }
  const allowed = configured && new Set([...configured, ...(copy?.shown ?? [])]);
  const refused = table.columns.filter(
    (column) => allowed?.has(column) === false || column.length > MAX_NAME_LENGTH,
  );
  if (refused.length > 0) {
    const detail = `has columns that this mirror cannot have: ${quotedList(refused)}`;
    throw file.condition('EDIT_COLUMNS', detail);
  }
}

/**
 * Refuses a new row whose key the peer would cut.
 *
 * @param maxBytes the longest key of the peer
 * @throws MirrorCondition EDIT_UNREADABLE
 */
export function checkNewKeys(
  file: EditedFile,
  { rows }: TableText,
  peerGrid: Grid,
  maxBytes = 4 * MAX_NAME_LENGTH,
): void {
  const isRefused = (pk: string): boolean =>
    pk.length > MAX_NAME_LENGTH || Buffer.byteLength(pk) > maxBytes || pk.endsWith('\0');
  const refused = rows.find(({ pk }) => !peerGrid.rows.has(pk) && isRefused(pk));
  if (refused === undefined) return;
  const { pk, line } = refused;
  const fault = `the key ${JSON.stringify(pk)} has ${Buffer.byteLength(pk)} bytes`;
  const limit = `keys of this peer have at most ${maxBytes} in ${MAX_NAME_LENGTH} characters, and do not end with NUL`;
  throw file.condition('EDIT_UNREADABLE', `line ${line}: ${fault}; ${limit}`);
}

/** Returns the text of the file for a table: every row with these columns. */
export function writeLocalTable(
  { source, settings }: TablePlan,
  columns: readonly string[],
  { rows }: Grid,
): AsyncIterable<string> {
  async function* groups(): AsyncGenerator<readonly TableRow[]> {
    for await (const group of inSlices(rows, ROWS_PER_SLICE)) {
      yield group.map(([pk, cells]) => ({ pk, cells }));
    }
  }
  const { format, newline } = settings;
  return writeTable(format, { name: source, columns, newline }, groups());
}

/**
 * The rows that are pushed in one request of the queue. The client reads them back together, one by
 * one or by reading the whole table.
 */
const ROWS_PER_PUSH = 1_000;

/** The peer's table in memory. Its columns are those with at least one value. */
export interface RemoteCopy {
  readonly columns: Columns;
  readonly grid: Grid;
  /** The conditions that a person accepted and whose cause lasts. */
  readonly accepted: readonly ConditionCode[];
}

/** The peer's side of a two-way table: reads it into memory, and pushes changes to it. */
export class RemoteTable {
  constructor(
    private readonly plan: TablePlan,
    private readonly deps: MirrorDeps,
    private readonly source: TableSource,
    private readonly file: EditedFile,
  ) {}

  /**
   * Reads the table.
   *
   * @returns undefined if the peer does not have it
   * @throws MirrorCondition, also EDIT_TOO_LARGE and EDIT_KEYS
   */
  async read(
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<RemoteCopy | undefined> {
    return await this.source.read(before, options, (copy) => this.#inMemory(copy));
  }

  /** Returns the longest key of the peer, in bytes. Undefined if there is no known limit. */
  async maxKeyBytes(signal: AbortSignal): Promise<number | undefined> {
    const { peer, requests } = this.deps;
    return await requests.run(signal, (signal) => peer.tables.maxKeyBytes({ signal }));
  }

  /**
   * Pushes changes, group by group. The client verifies each group by reading it back.
   *
   * @param before the rows before the push, for the log
   * @throws PeerError; the reason of the signal between two groups
   */
  async push(changes: Changes, before: Grid, signal: AbortSignal): Promise<void> {
    const { set, deletes } = changes;
    const { peer, requests } = this.deps;
    const { source } = this.plan;
    for (const rows of groupsOf(set)) {
      signal.throwIfAborted();
      this.#logStep('rows are about to be pushed');
      await requests.run(signal, (signal) => peer.tables.set(source, rows, { signal }));
      this.#logStep('rows were pushed');
    }
    for (const keys of groupsOf(deletes)) {
      signal.throwIfAborted();
      await requests.run(signal, (signal) => peer.tables.deleteRows(source, keys, { signal }));
      this.#logStep('rows were deleted in the peer');
    }
    this.#logPushed(changes, before);
  }

  async #inMemory({ rows: stored, columns, accepted }: TableCopy): Promise<RemoteCopy> {
    const rows = new Map<string, Cells>();
    const filled = new Set<string>();
    let characters = 0;
    for await (const group of stored.read()) {
      for (const { pk, cells } of group) {
        if (rows.has(pk)) {
          const detail = `the peer shows the key ${JSON.stringify(pk)} twice`;
          throw this.file.condition('EDIT_KEYS', detail);
        }
        rows.set(pk, cells);
        characters += pk.length;
        for (const [column, value] of cells) {
          characters += value.length;
          filled.add(column);
        }
      }
      if (rows.size > MAX_ROWS || characters > MAX_EDITED_BYTES) {
        const limits = `${MAX_ROWS} rows or ${MAX_EDITED_BYTES} characters`;
        throw this.file.condition('EDIT_TOO_LARGE', `the peer's table has more than ${limits}`);
      }
    }
    return { columns, accepted, grid: { columns: [...filled].sort(), rows } };
  }

  /** Logs that an edit reached the peer. */
  #logPushed({ set, deletes }: Changes, before: Grid): void {
    const { name, source } = this.plan;
    const changed = set.filter(({ pk }) => before.rows.has(pk)).length;
    const counts = { changed, added: set.length - changed, removed: deletes.length };
    const details = Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([verb, count]) => `${numberText(count)} ${verb}`)
      .join(', ');
    const rows = counted(set.length + deletes.length, 'row');
    this.deps.log.info(
      { event: 'mirror', mirror: name, ...counts },
      `mirror ${name}: wrote ${rows} of the table ${quoted(source)} to the peer (${details})`,
    );
  }

  #logStep(step: string): void {
    this.deps.log.debug({ mirror: this.plan.name }, step);
  }
}

function* groupsOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += ROWS_PER_PUSH) yield all.slice(at, at + ROWS_PER_PUSH);
}

/** Returns the conditions that the push itself may have caused. */
export function conditionsOfPush({ set, deletes }: Changes, before: Grid): readonly string[] {
  const isEmptied = set.length === 0 && deletes.length === before.rows.size;
  return ['COLUMNS_LOST', 'ROWS_LOST', ...(isEmptied ? ['TABLE_EMPTY'] : [])];
}
