import type { Clock } from '../../lib/clock.js';
import { PeersyncError } from '../../lib/errors.js';
import type { Logger } from '../../lib/logger.js';
import { Modes, type Transitions } from '../../lib/modes.js';
import { numberText } from '../../lib/text.js';
import { isTooLarge, quotedList } from '../errors.js';
import type { TableText } from '../formats/table-text.js';
import type { FollowOptions } from '../mirror.js';
import type { TablePlan } from '../plan.js';
import type { Facts, MirrorRecord } from '../record.js';
import { FileChanged, type WrittenFile } from '../whole-file.js';
import type { Base, BaseStore, LoadedBase, StaleSave, SyncedState } from './base-store.js';
import { type EditedFile, type FileContent, MAX_EDITED_BYTES } from './edited-file.js';
import {
  type Changes,
  combined,
  type Grid,
  includePushed,
  isEmpty,
  type Merge,
  merge,
  NO_CHANGES,
} from './merge.js';
import { assignKeys } from './row-keys.js';
import {
  checkColumns,
  checkNewKeys,
  conditionsOfPush,
  type RemoteCopy,
  type RemoteTable,
  readLocalTable,
  writeLocalTable,
} from './sides.js';
import { findStaleCopy, type StaleCopy, staleNotes } from './stale-copy.js';

type Phase =
  | 'created'
  | 'reading the file'
  | 'comparing'
  | 'fetching'
  | 'merging'
  | 'pushing'
  | 'verifying'
  | 'saving conflicts'
  | 'writing the file'
  | 'done'
  | 'table gone';

const TRANSITIONS: Transitions<Phase> = {
  created: ['reading the file'],
  'reading the file': ['comparing'],
  comparing: ['fetching'],
  fetching: ['merging', 'writing the file', 'table gone'],
  merging: ['pushing', 'saving conflicts'],
  pushing: ['verifying'],
  verifying: ['saving conflicts', 'table gone'],
  'saving conflicts': ['writing the file'],
  'writing the file': ['done'],
  done: [],
  'table gone': [],
};

export interface SyncParts {
  readonly plan: TablePlan;
  readonly clock: Clock;
  readonly log: Logger;
  readonly file: EditedFile;
  readonly bases: BaseStore;
  readonly peerTable: RemoteTable;
}

/** The edit that the file holds. */
interface Edit {
  readonly content: FileContent;
  /** The content as a table. */
  readonly table: TableText;
  /** Set if the file was made from an earlier copy than the newest. */
  readonly staleCopy: StaleCopy | undefined;
}

/** The result of *comparing*: the base, and what the file has changed since. */
interface Compared extends LoadedBase {
  readonly content: FileContent | undefined;
  /** Undefined if the file is missing, or is as it was written and no push was interrupted. */
  readonly edit: Edit | undefined;
}

/** Changes for the peer, and the base that they start from. */
interface PushPlan {
  readonly base: Base;
  readonly changes: Changes;
}

interface Merged {
  readonly merge: Merge;
  /** Undefined if the file changed nothing, or there is no base. */
  readonly push: PushPlan | undefined;
  /** The changes of the file since the base, pushed by this run or by an interrupted one. */
  readonly sinceBase: Changes;
}

export interface SyncResult {
  readonly changed: boolean;
  readonly facts: Facts;
  readonly notes: readonly string[];
}

/**
 * One run of a two-way table. It goes through these phases, in this order:
 *
 * - *reading the file*: waits until the file is at rest, and reads it.
 * - *comparing*: loads the base. A file that differs from it holds an *edit*, which is parsed and
 *   checked. It may have been made from an earlier copy: a *stale copy* (`findStaleCopy`).
 * - *fetching*: reads the peer's table into memory, and checks it.
 * - *merging* (with an edit): merges file and peer with the base, or with the stale copy.
 * - *pushing* (if the file changed something): writes the changes ahead to disk, then sends them.
 * - *verifying* (after a push): reads the peer's table again. The file is written from that.
 * - *saving conflicts* (with an edit): saves the file whole as a conflict file if both sides
 *   changed the same cell differently.
 * - *writing the file*: prepares the new base on disk, replaces the file with the peer's table, and
 *   activates the new base.
 * - *done*, or *table gone* if the peer does not have the table.
 *
 * A condition ends a run before anything is pushed or written. After a crash the next run begins
 * anew, with this on disk:
 *
 * - up to *merging*: nothing of the run.
 * - *pushing*, *verifying*: the changes that were written ahead. The peer may show all, some or
 *   none of them. Those that it shows belong to both sides. The others are still edits of the file,
 *   and are pushed again. A new row gets the same key again.
 * - *saving conflicts*: also the conflict file. The same content is saved only once.
 * - *writing the file*: also the next base. `BaseStore.load` finds out whether the file was
 *   replaced.
 */
export class SyncRun {
  readonly #phase = new Modes<Phase>('created', TRANSITIONS);

  constructor(
    private readonly parts: SyncParts,
    private readonly before: MirrorRecord | undefined,
    private readonly options: FollowOptions,
  ) {}

  /**
   * Runs once.
   *
   * @returns undefined if the peer does not have the table
   * @throws MirrorCondition, MirrorError, PeerError, FileChanged; the reason of the signal
   */
  async run(): Promise<SyncResult | undefined> {
    const content = await this.#readFile();
    const compared = await this.#compare(content);
    const { edit } = compared;
    const fetched = await this.#fetch();
    if (fetched === undefined) return this.#tableGone();
    const merged = edit && (await this.#merge(edit, fetched.grid, compared.synced));
    const copy = merged?.push === undefined ? fetched : await this.#push(merged, fetched.grid);
    if (copy === undefined) return this.#tableGone();
    const conflictFile = edit && merged && (await this.#saveConflicts(edit, merged.merge));
    const stale = this.#staleSave(compared);
    const written = await this.#writeFile(compared, merged, copy, stale);
    this.#phase.enter('done');
    return await this.#result(written, copy, merged?.merge, conflictFile, stale);
  }

  async #readFile(): Promise<FileContent | undefined> {
    this.#phase.enter('reading the file');
    return await this.parts.file.read(this.options.signal);
  }

  async #compare(content: FileContent | undefined): Promise<Compared> {
    this.#phase.enter('comparing');
    const loaded = await this.parts.bases.load(content?.sha256);
    const isEdited = content !== undefined && !isAsWritten(content, loaded.synced);
    const edit = isEdited ? await this.#readEdit(content, loaded.synced) : undefined;
    return { ...loaded, content, edit };
  }

  /** @throws MirrorCondition EDIT_UNREADABLE, EDIT_TOO_LARGE, EDIT_COLUMNS */
  async #readEdit(content: FileContent, synced: SyncedState | undefined): Promise<Edit> {
    const { clock, file, plan } = this.parts;
    const base = synced?.base;
    if (base?.file === content.sha256) {
      // Only after an interrupted push: the file is as it was written from the base. The base has
      // its rows exactly, and the text of the file may have lost something.
      const rows = [...base.grid.rows].map(([pk, cells]) => ({ pk, cells, line: 0 }));
      return { content, table: { columns: base.shown, rows }, staleCopy: undefined };
    }
    const table = await readLocalTable(file, content, plan.settings.format);
    const isSavedOnPurpose = base?.stale?.saved === content.sha256;
    const staleCopy =
      base === undefined || isSavedOnPurpose
        ? undefined
        : await findStaleCopy(table, base, clock.now());
    checkColumns(file, table, staleCopy ?? base, plan.settings);
    return { content, table, staleCopy };
  }

  async #fetch(): Promise<RemoteCopy | undefined> {
    this.#phase.enter('fetching');
    return await this.parts.peerTable.read(this.before, this.options);
  }

  /** @throws MirrorCondition EDIT_UNREADABLE for a key, EDIT_DELETES */
  async #merge(edit: Edit, peerGrid: Grid, synced: SyncedState | undefined): Promise<Merged> {
    this.#phase.enter('merging');
    const { file, plan, peerTable } = this.parts;
    const { table, staleCopy } = edit;
    checkNewKeys(file, table, peerGrid, await peerTable.maxKeyBytes(this.options.signal));
    const fileGrid = await gridOfFile(table, staleCopy, synced);
    const { base, shown } = await this.#mergeBase(edit, fileGrid, peerGrid, synced);
    const merged = await merge(base, peerGrid, fileGrid, plan.settings);
    this.#checkDeletes(merged.deletes);
    if (synced === undefined || isEmpty(merged)) {
      return { merge: merged, push: undefined, sinceBase: synced?.pushed ?? NO_CHANGES };
    }
    const push = { base: synced.base, changes: merged };
    return { merge: merged, push, sinceBase: combined(shown, merged) };
  }

  /** Returns the base of the merge, and the changes of interrupted runs that the peer shows. */
  async #mergeBase(
    { content, staleCopy }: Edit,
    fileGrid: Grid,
    peerGrid: Grid,
    synced: SyncedState | undefined,
  ): Promise<{ readonly base: Grid | undefined; readonly shown: Changes }> {
    if (synced === undefined) {
      // A file that is as the last run wrote it is its own base.
      const isUntouched = content.sha256 === this.before?.sha256;
      return { base: isUntouched ? fileGrid : undefined, shown: NO_CHANGES };
    }
    return await includePushed(staleCopy?.base ?? synced.base.grid, synced.pushed, peerGrid);
  }

  /** @throws MirrorCondition EDIT_DELETES */
  #checkDeletes(keys: readonly string[]): void {
    const { file, plan } = this.parts;
    const { maxDeletes } = plan.settings;
    if (keys.length <= maxDeletes) return;
    const removed = `${numberText(keys.length)} rows were removed (${quotedList(keys)})`;
    const detail = `${removed}, more than maxDeletes, ${maxDeletes}, at once`;
    const condition = file.condition('EDIT_DELETES', detail);
    // A person accepts the rows that the condition names, and not others that were removed later.
    const isAccepted =
      this.options.accepted.includes('EDIT_DELETES') &&
      this.before?.condition?.message === condition.message;
    if (!isAccepted) throw condition;
  }

  /**
   * Pushes the changes, and reads the table back. Returns undefined if the table is gone by then.
   */
  async #push({ push, sinceBase }: Merged, before: Grid): Promise<RemoteCopy | undefined> {
    if (push === undefined) throw new TypeError('There is nothing to push');
    const { bases, peerTable } = this.parts;
    this.#phase.enter('pushing');
    await bases.writeAhead(sinceBase, push.base);
    this.#logStep('the changes are written ahead');
    await peerTable.push(push.changes, before, this.options.signal);
    this.#phase.enter('verifying');
    const accepted = [...this.options.accepted, ...conditionsOfPush(push.changes, before)];
    return await peerTable.read(this.before, { ...this.options, accepted });
  }

  /** Saves the file if it has conflicts. Returns the path of the conflict file. */
  async #saveConflicts({ content }: Edit, { conflicts }: Merge): Promise<string | undefined> {
    this.#phase.enter('saving conflicts');
    const path = conflicts.length > 0 ? await this.parts.file.saveConflict(content) : undefined;
    this.#logStep('the conflicts are saved');
    return path;
  }

  /**
   * Returns the stale save to remember: the one that this run found. A run without an edit keeps
   * that of an earlier run.
   */
  #staleSave({ content, edit, synced }: Compared): StaleSave | undefined {
    if (edit === undefined) return synced?.base.stale;
    if (edit.staleCopy === undefined) return undefined;
    return { saved: content?.sha256, at: this.parts.clock.now(), copyAt: edit.staleCopy.at };
  }

  /**
   * Replaces the file with the peer's table. The new base is prepared when the new content is
   * complete, and activated when it is in place.
   *
   * @throws FileChanged; MirrorCondition EDIT_TOO_LARGE; MirrorError
   */
  async #writeFile(
    compared: Compared,
    merged: Merged | undefined,
    copy: RemoteCopy,
    stale: StaleSave | undefined,
  ): Promise<WrittenFile> {
    this.#phase.enter('writing the file');
    const { bases, file, plan } = this.parts;
    const { signal } = this.options;
    const shown = [...copy.columns.written, ...this.#emptyColumns(compared, copy)];
    const byFile = changesByFile(compared.synced, merged);
    let isBaseNew = false;
    let mayBeReplaced = false;
    const onWritten = async (sha256: string): Promise<void> => {
      const replaces = compared.content?.sha256;
      const content = { file: sha256, replaces, shown, stale, grid: copy.grid };
      isBaseNew = await bases.prepare(content, compared.previous, byFile);
      this.#logStep('the new base is prepared');
    };
    const { versions } = plan.settings;
    const options = { versions, signal, onWritten, maxBytes: MAX_EDITED_BYTES };
    try {
      const written = await file.replace(
        compared.content,
        writeLocalTable(plan, shown, copy.grid),
        options,
        () => {
          mayBeReplaced = true;
        },
      );
      this.#logStep('the file is written');
      if (isBaseNew) await bases.activate();
      else await bases.clearPushes();
      this.#logStep('the new base holds');
      return written;
    } catch (error) {
      // Otherwise the next run compares the file with the prepared base, as after a crash.
      const isExpected = error instanceof FileChanged || error instanceof PeersyncError;
      if (!mayBeReplaced && (signal.aborted || isExpected)) await bases.discardPrepared();
      if (!isTooLarge(error)) throw error;
      const detail = `it would have more than ${MAX_EDITED_BYTES} bytes`;
      throw file.condition('EDIT_TOO_LARGE', detail);
    }
  }

  /** Returns the columns that a person has added, still without a value. The peer has none. */
  #emptyColumns({ content, edit, synced }: Compared, copy: RemoteCopy): readonly string[] {
    if (content === undefined || synced === undefined) return [];
    if (this.parts.plan.settings.columns !== undefined) return [];
    const { base } = synced;
    const filled = new Set([...copy.columns.written, ...base.columns]);
    return (edit?.table.columns ?? base.shown).filter((column) => !filled.has(column));
  }

  async #result(
    { changed, bytes, sha256, file }: WrittenFile,
    { grid, columns, accepted }: RemoteCopy,
    merged: Merge | undefined,
    conflictFile: string | undefined,
    stale: StaleSave | undefined,
  ): Promise<SyncResult> {
    const known = this.before?.conflicts;
    const conflicts = await this.parts.file.openConflicts(known, conflictFile, merged?.conflicts);
    const notes = [
      ...staleNotes(stale, this.parts.clock.now()),
      ...restoredNotes(merged?.restored ?? []),
    ];
    const facts: Facts = {
      rows: grid.rows.size,
      bytes,
      sha256,
      file,
      columns: columns.remembered,
      accepted,
      conflicts,
    };
    return { changed, facts, notes };
  }

  #tableGone(): undefined {
    this.#phase.enter('table gone');
    return undefined;
  }

  #logStep(step: string): void {
    this.parts.log.debug({ mirror: this.parts.plan.name }, step);
  }
}

/** Returns whether nobody edited the file, and no run was interrupted. */
function isAsWritten(content: FileContent, synced: SyncedState | undefined): boolean {
  return synced?.base.file === content.sha256 && isEmpty(synced.pushed);
}

/** Returns the rows of the file by their keys. New rows get theirs. */
async function gridOfFile(
  { columns, rows }: TableText,
  staleCopy: StaleCopy | undefined,
  synced: SyncedState | undefined,
): Promise<Grid> {
  const newest = synced?.base.grid;
  const isTaken = staleCopy?.hasRow ?? ((pk: string) => newest?.rows.has(pk) === true);
  return { columns, rows: await assignKeys(rows, isTaken, synced?.base.salt ?? '') };
}

/** Returns the changes since the base that came from the file, and not from the peer. */
function changesByFile(synced: SyncedState | undefined, merged: Merged | undefined): Changes {
  if (merged === undefined) return synced?.pushed ?? NO_CHANGES;
  return combined(merged.sinceBase, merged.merge.sameOnBoth);
}

function restoredNotes(keys: readonly string[]): readonly string[] {
  if (keys.length === 0) return [];
  const rows = `Rows that were removed from the file came back (${quotedList(keys)})`;
  return [`${rows}: "deletes" is off for this table.`];
}
