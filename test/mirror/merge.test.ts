import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { absorb, type Grid, merge, withKeys } from '../../src/mirror/two-way/merge.js';

type Rows = Record<string, Record<string, string>>;

function grid(rows: Rows, columns: readonly string[] = ['a', 'b']): Grid {
  const entries = Object.entries(rows).map(([pk, cells]) => [pk, new Map(Object.entries(cells))] as const);
  return { columns, rows: new Map(entries) };
}

/** The merge, with the cells to be set as plain objects. */
async function merged(base: Rows | undefined, peer: Rows, mine: Rows, deletes = true) {
  const { set, ...rest } = await merge(base && grid(base), grid(peer), grid(mine), { deletes });
  return { ...rest, set: Object.fromEntries(set.map(({ pk, cells }) => [pk, Object.fromEntries(cells)])) };
}

const nothing = { set: {}, deletes: [], conflicts: [], returned: [] };

describe('a three-way merge of tables', () => {
  test.each<[string, Rows | undefined, Rows, Rows, Partial<Awaited<ReturnType<typeof merged>>>]>([
    [
      'a cell changed in the file is told',
      { k: { a: '1', b: '2' } },
      { k: { a: '1', b: '2' } },
      { k: { a: '1', b: 'x' } },
      { set: { k: { b: 'x' } } },
    ],
    ['a cell changed in the peer is not', { k: { a: '1' } }, { k: { a: '2' } }, { k: { a: '1' } }, {}],
    [
      'cells of one row changed on either side do not clash',
      { k: { a: '1', b: '2' } },
      { k: { a: 'p', b: '2' } },
      { k: { a: '1', b: 'm' } },
      { set: { k: { b: 'm' } } },
    ],
    ['equal changes are no changes', { k: { a: '1' } }, { k: { a: '2' } }, { k: { a: '2' } }, {}],
    [
      'different changes of a cell clash',
      { k: { a: '1' } },
      { k: { a: 'p' } },
      { k: { a: 'm' } },
      { conflicts: [{ pk: 'k', column: 'a' }] },
    ],
    [
      'a cleared cell is told as an empty one',
      { k: { a: '1' } },
      { k: { a: '1' } },
      { k: {} },
      { set: { k: { a: '' } } },
    ],
    ['an absent cell is as good as an empty one', { k: { a: '' } }, { k: {} }, { k: { a: '', b: '' } }, {}],
    ['a new row is told', {}, {}, { k: { a: '1', b: '' } }, { set: { k: { a: '1' } } }],
    [
      'a new row without anything in it is told by an empty cell',
      {},
      {},
      { k: {} },
      { set: { k: { a: '' } } },
    ],
    ['a new row that the peer has just so is not told', {}, { k: { a: '1' } }, { k: { a: '1' } }, {}],
    [
      'rows of the same new key are not mixed',
      {},
      { k: { a: 'p' } },
      { k: { a: 'm', b: 'm' } },
      {
        conflicts: [
          { pk: 'k', column: 'a' },
          { pk: 'k', column: 'b' },
        ],
      },
    ],
    ['a row removed from the file is deleted', { k: { a: '1' } }, { k: { a: '1' } }, {}, { deletes: ['k'] }],
    [
      'a row removed from the file but changed in the peer clashes',
      { k: { a: '1' } },
      { k: { a: '2' } },
      {},
      { conflicts: [{ pk: 'k' }] },
    ],
    [
      'so it does where the change is in a column that the file does not have',
      { k: { a: '1' } },
      { k: { a: '1', hidden: '2' } },
      {},
      { conflicts: [{ pk: 'k' }] },
    ],
    ['a row removed on both sides is gone', { k: { a: '1' } }, {}, {}, {}],
    ['a row removed in the peer leaves the file', { k: { a: '1' } }, {}, { k: { a: '1' } }, {}],
    [
      'a row removed in the peer but changed in the file clashes',
      { k: { a: '1' } },
      {},
      { k: { a: '2' } },
      { conflicts: [{ pk: 'k' }] },
    ],
    [
      'without a base nothing is told, and differences clash',
      undefined,
      { k: { a: '1' }, p: { a: '1' } },
      { k: { a: '2' }, m: { a: '1' } },
      { conflicts: [{ pk: 'k', column: 'a' }, { pk: 'm' }] },
    ],
  ])('%s', async (_, base, peer, mine, expected) => {
    expect(await merged(base, peer, mine)).toEqual({ ...nothing, ...expected });
  });

  test('a row removed from the file comes back where deletions are off', async () => {
    const row = { k: { a: '1' } };
    expect(await merged(row, row, {}, false)).toEqual({ ...nothing, returned: ['k'] });
  });

  test('cells of columns that the file does not have are left alone', async () => {
    const sides = [
      grid({ k: { a: '1', x: '1' } }),
      grid({ k: { a: '1', x: '1' } }),
      grid({ k: { a: '2' } }),
    ] as const;
    const { set } = await merge(...sides, { deletes: true });
    expect(set).toEqual([{ pk: 'k', cells: new Map([['a', '2']]) }]);
  });

  test('once it was told, and the file follows, there is nothing more to tell', async () => {
    const rows = fc.dictionary(
      fc.constantFrom('k1', 'k2', '__proto__', 'k3'),
      fc.dictionary(fc.constantFrom('a', 'b', 'constructor'), fc.constantFrom('', '1', '2')),
    );
    await fc.assert(
      fc.asyncProperty(rows, rows, rows, fc.boolean(), async (base, peer, mine, deletes) => {
        const columns = ['a', 'b', 'constructor'];
        const before = grid(peer, columns);
        const plan = await merge(grid(base, columns), before, grid(mine, columns), { deletes });
        const told = new Map(before.rows);
        for (const { pk, cells } of plan.set) told.set(pk, new Map([...(told.get(pk) ?? []), ...cells]));
        for (const pk of plan.deletes) told.delete(pk);
        const after = { columns, rows: told };
        expect(await merge(after, after, after, { deletes })).toEqual({ ...nothing, set: [] });
        // Cut short before the file was written, the next run tells nothing twice.
        const again = await merge(grid(base, columns), after, grid(mine, columns), { deletes });
        expect({ set: again.set, deletes: again.deletes }).toEqual({ set: [], deletes: [] });
      }),
    );
  });
});

describe('the key of a new row', () => {
  const row = (cells: Record<string, string>) => ({ pk: '', cells: new Map(Object.entries(cells)) });
  const keys = async (rows: Parameters<typeof withKeys>[0], taken: readonly string[] = [], salt = 'salt') => [
    ...(await withKeys(rows, (pk) => taken.includes(pk), salt)).keys(),
  ];

  test('is twelve digits and letters, and the same each time', async () => {
    const [key] = await keys([row({ a: '1' })]);
    expect(key).toMatch(/^[0-9a-z]{12}$/);
    expect(await keys([row({ a: '1', b: '' })])).toEqual([key]);
    expect(await keys([row({ a: '1' })], [], 'other')).not.toEqual([key]);
    expect(await keys([row({ a: '2' })])).not.toEqual([key]);
  });

  test('differs among equal rows, and from those that were there before', async () => {
    const [first = '', second] = await keys([row({ a: '1' }), row({ a: '1' })]);
    expect(first).not.toBe(second);
    expect(await keys([row({ a: '1' })], [first])).toEqual([second]);
    const kept = { pk: first, cells: new Map([['a', '1']]) };
    expect(await keys([row({ a: '1' }), kept])).toEqual([first, second]);
  });

  test('is not given to a line in which nothing stands', async () => {
    expect(await keys([row({ a: '', b: '' }), row({})])).toEqual([]);
  });
});

test('no step of a merge of tens of thousands of rows holds anybody up', async () => {
  const cells = (i: number) => new Map([['a', `new ${i}`]]);
  const rows = Array.from({ length: 40_000 }, (_, i) => ({ pk: '', cells: cells(i) }));
  let turns = 0;
  const turn = setInterval(() => {
    turns += 1;
  }, 1);
  const keyed = await withKeys(rows, () => false, 'salt');
  const all = { columns: ['a'], rows: keyed };
  const sent = { set: [...keyed].map(([pk, cells]) => ({ pk, cells })), deletes: [] };
  const before = turns;
  expect((await absorb(all, sent, all)).done.set).toHaveLength(rows.length);
  clearInterval(turn);
  expect(before).toBeGreaterThan(5);
  expect(turns - before).toBeGreaterThan(2);
});
