import { join } from 'node:path';
import type { TableMirrorConfig } from '../config/config.js';
import { type AlarmCode, MirrorAlarm } from './alarms.js';
import { type Columns, columnsOf } from './columns.js';
import { isTooLarge, MirrorError } from './errors.js';
import type { FollowOptions, MirrorTools } from './parts.js';
import { quoted, quotedList } from './quoted.js';
import type { MirrorRecord } from './record.js';
import { RowSpool } from './spool.js';
import { throughQueue } from './through-queue.js';
import { stampAt } from './whole-file.js';

/** A table as the peer has it now, complete and checked; its rows wait on disk until `spool` is closed. */
export interface ReadTable {
  readonly spool: RowSpool;
  readonly columns: Columns;
}

export interface ReadTableParts extends Pick<MirrorTools, 'peer' | 'queue' | 'root' | 'stateDir'> {
  readonly settings: TableMirrorConfig;
  /** Of the mirror. */
  readonly name: string;
  readonly table: string;
  /** Of the file, below the root. */
  readonly path: string;
  /** Whether a pattern brought it here. */
  readonly matched: boolean;
  /** Whether the peer's list of tables had it when that was last read; where it was not read, yes. */
  readonly isListed: () => boolean;
}

/**
 * Reads a table whole.
 *
 * @returns undefined where there is no such table and none is missed: a person accepted that it is gone, or accepts it now, or
 *   it was only ever seen on the list of tables
 * @throws MirrorAlarm where it would replace good data; MirrorError MIRROR_NOTHING where there never was one; PeerError
 */
export async function readTable(
  parts: ReadTableParts,
  before: MirrorRecord | undefined,
  { accepted, signal }: FollowOptions,
): Promise<ReadTable | undefined> {
  const { name, table, settings } = parts;
  const what = `the table ${quoted(table)}`;
  const alarm = (code: AlarmCode, detail?: string): MirrorAlarm =>
    new MirrorAlarm(code, name, { what, ...(detail === undefined ? {} : { detail }) });

  const came = await rowsOf(parts, accepted, signal).catch((error: unknown) => {
    throw isTooLarge(error) ? alarm('MIRROR_TOO_LARGE', `${settings.maxSize} bytes`) : error;
  });
  const hadRows = before?.rows === undefined ? await standsThere(parts) : before.rows > 0;
  const isGone = came === undefined || (came.spool.rows === 0 && hadRows && !parts.isListed());
  if (isGone) {
    await came?.spool.close();
    if (before?.absentSince !== undefined) return undefined;
    // It was on the list, and went before it was read.
    if (before?.file === undefined && parts.matched && !parts.isListed()) return undefined;
    if (before?.file === undefined) throw new MirrorError('MIRROR_NOTHING', { what, detail: 'table' });
    if (!accepted.includes('TABLE_GONE')) throw alarm('TABLE_GONE');
    return undefined;
  }
  try {
    const isEmpty = came.spool.rows === 0;
    if (isEmpty && hadRows && !accepted.includes('TABLE_EMPTY')) {
      throw alarm('TABLE_EMPTY', rowsText(before?.rows));
    }
    const columns = columnsOf({
      configured: settings.columns,
      remembered: before?.columns,
      shown: came.columns,
      isEmpty,
    });
    if (columns.lost.length > 0 && !accepted.includes('COLUMNS_LOST')) {
      throw alarm('COLUMNS_LOST', quotedList(columns.lost));
    }
    return { spool: came.spool, columns };
  } catch (error) {
    await came.spool.close();
    throw error;
  }
}

/** Where no record says how many rows there were, a file that stands there already may be all that is left of the table. */
async function standsThere({ root, path }: ReadTableParts): Promise<boolean> {
  return (await stampAt(join(root, path)).catch(() => undefined)) !== undefined;
}

function rowsText(rows: number | undefined): string {
  return rows === undefined ? 'some' : `${rows}`;
}

interface Came {
  readonly spool: RowSpool;
  /** All that the peer named, also those without a cell. */
  readonly columns: readonly string[];
}

async function rowsOf(
  { peer, queue, table, settings, stateDir }: ReadTableParts,
  accepted: readonly string[],
  signal: AbortSignal,
): Promise<Came | undefined> {
  const { search, count, maxSize, sortBy } = settings;
  const query = {
    table,
    ...(search === undefined ? {} : { search }),
    ...(count === undefined ? {} : { count }),
  };
  const maxBytes = accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
  let spool: RowSpool | undefined;
  try {
    return await throughQueue(queue, signal, (signal) =>
      peer.tables.stream(
        query,
        async ({ rows, columns = [] }): Promise<Came> => {
          const directory = join(stateDir, 'mirrors');
          spool = await RowSpool.fill(rows, { directory, name: table, sortBy, signal });
          return { spool, columns: [...new Set([...columns, ...spool.columns])] };
        },
        { maxBytes, signal },
      ),
    );
  } catch (error) {
    // The rows were complete, and the answer was not.
    await spool?.close();
    throw error;
  }
}
