import { MirrorCondition, MirrorError } from '../errors.js';
import { type FollowOptions, type FollowResult, ListedMirror } from '../mirror.js';
import type { TablePlan } from '../plan.js';
import type { Conflict, MirrorRecord } from '../record.js';
import { TableSource } from '../table.js';
import { FileChanged } from '../whole-file.js';
import { BaseStore } from './base-store.js';
import { EditedFile } from './edited-file.js';
import { RemoteTable } from './sides.js';
import { SyncRun } from './sync-run.js';

/**
 * A table of the peer that a person edits in its file. Each run is a three-way merge of the file,
 * the peer's table, and the *base*: the last state that both had in common. `SyncRun` is one run.
 */
export class TwoWayTable extends ListedMirror<TablePlan> {
  readonly #file = new EditedFile(this.target, this.name, this.deps.clock);
  readonly #bases = new BaseStore(this.deps.stateDir, this.name, this.plan.source, this.deps.clock);
  readonly #peerTable = new RemoteTable(
    this.plan,
    this.deps,
    new TableSource(this.plan, this.target, this.deps),
    this.#file,
  );

  override async follow(
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<FollowResult> {
    const parts = {
      plan: this.plan,
      clock: this.deps.clock,
      log: this.deps.log,
      file: this.#file,
      bases: this.#bases,
      peerTable: this.#peerTable,
    };
    try {
      const synced = await new SyncRun(parts, before, options).run();
      if (synced === undefined) return await this.gone(before, options);
      const notes = [...this.notes, ...synced.notes];
      return { kind: 'current', changed: synced.changed, facts: { ...synced.facts, notes } };
    } catch (error) {
      if (error instanceof MirrorCondition) {
        error.conflicts = await this.#file.openConflicts(before?.conflicts);
      }
      throw error;
    }
  }

  /** Returns whether the file has changed since the last run. Costs one lstat. */
  override wantsRun(): Promise<boolean> {
    return this.#file.looksEdited();
  }

  /**
   * Removes the file of a table that is gone, and its base. A file with edits is saved as a
   * conflict file first.
   *
   * @throws MirrorCondition; MirrorError MIRROR_BLOCKED while somebody is writing the file
   */
  override async retire(before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    try {
      await this.#removeFile(before);
    } catch (error) {
      if (!(error instanceof FileChanged)) throw error;
      const detail = 'a file that is being written';
      throw new MirrorError('MIRROR_BLOCKED', { what: this.#file.path, detail });
    }
    await this.#bases.remove();
    return await this.#file.openConflicts(before?.conflicts);
  }

  async #removeFile(before: MirrorRecord | undefined): Promise<void> {
    const content = await this.#file.read(undefined);
    if (content === undefined) return;
    const { synced } = await this.#bases.load(content.sha256);
    const isEdited = content.sha256 !== (synced?.base.file ?? before?.sha256);
    if (isEdited) await this.#file.saveConflict(content);
    this.deps.log.debug({ mirror: this.name }, 'the file is about to be removed');
    await this.#file.remove(content, this.plan.settings.versions);
  }
}
