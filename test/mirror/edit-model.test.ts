import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { Desk, filled, TableInMemory } from './edit-desk.js';

type Cells = Record<string, string>;

const KEYS = ['k1', 'k2', 'k3', 'k4', 'k5'] as const;
const COLUMNS = ['a', 'b', 'c'] as const;
const how = fc.constantFrom('in place', 'whole');

/** What a person does to the file. `row` chooses among those that are there. */
const editArbitrary = fc.oneof(
  fc.record({ do: fc.constant('set'), row: fc.nat(9), column: fc.constantFrom(...COLUMNS), how }),
  fc.record({ do: fc.constant('clear'), row: fc.nat(9), column: fc.constantFrom(...COLUMNS), how }),
  fc.record({ do: fc.constant('agree'), row: fc.nat(9), column: fc.constantFrom(...COLUMNS), how }),
  fc.record({ do: fc.constant('add'), row: fc.nat(9), column: fc.constantFrom(...COLUMNS), how }),
  fc.record({ do: fc.constant('add without key'), row: fc.nat(9), column: fc.constantFrom(...COLUMNS), how }),
  fc.record({ do: fc.constant('remove'), row: fc.nat(9), column: fc.constantFrom(...COLUMNS), how }),
);
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
);

class Crash extends Error {}

/**
 * A person, the others and a process that crashes, with one table. Every value that is ever typed is a new one, so it can be
 * said of each where it went: it is in the table, in a conflict file, or somebody who had it in view took it away.
 */
class World {
  readonly peer = new TableInMemory({
    k1: { a: 'first a', b: 'first b' },
    k2: { a: 'second a', b: 'second b' },
  });
  readonly desk: Desk;
  readonly typed = new Set<string>();
  readonly typedWithoutKey = new Set<string>();
  readonly takenAway = new Set<string>();

  constructor(deletes: boolean) {
    this.desk = new Desk(temporaryDirectory(), this.peer, { deletes, maxDeletes: 100 });
  }

  edit(edit: Edit): void {
    const rows = this.desk.rows();
    const row = rows[edit.row % Math.max(rows.length, 1)];
    const { column } = edit;
    if (edit.do === 'add') {
      const pk = KEYS.find((key) => !rows.some((other) => other.pk === key));
      if (pk !== undefined) this.#save([...rows, { pk, [column]: this.#new() }], edit);
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
      if (edit.do === 'agree') row[column] = this.peer.rows.get(row.pk ?? '')?.[column] ?? '';
      this.#save(rows, edit);
    }
  }

  change({ do: what, key, column }: Change): void {
    const row = this.peer.rows.get(key);
    if (what === 'add' && row === undefined) this.peer.rows.set(key, { [column]: this.#new() });
    if (row === undefined) return;
    if (what === 'delete') {
      this.#takeAway(row);
      this.peer.rows.delete(key);
    } else if (what !== 'add') {
      this.#takeAway({ [column]: row[column] ?? '' });
      row[column] = what === 'set' ? this.#new() : '';
    }
  }

  async run({ crashAt, meanwhile }: Run): Promise<void> {
    let step = 0;
    const onStep = (): void => {
      if (meanwhile?.at === step) this.edit(meanwhile.edit);
      if (crashAt === step) throw new Crash();
      step += 1;
    };
    this.desk.onStep = onStep;
    this.peer.onCall = onStep;
    try {
      await this.desk.run();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      await this.desk.table.close();
      this.desk.open();
    } finally {
      this.desk.onStep = () => {};
      this.peer.onCall = () => {};
    }
  }

  async check(): Promise<void> {
    await this.desk.settled();
    const { writes } = this.peer;
    const last = await this.desk.settled();
    expect(last, 'a second run has nothing to do').toMatchObject({ changed: false, written: { rows: 0 } });
    expect(this.peer.writes).toEqual(writes);
    expect(this.desk.content()).toEqual(this.peer.content());
    const there = new Set([...this.peer.rows.values()].flatMap((cells) => Object.values(cells)));
    const saved = this.desk.conflictTexts().join('\n');
    const lost = [...this.typed].filter(
      (value) => !there.has(value) && !this.takenAway.has(value) && !saved.includes(`"${value}"`),
    );
    expect(lost, 'values that vanished').toEqual([]);
    for (const value of this.typedWithoutKey) {
      const rows = [...this.peer.rows.values()].filter((cells) => Object.values(cells).includes(value));
      expect(rows.length, 'a new row is added once').toBeLessThan(2);
    }
    await this.desk.table.close();
  }

  #new(): string {
    const value = `v${this.typed.size}.`;
    this.typed.add(value);
    return value;
  }

  #takeAway(cells: Cells): void {
    for (const value of Object.values(filled(cells))) this.takenAway.add(value);
  }

  #save(rows: readonly Cells[], { how }: Edit): void {
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const whole = rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column] ?? ''])));
    this.desk.edit(() => whole, how as 'in place' | 'whole');
  }
}

describe('a two-way table', () => {
  test('both sides end equal and nothing that was typed vanishes, whatever is edited and wherever runs are cut short', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.array(actionArbitrary, { minLength: 1, maxLength: 25 }),
        async (deletes, actions) => {
          const world = new World(deletes);
          await world.desk.settled();
          for (const action of actions) {
            if ('edit' in action) world.edit(action.edit);
            else if ('change' in action) world.change(action.change);
            else await world.run(action.run);
          }
          await world.check();
        },
      ),
      { numRuns: Number(process.env.PEERSYNC_TEST_RUNS ?? 60) },
    );
  }, 120_000);
});
