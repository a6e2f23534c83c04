import type { TableRow } from '../peer/table.js';
import { quoted } from './errors.js';
import { writeTable } from './formats/formats.js';
import { ListedMirror } from './listed-mirror.js';
import type { FollowOptions, FollowResult } from './mirror.js';
import type { TablePlan } from './plan.js';
import { acceptedEarlier, type Conflict, type MirrorRecord } from './record.js';
import type { RowStore } from './row-store.js';
import { type TableCopy, TableSource } from './table-source.js';
import { BaseStore } from './two-way/base-store.js';
import { replaceWhole } from './whole-file.js';

/** The keys that are remembered of a table that is not written in the order of its keys. */
const MAX_KEYS = 1_000_000;

/** Tracks keys that the peer shows more than once. */
interface DuplicateKeys {
  readonly isAccepted: boolean;
  isFound: boolean;
}

/**
 * Mirrors a table of the peer to a file, one way.
 *
 * The rows are stored on disk and checked as a whole (`TableSource`). Then the file is written.
 */
export class TableMirror extends ListedMirror<TablePlan> {
  readonly #source = new TableSource(this.plan, this.target, this.deps);

  override async follow(
    before: MirrorRecord | undefined,
    options: FollowOptions,
  ): Promise<FollowResult> {
    const result = await this.#source.read(before, options, (copy) =>
      this.#write(copy, before, options),
    );
    await this.#removeBase();
    return result ?? (await this.gone(before, options));
  }

  override async retire(before: MirrorRecord | undefined): Promise<readonly Conflict[]> {
    const conflicts = await super.retire(before);
    await this.#removeBase();
    return conflicts;
  }

  async #write(
    copy: TableCopy,
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
  ): Promise<FollowResult> {
    const { format, neutralise, newline, versions } = this.plan.settings;
    const { rows, columns } = copy;
    const duplicates: DuplicateKeys = {
      isAccepted: [...accepted, ...acceptedEarlier(before)].includes('KEYS_TWICE'),
      isFound: false,
    };
    const table = { name: this.plan.source, columns: columns.written, neutralise, newline };
    const text = writeTable(format, table, this.#uniqueRows(rows, duplicates));
    const { changed, sha256, bytes, file } = await replaceWhole(this.target, text, {
      before: this.known(before),
      versions,
      signal,
      onReplace: this.beforeReplace,
    });
    const missing = columns.missing.map((column) => `The peer shows no column ${quoted(column)}.`);
    return {
      kind: 'current',
      changed,
      facts: {
        rows: rows.rows,
        bytes,
        sha256,
        file,
        columns: columns.remembered,
        accepted: duplicates.isFound ? [...copy.accepted, 'KEYS_TWICE'] : copy.accepted,
        notes: [...this.notes, ...missing],
      },
    };
  }

  /** @throws MirrorCondition KEYS_TWICE, before the file is replaced */
  async *#uniqueRows(
    store: RowStore,
    duplicates: DuplicateKeys,
  ): AsyncGenerator<readonly TableRow[], void> {
    const isByKey = this.plan.settings.sortBy === undefined;
    const keys = new Set<string>();
    for await (const group of store.read()) {
      for (const { pk } of group) {
        if (keys.has(pk)) {
          duplicates.isFound = true;
          if (!duplicates.isAccepted) throw this.condition('KEYS_TWICE', `the key ${quoted(pk)}`);
        }
        // In the order of keys, rows of the same key follow each other.
        if (isByKey) keys.clear();
        if (keys.size < MAX_KEYS) keys.add(pk);
      }
      yield group;
    }
  }

  /** Removes the base that is left from a time when `edit` was on. */
  async #removeBase(): Promise<void> {
    await new BaseStore(this.deps.stateDir, this.name, this.plan.source, this.deps.clock).remove();
  }
}
