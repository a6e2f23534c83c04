import { describe, expect, it } from 'vitest';
import { EditAlarm } from '../../src/mirror/edit-alarms.js';
import type { Base, Last } from '../../src/mirror/edit-base.js';
import type { Intents } from '../../src/mirror/edit-intents.js';
import type { EditKnown } from '../../src/mirror/edit-table.js';
import { Telling } from '../../src/mirror/edit-telling.js';
import type { Grid } from '../../src/mirror/merge.js';
import { TableInMemory } from './edit-desk.js';

type Rows = Record<string, Record<string, string>>;

const NO_INTENTS: Intents = { set: [], deletes: [] };

function gridOf(rows: Rows): Grid {
  const columns = [...new Set(Object.values(rows).flatMap((cells) => Object.keys(cells)))];
  return {
    columns,
    rows: new Map(Object.entries(rows).map(([pk, cells]) => [pk, new Map(Object.entries(cells))])),
  };
}

function baseOf(rows: Rows): Base {
  const { columns } = gridOf(rows);
  return {
    ...{ id: 'id', salt: 'salt', file: 'sha of the base', shown: columns, columns, digest: 'digest' },
    grid: async () => gridOf(rows),
  };
}

function lastOf(rows: Rows, intents = NO_INTENTS, other?: Rows): Last {
  return { base: baseOf(rows), intents, ...(other === undefined ? {} : { other: baseOf(other) }) };
}

/** What a file, its base and a peer say, and what the peer is told then. */
function telling(settings: { deletes?: boolean; maxDeletes?: number } = {}) {
  const peer = new TableInMemory();
  const intended: Intents[] = [];
  const steps: string[] = [];
  const part = new Telling({
    peer,
    settings: { deletes: true, maxDeletes: 2, ...settings },
    bases: {
      intend: async (intents) => {
        expect(peer.calls, 'nothing was told before').toEqual([]);
        intended.push(intents);
      },
    },
    alarm: (code, detail) => new EditAlarm(code, { name: 'T', file: '/mirror/T.csv', detail }),
    onStep: (step) => void steps.push(step),
  });
  const tell = async (
    given: { readonly mine: Rows; readonly peer: Rows; readonly last?: Last | undefined },
    {
      known = {},
      accept = false,
      signal,
    }: { known?: EditKnown; accept?: boolean; signal?: AbortSignal } = {},
  ) => {
    const { columns, rows } = gridOf(given.mine);
    const mine = { columns, rows: [...rows].map(([pk, cells], i) => ({ pk, cells, line: i + 2 })) };
    for (const [pk, cells] of Object.entries(given.peer)) peer.rows.set(pk, { ...cells });
    const grid = gridOf(given.peer);
    const sides = { mine, peer: { columns: grid.columns, grid }, last: given.last, known };
    return await part.tell({ ...sides, read: { sha256: 'sha of the file' } }, accept, signal);
  };
  return { tell, peer, intended, steps };
}

const FOUR: Rows = { a: { n: '1' }, b: { n: '2' }, c: { n: '3' }, d: { n: '4' } };

describe('what the peer is told', () => {
  it('is what only the file changed, and is on disk before', async () => {
    const { tell, peer, intended, steps } = telling();
    const told = await tell({
      mine: { a: { n: '9' }, b: { n: '2' }, c: { n: '3' } },
      peer: { ...FOUR, b: { n: '7' } },
      last: lastOf(FOUR),
    });
    expect(peer.calls).toEqual(['set a {"n":"9"}', 'delete d']);
    expect(told).toEqual({ set: 1, deleted: 1, clashes: [], notes: [] });
    expect(intended).toEqual([{ set: [{ pk: 'a', cells: new Map([['n', '9']]) }], deletes: ['d'] }]);
    expect(steps[0]).toBe('the intents are kept');
  });

  it('is nothing where nothing of the file changed, and nothing is kept then', async () => {
    const { tell, peer, intended, steps } = telling();
    const told = await tell({ mine: FOUR, peer: { ...FOUR, a: { n: '9' } }, last: lastOf(FOUR) });
    expect(told).toEqual({ set: 0, deleted: 0, clashes: [], notes: [] });
    expect([peer.calls, intended, steps]).toEqual([[], [], []]);
  });

  it('is not what both changed differently', async () => {
    const { tell, peer } = telling();
    const told = await tell({
      mine: { ...FOUR, a: { n: 'mine' } },
      peer: { ...FOUR, a: { n: 'theirs' } },
      last: lastOf(FOUR),
    });
    expect(told.clashes).toEqual([{ pk: 'a', column: 'n' }]);
    expect(peer.calls).toEqual([]);
  });

  it('is what a person took back of an edit that a run before had told', async () => {
    const { tell, peer, intended } = telling();
    const earlier = { set: [{ pk: 'a', cells: new Map([['n', '9']]) }], deletes: [] };
    await tell({ mine: FOUR, peer: { ...FOUR, a: { n: '9' } }, last: lastOf(FOUR, earlier) });
    expect(peer.calls).toEqual(['set a {"n":"1"}']);
    expect(intended[0]?.set.map(({ cells }) => cells.get('n'))).toEqual(['9', '1']);
  });

  it('is only what holds for either base, where nobody knows which one was edited', async () => {
    const { tell, peer } = telling();
    await tell({
      mine: { a: { n: '9' }, b: { n: '9' } },
      peer: { a: { n: '1' }, b: { n: '2' } },
      last: lastOf({ a: { n: '1' }, b: { n: '2' } }, NO_INTENTS, { a: { n: '1' }, b: { n: '9' } }),
    });
    expect(peer.calls).toEqual(['set a {"n":"9"}']);
  });

  it('is nothing without a base: each difference is a clash, unless the file is as it was written', async () => {
    const { tell, peer } = telling();
    const sides = { mine: FOUR, peer: { ...FOUR, a: { n: '9' } }, last: undefined };
    expect((await tell(sides)).clashes).toEqual([{ pk: 'a', column: 'n' }]);
    expect((await tell(sides, { known: { sha256: 'sha of the file' } })).clashes).toEqual([]);
    expect(peer.calls).toEqual([]);
  });

  it('gives new rows a key of their own', async () => {
    const { tell, peer } = telling();
    expect(await tell({ mine: { ...FOUR, '': { n: '5' } }, peer: FOUR, last: lastOf(FOUR) })).toMatchObject({
      set: 1,
    });
    expect(peer.calls).toEqual([expect.stringMatching(/^set [0-9a-z]{12} \{"n":"5"\}$/)]);
  });

  it('comes in groups that are read back together, and ends between two of them when it is time to stop', async () => {
    const { tell, peer, steps } = telling();
    const rows = (n: string) =>
      Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`k${i}`, { n }] as const));
    const stopping = new AbortController();
    peer.onCall = (call) => {
      if (call.startsWith('set k1000 ')) stopping.abort(new Error('enough'));
    };
    const sides = { mine: rows('2'), peer: rows('1'), last: lastOf(rows('1')) };
    await expect(tell(sides, { signal: stopping.signal })).rejects.toThrow('enough');
    expect(steps.filter((step) => step === 'rows were committed')).toHaveLength(2);
    expect(peer.rows.get('k1999')).toEqual({ n: '2' });
    expect(peer.rows.get('k2000')).toEqual({ n: '1' });
  });
});

describe('rows that were removed from the file', () => {
  const sides = { mine: { a: { n: '1' } }, peer: FOUR, last: lastOf(FOUR) };

  it('come back where "deletes" is off, which is told', async () => {
    const { tell, peer } = telling({ deletes: false });
    const told = await tell(sides);
    expect(told).toMatchObject({ deleted: 0, notes: [expect.stringContaining('"b", "c", "d"')] });
    expect(peer.calls).toEqual([]);
  });

  it('are an alarm where they are too many, and nothing is told', async () => {
    const { tell, peer, intended } = telling();
    const mine = { a: { n: '9' } };
    await expect(tell({ ...sides, mine })).rejects.toMatchObject({ code: 'EDIT_DELETES' });
    expect([peer.calls, intended]).toEqual([[], []]);
  });

  it('are deleted when a person accepts that alarm, and not when it was about others', async () => {
    const { tell, peer } = telling();
    const alarm = await tell(sides).catch((error: EditAlarm) => error);
    if (!(alarm instanceof EditAlarm)) throw new Error('no alarm');
    const { code, message, hint } = alarm;
    const known = { alarm: { code, message, hint, since: 0 } };
    await expect(tell(sides, { known })).rejects.toMatchObject({ code: 'EDIT_DELETES' });
    const others = { ...sides, mine: { b: { n: '2' } } };
    await expect(tell(others, { known, accept: true })).rejects.toMatchObject({ code: 'EDIT_DELETES' });
    expect(peer.calls).toEqual([]);
    expect(await tell(sides, { known, accept: true })).toMatchObject({ deleted: 3 });
    expect(peer.calls).toEqual(['delete b', 'delete c', 'delete d']);
  });
});
