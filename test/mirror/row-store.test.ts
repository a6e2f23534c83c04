import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareByCodePoint } from '../../src/lib/text.js';
import { RowStore, type RowStoreOptions } from '../../src/mirror/row-store.js';
import type { TableRow } from '../../src/peer/table.js';
import { row } from '../support/fake-peer.js';
import { openBelow } from '../support/mirror-world.js';
import { Random } from '../support/random.js';
import { temporaryDirectory } from '../support/temp.js';
import { allRows, anyTable, groups, plain, wellFormed } from './any-table.js';

type Options = Partial<RowStoreOptions>;

const fill = (rows: AsyncIterable<readonly TableRow[]>, options: Options = {}) =>
  RowStore.fill(rows, { directory: temporaryDirectory(), name: 'prices', ...options });

async function ordered(rows: readonly TableRow[], options: Options = {}): Promise<TableRow[]> {
  const store = await fill(groups(rows, 7), options);
  try {
    return await allRows(store.read());
  } finally {
    await store.close();
  }
}

const keys = (rows: readonly TableRow[]) => rows.map(({ pk }) => pk);

describe('rows that are stored on disk', () => {
  it('come back with any content, by key in the order of UTF-8', async () => {
    const directory = temporaryDirectory();
    await fc.assert(
      fc.asyncProperty(anyTable, async ({ columns, rows: some }) => {
        // The peer client lets nothing else in.
        const rows = some.map(({ pk, cells }) => ({ pk: wellFormed(pk), cells }));
        const back = await ordered(rows, { directory });
        const expected = rows.toSorted((a, b) =>
          Buffer.compare(Buffer.from(a.pk), Buffer.from(b.pk)),
        );
        expect(plain({ columns, rows: back })).toEqual(plain({ columns, rows: expected }));
      }),
      { numRuns: 200 },
    );
    const awkward = ['\uffff', '🎉', 'z', 'é', '\ue000', 'Z', ''].map((pk) => row(pk));
    expect(keys(await ordered(awkward))).toEqual(['', 'Z', 'z', 'é', '\ue000', '\uffff', '🎉']);
  });

  it('are sorted by columns as text if wanted, and by key if those are equal', async () => {
    const cells = Object.entries({ 3: 'x', 1: 'y', 2: 'x', 0: '10', 9: '' }).reverse();
    const rows = cells.map(([pk, a]) => row(pk, { a }));
    for (const [sortBy, expected] of [
      [['a'], '90231'],
      [['none', 'a'], '90231'],
      [['pk', 'a'], '01239'],
    ] as const)
      expect(keys(await ordered(rows, { sortBy })).join('')).toBe(expected);
  });

  it('leave nothing in the directory, not even while they are stored, and can be read again', async () => {
    const directory = temporaryDirectory();
    const store = await fill(groups(['b', 'a'].map((pk) => row(pk))), { directory });
    for (let i = 0; i < 2; i += 1) expect(keys(await allRows(store.read()))).toEqual(['a', 'b']);
    expect(readdirSync(directory)).toEqual([]);
    await store.close();
  });

  it('have cells of any size, and all columns in the order of appearance', async () => {
    const text = 'a\n🎉'.repeat(50_000);
    const rows = [row('b', { text, empty: '' }), row('c', { '7': 'x' }), row('a', { text })];
    const store = await fill(groups(rows));
    expect(store.columns).toEqual(['text', 'empty', '7']);
    const cells = (await allRows(store.read())).map(({ pk, cells }) => [
      pk,
      cells.get('text')?.length,
    ]);
    expect(cells).toEqual([
      ['a', text.length],
      ['b', text.length],
      ['c', undefined],
    ]);
    await store.close();
  });

  it('are sorted the same in one merge or several, rows of the same key in the order of arrival', async () => {
    const random = new Random(7);
    const rows = Array.from({ length: 20_000 }, (_, i) =>
      row(`key ${random.between(0, 5000)}`, { n: `${i}`, text: 'x'.repeat(random.between(0, 60)) }),
    );
    const numbers = (all: readonly TableRow[]) => all.map(({ cells }) => cells.get('n'));
    const expected = numbers(rows.toSorted((a, b) => compareByCodePoint(a.pk, b.pk)));
    expect(numbers(await ordered(rows))).toEqual(expected);
  });
});

describe('rows that cannot be stored', () => {
  it('are refused if there are too many columns', async () => {
    const wide = async function* () {
      for (let i = 0; ; i += 1) yield [row(`${i}`, { [`column ${i}`]: 'x' })];
    };
    const message = 'prices has more than 16384 columns.';
    await expect(fill(wide())).rejects.toMatchObject({ code: 'MIRROR_TOO_WIDE', message });
  });

  it('end with the error of the peer or of the signal', async () => {
    const torn = async function* () {
      yield [row('1')];
      throw new Error('torn');
    };
    const directory = temporaryDirectory();
    await expect(fill(torn(), { directory })).rejects.toThrow('torn');
    expect(openBelow(directory)).toEqual([]);
    const controller = new AbortController();
    const store = await fill(groups([row('2'), row('1')]), { signal: controller.signal });
    controller.abort(new Error('stop'));
    await expect(allRows(store.read())).rejects.toThrow('stop');
    await store.close();
  });
});
