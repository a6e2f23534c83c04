import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TableRow } from '../peer/table.js';
import { EditAlarm, type EditAlarmCode } from './edit-alarms.js';
import { type Base, BaseStore, type Last, type Stale } from './edit-base.js';
import { LARGEST_EDITED } from './edit-bytes.js';
import { ConflictFiles } from './edit-conflicts.js';
import { EditFile, Overtaken, type ReadFile } from './edit-file.js';
import { digestOf } from './edit-lines.js';
import {
  checkColumns,
  checkNewKeys,
  lackedColumns,
  type PeerTable,
  readEditedTable,
  readPeerTable,
} from './edit-reading.js';
import { type Earlier, findEarlier, staleNotes } from './edit-stale.js';
import type { EditableTableParts, EditKnown, EditOutcome, TwoWayTable } from './edit-table.js';
import { NOTHING_TOLD, Telling } from './edit-telling.js';
import { MirrorError } from './errors.js';
import type { TableText } from './formats/read.js';
import { writeTable } from './formats/write.js';
import type { Grid } from './merge.js';
import type { Conflict } from './record.js';
import type { WholeFile } from './whole-file.js';

/** Rows that are written without giving way to other work. */
const ROWS_A_TURN = 100;

/**
 * A table of the peer that a person edits in its file.
 *
 * A run reads the file while it is at rest, reads the peer's table, and merges the two with the *base*: the last state that
 * both had in common. What only the file changed is told to the peer; then the peer's table is read again, and the file
 * is written from that. What both changed differently stays as the peer has it, and the file is saved as a conflict file
 * before it is replaced. A file that cannot be taken as it is (unreadable, columns missing, too many rows removed)
 * raises an alarm, and nothing is written on either side.
 *
 * A file that was plainly made from an earlier copy than the last is merged with that one, so that what the peer changed since
 * stays. Who saves the same file once more, and the peer changed nothing meanwhile, means it.
 *
 * A run may end at any instant, and the next one goes on from there: what is about to be told to the peer is on disk before
 * (intents), the new base is on disk before the file is replaced, and equal changes are no changes.
 */
export class EditableTable implements TwoWayTable {
  readonly #parts: EditableTableParts;
  readonly #conflicts: ConflictFiles;
  readonly #file: EditFile;
  readonly #bases: BaseStore;
  readonly #telling: Telling;

  constructor(parts: EditableTableParts) {
    const { search, count, neutralise, format } = parts.settings;
    if (search !== undefined || count !== undefined || neutralise || format === 'xml') {
      throw new TypeError('a table is edited whole, and as it is');
    }
    this.#parts = parts;
    const spot = { root: parts.root, path: parts.path };
    this.#conflicts = new ConflictFiles(spot, parts.clock);
    this.#file = new EditFile(spot, parts.clock, this.#conflicts);
    this.#bases = new BaseStore(parts);
    this.#telling = new Telling({
      ...{ peer: parts.peer, settings: parts.settings, bases: this.#bases },
      alarm: (code, detail) => this.#alarm(code, detail),
      onStep: (step) => this.#step(step),
    });
  }

  async run(
    known: EditKnown,
    { accept = false, signal }: { readonly accept?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<EditOutcome> {
    await this.#saveLate();
    const reading = await this.#file.read(signal);
    signal?.throwIfAborted();
    if (reading.kind === 'moving') return { kind: 'later' };
    const read = reading.kind === 'read' ? reading : undefined;
    try {
      if (reading.kind === 'unfit') throw this.#alarm(reading.code, reading.what);
      return await this.#sync(read, known, accept, signal);
    } catch (error) {
      if (error instanceof Overtaken) return { kind: 'later' };
      if (!(error instanceof EditAlarm)) throw error;
      return { kind: 'alarm', alarm: error, conflicts: await this.#conflicts.standing(known.conflicts) };
    } finally {
      if (read !== undefined) await this.#file.leave(read);
    }
  }

  looksEdited(): Promise<boolean> {
    return this.#file.looksEdited();
  }

  async retire(known: EditKnown): Promise<readonly Conflict[]> {
    await this.#saveLate();
    const { settings } = this.#parts;
    const reading = await this.#file.read(undefined);
    if (reading.kind === 'unfit') throw this.#alarm(reading.code, reading.what);
    if (reading.kind === 'moving') throw this.#isMoving();
    if (reading.kind === 'read') {
      const last = await this.#bases.load(reading.sha256);
      const isEdited = reading.sha256 !== (last?.base.file ?? known.sha256);
      try {
        if (isEdited) await this.#conflicts.save(reading.bytes, reading.mode);
        this.#step('the file is about to be removed');
        await this.#file.remove(reading, settings);
      } catch (error) {
        throw error instanceof Overtaken ? this.#isMoving() : error;
      } finally {
        await this.#file.leave(reading);
      }
    }
    await this.#bases.forget();
    return this.#conflicts.standing(known.conflicts);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #sync(
    read: ReadFile | undefined,
    known: EditKnown,
    accept: boolean,
    signal: AbortSignal | undefined,
  ): Promise<EditOutcome> {
    const last = await this.#bases.load(read?.sha256);
    const isTouched = read !== undefined && !isAsWritten(read, last);
    const edited = isTouched ? await this.#readEdited(read, last) : undefined;
    const { mine, earlier } = edited ?? {};
    const peer = await this.#readPeer(signal);
    if (mine !== undefined)
      checkNewKeys(mine, peer.grid.rows, await this.#parts.peer.maxKeyBytes(signal), this.#alarm);
    const sides = isTouched && mine ? { read, mine, peer, last, earlier, known } : undefined;
    const told = sides === undefined ? NOTHING_TOLD : await this.#telling.tell(sides, accept, signal);
    const after = told.set + told.deleted === 0 ? peer : await this.#readPeer(signal);
    const hasClashes = read !== undefined && told.clashes.length > 0;
    const conflictFile = hasClashes ? await this.#conflicts.save(read.bytes, read.mode) : undefined;
    this.#step('what clashes is saved');
    const had = read === undefined ? [] : (mine?.columns ?? last?.base.shown ?? []);
    const columns = [...after.columns, ...this.#unfilled(had, after, last?.base)];
    const now = this.#parts.clock.now();
    const seen = earlier && { saved: read?.sha256, at: now, copyAt: earlier.copy.at };
    const stale = isTouched ? seen : last?.base.stale;
    const written = await this.#write(read, { columns, grid: after.grid }, stale, last?.base, signal);
    return {
      kind: 'settled',
      changed: written.changed,
      written: { rows: told.set, deleted: told.deleted },
      record: {
        rows: after.grid.rows.size,
        bytes: written.bytes,
        sha256: written.sha256,
        columns: after.columns,
        file: written.file,
        conflicts: await this.#conflicts.standing(known.conflicts, conflictFile, told.clashes),
        notes: [...staleNotes(stale, now), ...told.notes],
      },
    };
  }

  async #readEdited(
    read: ReadFile,
    last: Last | undefined,
  ): Promise<{ readonly mine: TableText; readonly earlier: Earlier | undefined }> {
    const { settings } = this.#parts;
    const mine = await readEditedTable(read, last?.base, settings.format, this.#alarm);
    if (last?.base.file === read.sha256) return { mine, earlier: undefined };
    const isMeant = last?.base.stale?.saved === read.sha256;
    const earlier = last && !isMeant ? await findEarlier(mine, last, this.#bases) : undefined;
    // Of two that may hold, the file need not have the columns of both.
    const isOfOther = last?.other !== undefined && lackedColumns(mine, last.other).length === 0;
    const from = earlier?.copy ?? (isOfOther ? last.other : last?.base);
    checkColumns(mine, from, settings, this.#alarm);
    return { mine, earlier };
  }

  async #write(
    read: ReadFile | undefined,
    { columns, grid }: PeerTable,
    stale: Stale | undefined,
    base: Base | undefined,
    signal: AbortSignal | undefined,
  ): Promise<WholeFile> {
    const file = await this.#hashOf(columns, grid);
    const digest = await digestOf(grid);
    const isKnown =
      base !== undefined && base.file === file && base.digest === digest && base.stale === stale;
    if (!isKnown) {
      // After another change of the peer the same file would take back more than it did.
      const kept = stale && { ...stale, saved: stale === base?.stale ? undefined : stale.saved };
      await this.#bases.prepare({ file, shown: columns, digest, grid, stale: kept }, base);
    }
    this.#step('the new base is prepared');
    const { versions } = this.#parts.settings;
    const text = this.#text(columns, grid);
    const written = await this.#file.replace(read, text, { versions, signal }).catch(async (error) => {
      if (error instanceof Overtaken) await this.#bases.withdraw();
      throw error;
    });
    this.#step('the file is written');
    if (isKnown) await this.#bases.fulfil();
    else await this.#bases.settle();
    this.#step('the new base holds');
    return written;
  }

  /** Columns that a person has begun, and that nothing stands in yet: the peer does not know them, and they stay. */
  #unfilled(had: readonly string[], after: PeerTable, base: Base | undefined): readonly string[] {
    if (base === undefined || this.#parts.settings.columns !== undefined) return [];
    const others = new Set([...after.columns, ...base.columns]);
    return had.filter((column) => !others.has(column));
  }

  #text(columns: readonly string[], grid: Grid): AsyncIterable<string> {
    const { table, settings } = this.#parts;
    return writeTable(settings.format, { name: table, columns }, rowsOf(grid), settings);
  }

  async #hashOf(columns: readonly string[], grid: Grid): Promise<string> {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const text of this.#text(columns, grid)) {
      hash.update(text);
      bytes += Buffer.byteLength(text);
      if (bytes > LARGEST_EDITED) {
        throw this.#alarm('EDIT_TOO_LARGE', `it would have more than ${LARGEST_EDITED} bytes`);
      }
    }
    return hash.digest('hex');
  }

  async #readPeer(signal: AbortSignal | undefined): Promise<PeerTable> {
    const table = await readPeerTable(await this.#parts.peer.read(signal), this.#alarm);
    this.#step('the table is read');
    return table;
  }

  async #saveLate(): Promise<void> {
    const saved = await this.#file.saveLate();
    if (saved === undefined) return;
    const { name, log } = this.#parts;
    log.warn(
      { mirror: name, file: saved },
      'what an editor wrote into a file that was replaced meanwhile is saved',
    );
  }

  #isMoving(): MirrorError {
    const { root, path } = this.#parts;
    const detail = 'a file that is being written';
    return new MirrorError('MIRROR_BLOCKED', { what: join(root, path), detail });
  }

  readonly #alarm = (code: EditAlarmCode, detail: string): EditAlarm => {
    const { name, root, path } = this.#parts;
    return new EditAlarm(code, { name, file: join(root, path), detail });
  };

  #step(step: string): void {
    this.#parts.log.debug({ mirror: this.#parts.name }, step);
  }
}

/** Nobody edited the file, and no run was cut short: there is nothing to tell. */
function isAsWritten(read: ReadFile, last: Last | undefined): boolean {
  if (last === undefined || last.base.file !== read.sha256) return false;
  return last.intents.set.length === 0 && last.intents.deletes.length === 0;
}

async function* rowsOf({ rows }: Grid): AsyncGenerator<readonly TableRow[]> {
  let group: TableRow[] = [];
  for (const [pk, cells] of rows) {
    if (group.push({ pk, cells }) < ROWS_A_TURN) continue;
    yield group;
    group = [];
    await nextTurn();
  }
  yield group;
}
