import { join } from 'node:path';
import { PeersyncError } from '../../lib/errors.js';
import { inSlices } from '../../lib/slices.js';
import { counted, numberText } from '../../lib/text.js';
import { wallClockText } from '../../lib/units.js';
import type { TableRow } from '../../peer/table.js';
import { type AlarmCode, isTooLarge, MirrorAlarm, MirrorError, quotedList } from '../errors.js';
import { readTable, type TableText } from '../formats/read.js';
import { writeTable } from '../formats/write.js';
import type { Followed, FollowOptions } from '../mirror.js';
import type { Conflict, MirrorRecord } from '../record.js';
import { AnyTableMirror, type Columns } from '../table.js';
import { Overtaken, type WholeFile } from '../whole-file.js';
import {
  type Base,
  type BaseContent,
  BaseStore,
  type Earlier,
  findEarlier,
  type Last,
  LONGEST_KEPT,
  lackedColumns,
  NOTHING,
  type Stale,
} from './base.js';
import { EditedFile, LARGEST_EDITED, type ReadFile } from './edited-file.js';
import {
  absorb,
  type Cells,
  type Grid,
  type Merge,
  merge,
  type Outbound,
  withKeys,
} from './merge.js';

/** Rows that are written without giving way to other work. */
const ROWS_A_TURN = 100;
/**
 * Rows that are committed, or deleted, and then read back together: that may be a pass over the
 * whole table.
 */
const ROWS_A_GROUP = 1_000;
/** Rows: a larger table is not taken for one that a person edits. */
const MOST_ROWS = 100_000;
/** Characters: no peer is sent longer keys, or names of columns. */
const LONGEST_NAME = 500;

/** The peer's table, in memory: all cells, and as columns those in which something stands. */
interface PeerTable {
  readonly columns: Columns;
  readonly grid: Grid;
  readonly tolerated: readonly AlarmCode[];
}

/** One run: what it began from, and what it wrote to the peer, which is not missed afterwards. */
interface Run {
  readonly before: MirrorRecord | undefined;
  readonly options: FollowOptions;
  isWritten: boolean;
  /** Rows that must be left by now; some, where this run set any. */
  left: number;
}

/** What a person left in the file. */
interface Edit {
  readonly mine: TableText;
  /** Where the file was made from an earlier copy than the last. */
  readonly earlier: Earlier | undefined;
}

/**
 * A table of the peer that a person edits in its file.
 *
 * A run reads the file while it is at rest, reads the peer's table, and merges the two with the
 * *base*: the last state that both had in common. What only the file changed is sent to the peer;
 * then the peer's table is read again, and the file is written from that. What both changed
 * differently stays as the peer has it, and the file is saved as a conflict file before it is
 * replaced. A file that cannot be taken as it is (unreadable, columns missing, too many rows
 * removed) raises an alarm, and nothing is written on either side.
 *
 * A file that was plainly made from an earlier copy than the last (see `findEarlier`) is merged
 * with that one, so that what the peer changed since stays. Saving the same file once more is
 * meant, if the peer changed nothing meanwhile.
 *
 * A run may end at any instant, and the next one goes on from there: what is about to be sent to
 * the peer is on disk before (intents), the new base is on disk before the file is replaced, and
 * equal changes are no changes.
 */
export class TwoWayTable extends AnyTableMirror {
  readonly #alarm = (code: AlarmCode, detail: string): MirrorAlarm =>
    new MirrorAlarm(code, this.name, this.#shown, detail);
  readonly #file = new EditedFile(this.target, this.deps.clock, this.#alarm);
  readonly #bases = new BaseStore(this.deps.stateDir, this.name, this.plan.source, this.deps.clock);

  override async follow(
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<Followed> {
    try {
      const read = await this.#file.read(options.signal);
      return await this.#sync(read, { before, options, isWritten: false, left: 0 });
    } catch (error) {
      if (error instanceof MirrorAlarm)
        error.conflicts = await this.#file.standing(before?.conflicts);
      throw error;
    }
  }

  /** Whether the file is another one than the last run left: a stat. */
  override wantsRun(): Promise<boolean> {
    return this.#file.looksEdited();
  }

  /**
   * The table is gone, and a person accepted that: the file goes, after it was saved as a conflict
   * file if it holds edits; then the base.
   *
   * @throws MirrorAlarm, MirrorError
   */
  override async retire(before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    try {
      const read = await this.#file.read(undefined);
      if (read !== undefined) {
        const { last } = await this.#bases.load(read.sha256);
        if (read.sha256 !== (last?.base.file ?? before?.sha256))
          await this.#file.saveConflict(read);
        this.#step('the file is about to be removed');
        await this.#file.remove(read, this.plan.settings.versions);
      }
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      throw new MirrorError('MIRROR_BLOCKED', this.#shown, 'a file that is being written');
    }
    await this.#bases.forget();
    return this.#file.standing(before?.conflicts);
  }

  async #sync(read: ReadFile | undefined, run: Run): Promise<Followed> {
    const { last, before } = await this.#bases.load(read?.sha256);
    const edit =
      read === undefined || isAsWritten(read, last) ? undefined : await this.#readEdit(read, last);
    const peer = await this.#readPeer(run);
    const sent = peer && edit && (await this.#send(read, edit, peer, last, run));
    const after = run.isWritten ? await this.#readPeer(run) : peer;
    if (after === undefined) return await this.gone(run.before, run.options);
    const { conflicts = [], returned = [] } = sent ?? {};
    const conflictFile =
      read && conflicts.length > 0 ? await this.#file.saveConflict(read) : undefined;
    this.#step('what clashes is saved');
    const now = this.deps.clock.now();
    const seen = edit?.earlier && { saved: read?.sha256, at: now, copyAt: edit.earlier.at };
    const stale = edit ? seen : last?.base.stale;
    const had = read === undefined ? [] : (edit?.mine.columns ?? last?.base.shown ?? []);
    const shown = [...after.columns.written, ...this.#unfilled(had, after, last)];
    const content = { replaces: read?.sha256, shown, grid: after.grid, stale };
    const byFile = togetherOf(sent?.sinceBase ?? last?.sent ?? NOTHING, sent?.alike ?? NOTHING);
    const written = await this.#write(read, content, before, byFile, run.options.signal);
    const { changed, bytes, sha256, file } = written;
    const [rows, columns] = [after.grid.rows.size, after.columns.remembered];
    const standing = await this.#file.standing(run.before?.conflicts, conflictFile, conflicts);
    const notes = [...this.notes, ...staleNotes(stale, now)];
    if (returned.length > 0) {
      const removed = `Rows that were removed from the file came back (${quotedList(returned)})`;
      notes.push(`${removed}: "deletes" is off for this table.`);
    }
    const { tolerated } = after;
    const facts = { rows, bytes, sha256, file, columns, tolerated, conflicts: standing, notes };
    return { kind: 'followed', changed, facts };
  }

  /**
   * The table that the person left in the file.
   *
   * @throws MirrorAlarm EDIT_UNREADABLE, EDIT_TOO_LARGE, EDIT_COLUMNS
   */
  async #readEdit(read: ReadFile, last: Last | undefined): Promise<Edit> {
    const base = last?.base;
    if (base?.file === read.sha256) {
      // What was not touched need not be read, whatever a format loses on the way.
      const rows = [...base.grid.rows].map(([pk, cells]) => ({ pk, cells, line: 0 }));
      return { mine: { columns: base.shown, rows }, earlier: undefined };
    }
    const mine = await this.#tableOf(read);
    const isMeant = base?.stale?.saved === read.sha256;
    const earlier =
      base && !isMeant ? await findEarlier(mine, base, this.deps.clock.now()) : undefined;
    this.#checkColumns(mine, earlier ?? base);
    return { mine, earlier };
  }

  async #tableOf({ bytes }: ReadFile): Promise<TableText> {
    const { format } = this.plan.settings;
    if (format === 'xml') throw new TypeError('XML is not edited');
    const result = await readTable(format, bytes);
    if ('fault' in result) {
      const { line, column, what } = result.fault;
      throw this.#alarm('EDIT_UNREADABLE', `line ${line}, column ${column}: ${what}`);
    }
    const count = result.table.rows.length;
    if (count <= MOST_ROWS) return result.table;
    throw this.#alarm(
      'EDIT_TOO_LARGE',
      `it has ${numberText(count)} rows, of at most ${numberText(MOST_ROWS)}`,
    );
  }

  /**
   * Refuses a file that lacks columns of the copy that it was made from, or has such as it cannot
   * have.
   */
  #checkColumns(mine: TableText, copy: Pick<Earlier, 'shown' | 'columns'> | undefined): void {
    const { format, columns: configured } = this.plan.settings;
    // A list without rows names no columns, and lacks none.
    if (format !== 'csv' && mine.rows.length === 0) return;
    const missing = copy === undefined ? [] : lackedColumns(mine, copy);
    if (missing.length > 0) {
      throw this.#alarm('EDIT_COLUMNS', `lacks columns that it had: ${quotedList(missing)}`);
    }
    const known = configured && new Set([...configured, ...(copy?.shown ?? [])]);
    const strange = mine.columns.filter(
      (column) => known?.has(column) === false || column.length > LONGEST_NAME,
    );
    if (strange.length > 0) {
      throw this.#alarm(
        'EDIT_COLUMNS',
        `has columns that this mirror cannot have: ${quotedList(strange)}`,
      );
    }
  }

  /** Refuses new rows whose keys the peer would cut. @param most bytes of a key */
  #checkNewKeys({ rows }: TableText, there: Grid, most = 4 * LONGEST_NAME): void {
    const isOdd = (pk: string) =>
      pk.length > LONGEST_NAME || Buffer.byteLength(pk) > most || pk.endsWith('\0');
    const odd = rows.find(({ pk }) => !there.rows.has(pk) && isOdd(pk));
    if (odd === undefined) return;
    const what = `the key ${JSON.stringify(odd.pk)} has ${Buffer.byteLength(odd.pk)} bytes`;
    const limit = `keys of this peer have at most ${most} in ${LONGEST_NAME} characters, and do not end with NUL`;
    throw this.#alarm('EDIT_UNREADABLE', `line ${odd.line}: ${what}; ${limit}`);
  }

  /** @throws MirrorAlarm also EDIT_TOO_LARGE, EDIT_KEYS */
  async #readPeer(run: Run): Promise<PeerTable | undefined> {
    const byOwnHand = run.isWritten
      ? ['COLUMNS_LOST', 'ROWS_LOST', ...(run.left === 0 ? ['TABLE_EMPTY'] : [])]
      : [];
    const accepted = [...run.options.accepted, ...byOwnHand];
    return await this.read(
      run.before,
      { ...run.options, accepted },
      async (stored, columns, tolerated) => {
        const rows = new Map<string, Cells>();
        const filled = new Set<string>();
        let size = 0;
        for await (const group of stored.read()) {
          for (const { pk, cells } of group) {
            if (rows.has(pk))
              throw this.#alarm('EDIT_KEYS', `the peer shows the key ${JSON.stringify(pk)} twice`);
            rows.set(pk, cells);
            size += pk.length;
            for (const [column, value] of cells) {
              size += value.length;
              filled.add(column);
            }
          }
          if (rows.size > MOST_ROWS || size > LARGEST_EDITED) {
            const limits = `${MOST_ROWS} rows or ${LARGEST_EDITED} characters`;
            throw this.#alarm('EDIT_TOO_LARGE', `the peer's table has more than ${limits}`);
          }
        }
        run.left = rows.size;
        return { columns, tolerated, grid: { columns: [...filled].sort(), rows } };
      },
    );
  }

  /**
   * Sends the peer what a person changed in the file: what is about to be sent is on disk first,
   * then it is sent group by group, each read back by the peer's client.
   *
   * @returns also all that was sent since the base
   * @throws MirrorAlarm EDIT_DELETES before anything was sent
   */
  async #send(
    read: ReadFile | undefined,
    { mine: text, earlier }: Edit,
    { grid: theirs }: PeerTable,
    last: Last | undefined,
    run: Run,
  ): Promise<Merge & { readonly sinceBase: Outbound | undefined }> {
    const { deletes, maxDeletes } = this.plan.settings;
    const { signal } = run.options;
    const { ask, peer } = this.deps;
    this.#checkNewKeys(
      text,
      theirs,
      await ask(signal, (signal) => peer.tables.maxKeyBytes({ signal })),
    );
    const grid = last?.base.grid;
    const isTaken = earlier?.isTaken ?? ((pk: string) => grid?.rows.has(pk) === true);
    const mine = {
      columns: text.columns,
      rows: await withKeys(text.rows, isTaken, last?.base.salt ?? ''),
    };
    const common = earlier?.common ?? grid;
    const absorbed = common && last && (await absorb(common, last.sent, theirs));
    // A file that is as it was written is its own base.
    const base = absorbed?.base ?? (read?.sha256 === run.before?.sha256 ? mine : undefined);
    const merged = await merge(base, theirs, mine, { deletes });
    this.#checkDeletes(merged.deletes, maxDeletes, run);
    const { set, deletes: keys } = merged;
    if (last === undefined || absorbed === undefined || set.length + keys.length === 0) {
      return { ...merged, sinceBase: last?.sent };
    }
    const { done } = absorbed;
    const sinceBase = togetherOf(done, merged);
    await this.#bases.intend(sinceBase, last.base);
    this.#step('the intents are kept');
    const { source } = this.plan;
    run.isWritten = true;
    for (const rows of groupsOf(set)) {
      signal.throwIfAborted();
      run.left = Number.POSITIVE_INFINITY;
      this.#step('rows are about to be committed');
      await ask(signal, (signal) => peer.tables.set(source, rows, { signal }));
      this.#step('rows were committed');
    }
    for (const group of groupsOf(keys)) {
      signal.throwIfAborted();
      run.left -= group.length;
      await ask(signal, (signal) => peer.tables.deleteRows(source, group, { signal }));
      this.#step('rows were deleted');
    }
    this.#logWritten(merged, theirs);
    return { ...merged, sinceBase };
  }

  /** Tells the person that their edit is in the peer. */
  #logWritten({ set, deletes }: Outbound, theirs: Grid): void {
    const changed = set.filter(({ pk }) => theirs.rows.has(pk)).length;
    const counts = { changed, added: set.length - changed, removed: deletes.length };
    const told = Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([what, count]) => `${numberText(count)} ${what}`);
    const rows = counted(set.length + deletes.length, 'row');
    this.deps.log.info(
      { event: 'mirror', mirror: this.name, ...counts },
      `mirror ${this.name}: wrote ${rows} of ${this.what} to the peer (${told.join(', ')})`,
    );
  }

  #checkDeletes(keys: readonly string[], most: number, { before, options }: Run): void {
    if (keys.length <= most) return;
    const removed = `${numberText(keys.length)} rows were removed (${quotedList(keys)})`;
    const alarm = this.#alarm('EDIT_DELETES', `${removed}, more than maxDeletes, ${most}, at once`);
    // What a person accepted are the rows that were named, and not others that were removed since.
    const isAccepted =
      options.accepted.includes('EDIT_DELETES') && before?.alarm?.message === alarm.message;
    if (!isAccepted) throw alarm;
  }

  /**
   * Replaces the file; once its content is complete, and before it is in place, the new base is
   * prepared.
   */
  async #write(
    read: ReadFile | undefined,
    content: Omit<BaseContent, 'file'>,
    base: Base | undefined,
    byFile: Outbound,
    signal: AbortSignal,
  ): Promise<WholeFile> {
    let isNew = false;
    const onWritten = async (file: string): Promise<void> => {
      isNew = await this.#bases.prepare({ ...content, file }, base, byFile);
      this.#step('the new base is prepared');
    };
    const { versions } = this.plan.settings;
    const options = { versions, signal, onWritten, maxBytes: LARGEST_EDITED };
    try {
      const written = await this.#file.replace(
        read,
        this.#text(content.shown, content.grid),
        options,
      );
      this.#step('the file is written');
      if (isNew) await this.#bases.settle();
      else await this.#bases.fulfil();
      this.#step('the new base holds');
      return written;
    } catch (error) {
      // Where the process goes on, the file was not replaced.
      const isOver = signal.aborted || error instanceof Overtaken || error instanceof PeersyncError;
      if (isOver) await this.#bases.withdraw();
      if (!isTooLarge(error)) throw error;
      throw this.#alarm('EDIT_TOO_LARGE', `it would have more than ${LARGEST_EDITED} bytes`);
    }
  }

  /**
   * Columns that a person has begun, and that nothing stands in yet: the peer does not know them,
   * and they stay.
   */
  #unfilled(had: readonly string[], after: PeerTable, last: Last | undefined): readonly string[] {
    if (last === undefined || this.plan.settings.columns !== undefined) return [];
    const others = new Set([...after.columns.written, ...last.base.columns]);
    return had.filter((column) => !others.has(column));
  }

  #text(columns: readonly string[], { rows }: Grid): AsyncIterable<string> {
    const { source, settings } = this.plan;
    async function* groups(): AsyncGenerator<readonly TableRow[]> {
      for await (const group of inSlices(rows, ROWS_A_TURN))
        yield group.map(([pk, cells]) => ({ pk, cells }));
    }
    const { format, newline } = settings;
    return writeTable(format, { name: source, columns, newline }, groups());
  }

  /** The file, for sentences. */
  get #shown(): string {
    return join(this.target.root, this.target.path);
  }

  #step(step: string): void {
    this.deps.log.debug({ mirror: this.name }, step);
  }
}

function togetherOf(a: Outbound, b: Outbound): Outbound {
  return { set: [...a.set, ...b.set], deletes: [...new Set([...a.deletes, ...b.deletes])] };
}

/** Nobody edited the file, and no run was cut short: there is nothing to send. */
function isAsWritten(read: ReadFile, last: Last | undefined): boolean {
  return last?.base.file === read.sha256 && last.sent.set.length + last.sent.deletes.length === 0;
}

/**
 * What a person is told of it, until the file is edited again, and for as long as earlier copies
 * are known.
 */
function staleNotes(stale: Stale | undefined, now: number): readonly string[] {
  if (stale === undefined || now - stale.at > LONGEST_KEPT) return [];
  const textOf = (at: number) => wallClockText(at).slice(0, 16);
  return [
    `At ${textOf(stale.at)} the file was saved from the copy of ${textOf(stale.copyAt)}: the peer's newer changes were kept. To take them back on purpose, save the same once more.`,
  ];
}

function* groupsOf<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += ROWS_A_GROUP) yield all.slice(at, at + ROWS_A_GROUP);
}
