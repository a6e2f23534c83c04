import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Cells, filled, rowsOf, TwoWayWorld } from './two-way-world.js';

const KEYS = ['k1', 'k2', 'k3', 'k4', 'k5'] as const;
const COLUMNS = ['a', 'b', 'c'] as const;

/** An edit of the file by a person. `row` chooses one of the rows. */
const editArbitrary = fc.record({
  do: fc.constantFrom('set', 'clear', 'agree', 'add', 'add without key', 'remove'),
  row: fc.nat(9),
  column: fc.constantFrom(...COLUMNS),
  how: fc.constantFrom('in place' as const, 'whole' as const),
});
type Edit = typeof editArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** A change of the peer's table by others. */
const changeArbitrary = fc.record({
  do: fc.constantFrom('set', 'clear', 'add', 'delete'),
  key: fc.constantFrom(...KEYS),
  column: fc.constantFrom(...COLUMNS),
});
type Change = typeof changeArbitrary extends fc.Arbitrary<infer T> ? T : never;

const runArbitrary = fc.record({
  /** The step at which it crashes, if it comes that far. */
  crashAt: fc.option(fc.nat(16), { nil: undefined, freq: 2 }),
  /** An edit during the run, and its step. */
  meanwhile: fc.option(fc.record({ at: fc.nat(16), edit: editArbitrary }), { nil: undefined }),
});
type Run = typeof runArbitrary extends fc.Arbitrary<infer T> ? T : never;

const actionArbitrary = fc.oneof(
  fc.record({ edit: editArbitrary }),
  fc.record({ change: changeArbitrary }),
  fc.record({ conflict: editArbitrary }),
  fc.record({ run: runArbitrary }),
  /**
   * The file is opened in an editor; others change something, and that reaches the file; then the
   * editor saves.
   */
  fc.record({
    open: fc.boolean(),
    changes: fc.array(changeArbitrary, { maxLength: 3 }),
    between: fc.option(runArbitrary, { nil: undefined }),
    stale: editArbitrary,
  }),
);

type Action = typeof actionArbitrary extends fc.Arbitrary<infer T> ? T : never;

class Crash extends Error {}

/**
 * A random history of one table: a person edits the file, others change the peer, and runs crash.
 * Every typed value is unique, so that the end of each is known: it is in the table, in a conflict
 * file, or somebody who saw it removed it.
 */
class Model {
  readonly world: TwoWayWorld;
  readonly typed = new Set<string>();
  readonly typedWithoutKey = new Set<string>();
  readonly takenAway = new Set<string>();
  /** The values of the others. */
  readonly #theirs = new Set<string>();
  /** The keys of rows that the person added. */
  readonly #ownRows = new Set<string>();
  /** The rows in an editor that does not see newer copies. */
  #opened: readonly Cells[] | undefined;
  /** The number of conflict files when it was opened. */
  #conflicts = 0;
  /** The text that it saved last. */
  #savedStale = '';
  /** The file as that left it. */
  #staleText = '';

  constructor(deletes: boolean) {
    this.world = new TwoWayWorld(rowsOf('k1 a=first_a b=first_b; k2 a=second_a b=second_b'), {
      deletes,
      maxDeletes: 100,
    });
  }

  async act(action: Action): Promise<void> {
    if ('edit' in action) this.edit(action.edit);
    else if ('change' in action) this.change(action.change);
    else if ('conflict' in action) this.conflict(action.conflict);
    else if ('run' in action) await this.run(action.run);
    else {
      if (action.open) this.open();
      for (const change of action.changes) this.change(change);
      if (action.between !== undefined) await this.run(action.between);
      this.saveStale(action.stale);
    }
  }

  edit(edit: Edit): void {
    // An edit right after the save of a stale copy may revert a change of the others.
    if (this.#staleText === this.world.text() && !this.#isMirrored()) return;
    const rows = this.world.rows();
    const row = rows[edit.row % Math.max(rows.length, 1)];
    const { column } = edit;
    if (edit.do === 'add') {
      const pk = KEYS.find((key) => !rows.some((other) => other.pk === key));
      if (pk === undefined) return;
      this.#ownRows.add(pk);
      this.#save([...rows, { pk, [column]: this.#new() }], edit);
    } else if (edit.do === 'add without key') {
      const value = this.#new();
      this.typedWithoutKey.add(value);
      this.#save([...rows, { pk: '', [column]: value }], edit);
    } else if (row === undefined) {
      return;
    } else if (edit.do === 'remove') {
      if (rows.length === 1) return;
      this.#takeAway(row);
      this.#save(
        rows.filter((other) => other !== row),
        edit,
      );
    } else if (row.pk !== '') {
      this.#takeAway({ [column]: row[column] ?? '' });
      if (edit.do === 'set') row[column] = this.#new();
      if (edit.do === 'clear') row[column] = '';
      if (edit.do === 'agree') {
        row[column] = this.world.remote.get(row.pk ?? '')?.[column] ?? '';
        // A value that both typed is also the person's: a stale copy may revert it like any edit.
        this.#theirs.delete(row[column]);
      }
      this.#save(rows, edit);
    }
  }

  change({ do: what, key, column }: Change): void {
    const row = this.world.remote.get(key);
    if (what === 'add' && row === undefined) {
      this.world.remote.set(key, { [column]: this.#newOfTheirs() });
      this.#ownRows.delete(key);
    }
    if (row === undefined) return;
    if (what === 'delete') {
      this.#takeAway(row);
      this.world.remote.delete(key);
    } else if (what !== 'add') {
      this.#takeAway({ [column]: row[column] ?? '' });
      row[column] = what === 'set' ? this.#newOfTheirs() : '';
    }
  }

  /** The person and the others set the same cell. */
  conflict(edit: Edit): void {
    const rows = this.world.rows();
    const { pk } = rows[edit.row % Math.max(rows.length, 1)] ?? {};
    const key = KEYS.find((key) => key === pk);
    this.edit({ ...edit, do: 'set' });
    if (key !== undefined) this.change({ do: 'set', key, column: edit.column });
  }

  /** The file is opened in an editor, as it was mirrored last. */
  open(): void {
    if (!this.#isMirrored()) return;
    this.#opened = this.world.rows();
    this.#conflicts = this.world.conflictFiles().length;
  }

  /**
   * The editor saves its stale copy with another edit over the newest one. Other edits of the
   * person since are overwritten, as in any file. Changes of the others stay, except of the edited
   * cell. After a conflict the person opens the file anew.
   */
  saveStale(edit: Edit): void {
    if (this.world.conflictFiles().length > this.#conflicts) this.#opened = undefined;
    if (this.#opened === undefined || !this.#isMirrored()) return;
    const rows = this.#opened.map((row) => ({ ...row }));
    const now = this.world.rows();
    const { column } = edit;
    const row = rows[edit.row % Math.max(rows.length, 1)];
    const shown = now.find(({ pk }) => pk === row?.pk);
    if (edit.do === 'add') {
      const isFree = (key: string) => ![...rows, ...now].some(({ pk }) => pk === key);
      const pk = KEYS.find((key) => isFree(key) && !this.world.remote.has(key));
      if (pk === undefined) return;
      rows.push({ pk, [column]: this.#new() });
    } else if (edit.do === 'set' || edit.do === 'clear') {
      if (row === undefined || (row[column] ?? '') !== (shown?.[column] ?? '')) return;
      this.#takeAway({ [column]: row[column] ?? '' });
      row[column] = edit.do === 'set' ? this.#new() : '';
    }
    // All columns are there, so that none looks removed.
    const whole = rows.map((row) => ({ pk: '', a: '', b: '', c: '', ...row }));
    // A second save of the same text reverts the others on purpose.
    if (JSON.stringify(whole) === this.#savedStale || whole.length === 0) return;
    this.#savedStale = JSON.stringify(whole);
    const kept = new Set(rows.flatMap((row) => Object.values(row)));
    for (const { pk = '', ...cells } of now) {
      // A row that the person added since looks removed on purpose, with all values in it.
      const isOwnRow = this.#ownRows.has(pk) && !rows.some((row) => row.pk === pk);
      for (const value of Object.values(cells))
        if (!kept.has(value) && (isOwnRow || !this.#theirs.has(value))) this.takenAway.add(value);
    }
    this.#opened = rows;
    this.#save(whole, edit);
    this.#staleText = this.world.text();
  }

  async run({ crashAt, meanwhile }: Run): Promise<void> {
    let step = 0;
    const onStep = (): void => {
      if (meanwhile?.at === step) this.edit(meanwhile.edit);
      if (crashAt === step) throw new Crash();
      step += 1;
    };
    this.world.onStep = onStep;
    this.world.peer.onRequest = onStep;
    try {
      await this.world.run();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      this.world.open();
    } finally {
      this.world.onStep = () => {};
      this.world.peer.onRequest = () => {};
    }
  }

  async check(): Promise<void> {
    await this.world.settled();
    const { writes } = this.world;
    const last = await this.world.settled();
    expect(last, 'a second run has nothing to do').toMatchObject({ changed: false });
    expect(this.world.writes).toEqual(writes);
    expect(this.world.content()).toEqual(this.world.theirs());
    const there = new Set([...this.world.remote.values()].flatMap((cells) => Object.values(cells)));
    const saved = this.world.conflictTexts().join('\n');
    const lost = [...this.typed].filter(
      (value) => !there.has(value) && !this.takenAway.has(value) && !saved.includes(`"${value}"`),
    );
    expect(lost, 'values that vanished').toEqual([]);
    for (const value of this.typedWithoutKey) {
      const rows = [...this.world.remote.values()].filter((cells) =>
        Object.values(cells).includes(value),
      );
      expect(rows.length, 'a new row is added once').toBeLessThan(2);
    }
  }

  #new(): string {
    const value = `v${this.typed.size}.`;
    this.typed.add(value);
    return value;
  }

  #isMirrored(): boolean {
    return createHash('sha256').update(this.world.text()).digest('hex') === this.world.known.sha256;
  }

  #newOfTheirs(): string {
    const value = this.#new();
    this.#theirs.add(value);
    return value;
  }

  #takeAway(cells: Cells): void {
    for (const value of Object.values(filled(cells))) this.takenAway.add(value);
  }

  #save(rows: readonly Cells[], { how }: Edit): void {
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const whole = rows.map((row) =>
      Object.fromEntries(columns.map((column) => [column, row[column] ?? ''])),
    );
    this.world.save(whole, how);
  }
}

it('a two-way table loses no typed value and ends equal on both sides, with any edits, stale copies and crashes', async () => {
  const actions = fc.array(actionArbitrary, { minLength: 1, maxLength: 18 });
  await fc.assert(
    fc.asyncProperty(fc.boolean(), actions, async (deletes, all) => {
      const model = new Model(deletes);
      await model.world.settled();
      for (const action of all) await model.act(action);
      await model.check();
    }),
    { numRuns: Number(process.env.PEERSYNC_TEST_RUNS ?? 70) },
  );
}, 120_000);
