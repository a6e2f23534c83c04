import { join } from 'node:path';
import type { TableMirrorConfig } from '../config/config.js';
import type { EditPeer, TwoWayTable } from './edit-table.js';
import { writeTable } from './formats/write.js';
import type { Identity } from './life.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import type { Place } from './place.js';
import { placeNotes } from './place-notes.js';
import { quoted } from './quoted.js';
import { type Conflict, knownFile, type MirrorRecord } from './record.js';
import { type ReadTable, type ReadTableParts, readTable } from './table-read.js';
import { throughQueue } from './through-queue.js';
import { removeWhole, replaceWhole, stampAt } from './whole-file.js';

export interface TableMirrorParts {
  readonly name: string;
  readonly table: string;
  readonly settings: TableMirrorConfig;
  readonly place: Place;
  /** Whether a pattern brought it here: accepted as gone, it is forgotten and not waited for. */
  readonly matched: boolean;
  readonly isListed: () => boolean;
  readonly tools: MirrorTools;
}

/**
 * A table of the peer as a file that is only written.
 *
 * The rows are spooled to disk, the whole of them is checked, and then the file is written. A table that is gone, without
 * rows where it had some, or without columns that it had, is an alarm. Accepting that it is gone removes the file, and the
 * mirror waits for the table to come back; accepting the others writes what there is.
 */
export class TableMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #parts: TableMirrorParts;
  readonly #reading: ReadTableParts;

  constructor(parts: TableMirrorParts) {
    this.name = parts.name;
    this.identity = identityOf(parts);
    this.every = parts.settings.every;
    this.#parts = parts;
    this.#reading = { ...parts, ...parts.tools, path: parts.place.path };
  }

  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { settings, place, table, tools } = this.#parts;
    const spot = { root: tools.root, path: place.path };
    const read = await readTable(this.#reading, before, options);
    if (read === undefined) {
      return withoutTable(this.#parts, before, async () => {
        await removeWhole(spot, { versions: settings.versions });
        return [];
      });
    }
    const { spool, columns } = read;
    try {
      const { format, neutralise, versions } = settings;
      const text = writeTable(format, { name: table, columns: columns.written }, spool.read(), {
        neutralise,
      });
      const { changed, sha256, bytes, file } = await replaceWhole(spot, text, {
        before: knownFile(before, spot.path),
        versions,
        signal: options.signal,
      });
      const notes = [...placeNotes(place), ...columnNotes(read)];
      const facts = { rows: spool.rows, bytes, sha256, file, columns: columns.remembered };
      return { kind: 'followed', changed, facts: { ...facts, ...(notes.length > 0 ? { notes } : {}) } };
    } finally {
      await spool.close();
    }
  }
}

/**
 * A table of the peer as a file that a person edits: what reads and checks the table is the same, what becomes of the file
 * is decided by the two-way table.
 */
export class EditedTableMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #parts: TableMirrorParts;
  readonly #reading: ReadTableParts;
  readonly #edited: TwoWayTable;
  #run: { readonly before: MirrorRecord | undefined; readonly options: FollowOptions } | undefined;
  /** Whether this run wrote to the peer: columns that are gone since then went by our own hand. */
  #wrote = false;
  /** Rows that must be left by now; some, where this run set any. */
  #left = 0;
  #read: ReadTable | undefined;

  /** @param twoWay makes the two-way table, from what it asks of the peer */
  constructor(parts: TableMirrorParts, twoWay: (peer: EditPeer) => TwoWayTable) {
    this.name = parts.name;
    this.identity = identityOf(parts);
    this.every = parts.settings.every;
    this.#parts = parts;
    this.#reading = { ...parts, ...parts.tools, path: parts.place.path };
    this.#edited = twoWay(this.#peer());
  }

  looksEdited(): Promise<boolean> {
    return this.#edited.looksEdited();
  }

  close(): Promise<void> {
    return this.#edited.close();
  }

  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { accepted, signal } = options;
    this.#run = { before, options };
    this.#wrote = false;
    try {
      const outcome = await this.#edited.run(before ?? {}, {
        accept: accepted.some((code) => code.startsWith('EDIT_')),
        signal,
      });
      if (outcome.kind === 'later') return outcome;
      if (outcome.kind === 'alarm') {
        return { kind: 'alarm', trouble: outcome.alarm, conflicts: outcome.conflicts };
      }
      const { record, changed } = outcome;
      const columns = this.#read?.columns.remembered ?? record.columns;
      const notes = [...placeNotes(this.#parts.place), ...record.notes];
      return { kind: 'followed', changed, facts: { ...record, columns, notes } };
    } catch (error) {
      if (!(error instanceof NoTable)) throw error;
      return withoutTable(this.#parts, before, () => this.#edited.retire(before ?? {}));
    } finally {
      await this.#close();
    }
  }

  #peer(): EditPeer {
    const { table, tools } = this.#parts;
    const { queue, peer } = tools;
    return {
      maxKeyBytes: (signal) => throughQueue(queue, signal, (signal) => peer.tables.maxKeyBytes({ signal })),
      read: async () => {
        if (this.#run === undefined) throw new Error('a table is read while no run is under way');
        await this.#close();
        const { before, options } = this.#run;
        const byOwnHand = this.#wrote ? ['COLUMNS_LOST', ...(this.#left === 0 ? ['TABLE_EMPTY'] : [])] : [];
        const accepted = [...options.accepted, ...byOwnHand];
        const read = await readTable(this.#reading, before, { ...options, accepted });
        if (read === undefined) throw new NoTable();
        this.#read = read;
        this.#left = read.spool.rows;
        return { columns: read.columns.written, rows: read.spool.read() };
      },
      set: (rows, signal) => {
        this.#wrote = true;
        this.#left = Number.POSITIVE_INFINITY;
        return throughQueue(queue, signal, (signal) => peer.tables.set(table, rows, { signal }));
      },
      deleteRows: (keys, signal) => {
        this.#wrote = true;
        this.#left -= keys.length;
        return throughQueue(queue, signal, (signal) => peer.tables.deleteRows(table, keys, { signal }));
      },
    };
  }

  async #close(): Promise<void> {
    await this.#read?.spool.close();
  }
}

/** Ends the run of a two-way table where there is no table to be merged with. */
class NoTable extends Error {}

function identityOf({ place, table }: TableMirrorParts): Identity {
  return { kind: 'table', path: place.path, table };
}

async function withoutTable(
  { matched, place, tools }: TableMirrorParts,
  before: MirrorRecord | undefined,
  remove: () => Promise<readonly Conflict[]>,
): Promise<Followed> {
  // There never was a file of ours: what stands there is not touched.
  if (matched && before?.file === undefined && before?.absentSince === undefined)
    return { kind: 'over', changed: false };
  const { absentSince, conflicts: known } = before ?? {};
  if (absentSince !== undefined) {
    return { kind: 'followed', changed: false, facts: { absentSince, ...(known && { conflicts: known }) } };
  }
  const changed = (await stampAt(join(tools.root, place.path)).catch(() => undefined)) !== undefined;
  const conflicts = await remove();
  if (matched && conflicts.length === 0) return { kind: 'over', changed };
  const facts = { absentSince: tools.clock.now(), ...(conflicts.length > 0 ? { conflicts } : {}) };
  return { kind: 'followed', changed, facts };
}

function columnNotes({ columns }: ReadTable): string[] {
  return columns.missing.map((column) => `The peer shows no column ${quoted(column)}.`);
}
