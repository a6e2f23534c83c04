import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Cells, filled, rowsOf, TwoWayWorld } from './two-way-world.js';

const KEYS = ['k1', 'k2', 'k3', 'k4', 'k5'] as const;
const COLUMNS = ['a', 'b', 'c'] as const;

/** What a person does to the file. `row` chooses among those that are there. */
const editArbitrary = fc.record({
  do: fc.constantFrom('set', 'clear', 'agree', 'add', 'add without key', 'remove'),
  row: fc.nat(9),
  column: fc.constantFrom(...COLUMNS),
  how: fc.constantFrom('in place' as const, 'whole' as const),
});
type Edit = typeof editArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** What others do to the peer's table. */
const changeArbitrary = fc.record({
  do: fc.constantFrom('set', 'clear', 'add', 'delete'),
  key: fc.constantFrom(...KEYS),
  column: fc.constantFrom(...COLUMNS),
});
type Change = typeof changeArbitrary extends fc.Arbitrary<infer T> ? T : never;

const runArbitrary = fc.record({
  /** At which step it ends as by a crash, if it comes that far. */
  crashAt: fc.option(fc.nat(16), { nil: undefined, freq: 2 }),
  /** What a person does meanwhile, and at which step. */
  meanwhile: fc.option(fc.record({ at: fc.nat(16), edit: editArbitrary }), { nil: undefined }),
});
type Run = typeof runArbitrary extends fc.Arbitrary<infer T> ? T : never;

const actionArbitrary = fc.oneof(
  fc.record({ edit: editArbitrary }),
  fc.record({ change: changeArbitrary }),
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
 * A person, the others and a process that crashes, with one table. Every value that is ever typed
 * is a new one, so it can be said of each where it went: it is in the table, in a conflict file, or
 * somebody who had it in view took it away.
 */
class Model {
  readonly world: TwoWayWorld;
  readonly typed = new Set<string>();
  readonly typedWithoutKey = new Set<string>();
  readonly takenAway = new Set<string>();
  /** What the others typed. */
  readonly #theirs = new Set<string>();
  /** The keys of rows that the person added. */
  readonly #ownRows = new Set<string>();
  /** What stands in an editor that nobody told of newer copies. */
  #opened: readonly Cells[] | undefined;
  /** How many conflict files there were then. */
  #conflicts = 0;
  /** What it saved last. */
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
    else if ('run' in action) await this.run(action.run);
    else {
      if (action.open) this.open();
      for (const change of action.changes) this.change(change);
      if (action.between !== undefined) await this.run(action.between);
      this.saveStale(action.stale);
    }
  }

  edit(edit: Edit): void {
    // An edit of what was saved from an older copy a moment ago may be one of what the others
    // changed; nobody could tell.
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
        // What both typed is the person's, too: an editor's older copy takes it back as any other
        // edit.
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

  /** The file is opened in an editor, as it was mirrored last. */
  open(): void {
    if (!this.#isMirrored()) return;
    this.#opened = this.world.rows();
    this.#conflicts = this.world.conflictFiles().length;
  }

  /**
   * The editor saves what it opened, with another edit, over what was mirrored last. What the
   * person did meanwhile by other ways is overwritten, as in any file; what the others did is not,
   * where the edit is of something else. After a conflict the person opens the file anew: what
   * stays in the editor then is a new edit of what the others typed.
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
    // A column that the person began meanwhile is no business of this test.
    const whole = rows.map((row) => ({ pk: '', a: '', b: '', c: '', ...row }));
    // To save the same once more is to mean it.
    if (JSON.stringify(whole) === this.#savedStale || whole.length === 0) return;
    this.#savedStale = JSON.stringify(whole);
    const kept = new Set(rows.flatMap((row) => Object.values(row)));
    for (const { pk = '', ...cells } of now) {
      // A row that the person added since looks as if it was removed on purpose, whatever the
      // others typed into it.
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
    this.world.peer.onAsk = onStep;
    try {
      await this.world.run();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      this.world.open();
    } finally {
      this.world.onStep = () => {};
      this.world.peer.onAsk = () => {};
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

it('a two-way table loses nothing that was typed and ends equal on both sides, whatever is edited, also in older copies, and wherever runs are cut short', async () => {
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
