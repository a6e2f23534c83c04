import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BaseStore, Last } from './edit-base.js';
import type { ReadFile } from './edit-file.js';
import { absorb, together } from './edit-intents.js';
import { withKeys } from './edit-key.js';
import { type Alarm, named, type PeerTable } from './edit-reading.js';
import type { Earlier } from './edit-stale.js';
import type { EditableTableParts, EditKnown, EditPeer } from './edit-table.js';
import type { TableText } from './formats/read.js';
import { agreed, type Clash, type Merge, mergeInTurns } from './merge.js';

/** Rows that are committed, or deleted, and then read back together: that may be a pass over the whole table. */
const ROWS_A_GROUP = 1_000;

/** What became of the edits of a file. */
export interface Told {
  /** Rows that were committed. */
  readonly set: number;
  /** Rows that were deleted. */
  readonly deleted: number;
  readonly clashes: readonly Clash[];
  readonly notes: readonly string[];
}

/** What was changed where. */
export interface Sides {
  readonly read: Pick<ReadFile, 'sha256'>;
  readonly mine: TableText;
  readonly peer: PeerTable;
  readonly last: Last | undefined;
  /** Where the file was made from an earlier copy than the last. */
  readonly earlier?: Earlier | undefined;
  readonly known: EditKnown;
}

export interface TellingParts {
  readonly peer: Pick<EditPeer, 'set' | 'deleteRows'>;
  readonly settings: Pick<EditableTableParts['settings'], 'deletes' | 'maxDeletes'>;
  readonly bases: Pick<BaseStore, 'intend'>;
  readonly alarm: Alarm;
  readonly onStep: (step: string) => void;
}

export const NOTHING_TOLD: Told = { set: 0, deleted: 0, clashes: [], notes: [] };

/**
 * Tells the peer what a person changed in the file of a table.
 *
 * What that is, the merge of both sides with what they had in common says: the last base, and what an earlier run had
 * told since; where the file was made from an earlier copy, that one. Too many rows removed are an alarm. What is about to
 * be told is on disk first (intents), then it is told group by group, each read back by the peer's client.
 */
export class Telling {
  readonly #parts: TellingParts;

  constructor(parts: TellingParts) {
    this.#parts = parts;
  }

  /**
   * @param accept a person accepts the alarm that the record has: these rows may be deleted, and no others
   * @throws EditAlarm, before anything was told
   */
  async tell(sides: Sides, accept: boolean, signal: AbortSignal | undefined): Promise<Told> {
    const { deletes, maxDeletes } = this.#parts.settings;
    const { last, earlier } = sides;
    const base = earlier?.grid ?? (await last?.base.grid());
    const mine = withKeys(sides.mine.rows, sides.mine.columns, base, last?.base.salt ?? '');
    const common = earlier?.common ?? base;
    const absorbed = common && last && absorb(common, last.intents, sides.peer.grid);
    // A file that is as it was written is its own base.
    const unedited = sides.read.sha256 === sides.known.sha256 ? mine : undefined;
    const first = await inTurns(mergeInTurns(absorbed?.base ?? unedited, sides.peer.grid, mine, { deletes }));
    const other = earlier === undefined ? await last?.other?.grid() : undefined;
    const plan =
      other === undefined
        ? first
        : agreed(first, await inTurns(mergeInTurns(other, sides.peer.grid, mine, { deletes })));
    if (plan.deletes.length > maxDeletes) {
      const removed = `${plan.deletes.length} rows were removed (${named(plan.deletes)})`;
      const alarm = this.#parts.alarm(
        'EDIT_DELETES',
        `${removed}, more than maxDeletes, ${maxDeletes}, at once`,
      );
      // What a person accepted are the rows that were named, and not others that were removed since.
      if (!accept || sides.known.alarm?.message !== alarm.message) throw alarm;
    }
    if (last !== undefined && absorbed !== undefined && plan.set.length + plan.deletes.length > 0) {
      await this.#parts.bases.intend(together(absorbed.done, plan), last.base);
      this.#parts.onStep('the intents are kept');
      await this.#apply(plan, signal);
    }
    return {
      set: plan.set.length,
      deleted: plan.deletes.length,
      clashes: plan.clashes,
      notes: notesOf(plan),
    };
  }

  async #apply(plan: Merge, signal: AbortSignal | undefined): Promise<void> {
    const { peer } = this.#parts;
    for (const rows of groups(plan.set)) {
      signal?.throwIfAborted();
      this.#parts.onStep('rows are about to be committed');
      await peer.set(rows, signal);
      this.#parts.onStep('rows were committed');
    }
    for (const keys of groups(plan.deletes)) {
      signal?.throwIfAborted();
      this.#parts.onStep('rows are about to be deleted');
      await peer.deleteRows(keys, signal);
      this.#parts.onStep('rows were deleted');
    }
  }
}

async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await nextTurn();
  }
}

function notesOf({ returned }: Merge): readonly string[] {
  if (returned.length === 0) return [];
  return [
    `Rows that were removed from the file came back (${named(returned)}): "deletes" is off for this table.`,
  ];
}

function* groups<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += ROWS_A_GROUP) yield all.slice(at, at + ROWS_A_GROUP);
}
