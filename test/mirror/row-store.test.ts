import { existsSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareByCodePoint } from '../../src/lib/text.js';
import { RowStore, type RowStoreOptions } from '../../src/mirror/row-store.js';
import type { TableRow } from '../../src/peer/table.js';
import { Random } from '../support/random.js';
import { temporaryDirectory } from '../support/temp.js';
import { allRows, anyTable, groups, plain, wellFormed } from './tables.js';

function row(pk: string, cells: Record<string, string> = {}): TableRow {
  return { pk, cells: new Map(Object.entries(cells)) };
}

async function ordered(
  rows: readonly TableRow[],
  options: Partial<RowStoreOptions> = {},
): Promise<TableRow[]> {
  const store = await RowStore.fill(groups(rows, 7), {
    directory: temporaryDirectory(),
    name: 'T',
    ...options,
  });
  try {
    return await allRows(store.read());
  } finally {
    await store.close();
  }
}

describe('rows that wait on disk', () => {
  it('come back as they were, by key in the order of UTF-8, whatever is in them', async () => {
    const directory = temporaryDirectory();
    await fc.assert(
      fc.asyncProperty(anyTable, async ({ columns, rows: some }) => {
        // The peer client lets nothing else in.
        const rows = some.map(({ pk, cells }) => ({ pk: wellFormed(pk), cells }));
        const back = await ordered(rows, { directory });
        const expected = rows.toSorted((a, b) => Buffer.compare(Buffer.from(a.pk), Buffer.from(b.pk)));
        expect(plain({ columns, rows: back })).toEqual(plain({ columns, rows: expected }));
      }),
      { numRuns: 200 },
    );
  });

  it('tell all their columns in the order in which they came up, also those that are always empty', async () => {
    const rows = [row('1', { b: 'x' }), row('2', { '7': '', b: 'y' }), row('3', { a: 'z', __proto__: '' })];
    const store = await RowStore.fill(groups(rows), { directory: temporaryDirectory(), name: 'T' });
    expect(store.columns).toEqual(['b', '7', 'a']);
    expect(store.rows).toBe(3);
    await store.close();
  });

  it('may be none', async () => {
    expect(await ordered([])).toEqual([]);
  });

  it('put what is beyond U+FFFF last, as the bytes of UTF-8 do', async () => {
    const keys = ['\uffff', '🎉', 'z', 'é', '\ue000', 'Z', ''];
    const back = await ordered(keys.map((pk) => row(pk)));
    expect(back.map(({ pk }) => pk)).toEqual(['', 'Z', 'z', 'é', '\ue000', '\uffff', '🎉']);
  });

  it('of the same key all stay, in the order in which they came', async () => {
    const rows = ['b', 'a', 'b', 'a', 'b'].map((pk, i) => row(pk, { n: `${i}` }));
    const texts = (await ordered(rows)).map(({ pk, cells }) => `${pk}${cells.get('n')}`);
    expect(texts).toEqual(['a1', 'a3', 'b0', 'b2', 'b4']);
  });

  it('are sorted by columns as text where asked, and by key where those are the same', async () => {
    const rows = [
      row('3', { a: 'x' }),
      row('1', { a: 'y' }),
      row('2', { a: 'x' }),
      row('0', { a: '10' }),
      row('9'),
    ];
    const keys = async (sortBy: string[]) => (await ordered(rows, { sortBy })).map(({ pk }) => pk).join('');
    expect(await keys(['a'])).toBe('90231');
    expect(await keys(['none', 'a'])).toBe('90231');
    expect(await keys(['pk', 'a'])).toBe('01239');
  });

  it('can be read again, and both at once', async () => {
    const rows = ['b', 'c', 'a'].map((pk) => row(pk));
    const directory = temporaryDirectory();
    const store = await RowStore.fill(groups(rows), { directory, name: 'T' });
    const [one, other] = await Promise.all([allRows(store.read()), allRows(store.read())]);
    expect(one).toEqual(other);
    expect(await allRows(store.read())).toEqual(one);
    await store.close();
    await store.close();
    expect(openBelow(directory)).toEqual([]);
  });

  it('are sorted the same when they do not fit in memory, in one merge or several', async () => {
    const random = new Random(7);
    const rows = Array.from({ length: 20_000 }, (_, i) =>
      row(`key ${random.between(0, 5000)}`, { n: `${i}`, text: 'x'.repeat(random.between(0, 60)) }),
    );
    const expected = rows
      .toSorted((a, b) => compareByCodePoint(a.pk, b.pk))
      .map(({ cells }) => cells.get('n'));
    for (const budget of [100, 300_000, 1e9]) {
      const back = await ordered(rows, { budget });
      expect(back.map(({ cells }) => cells.get('n'))).toEqual(expected);
    }
  });

  it('hold cells of any size', async () => {
    const large = ['b', 'c', 'a'].map((pk) => row(pk, { text: `${pk}\n🎉`.repeat(500_000) }));
    const back = await ordered(large);
    expect(back.map(({ pk }) => pk)).toEqual(['a', 'b', 'c']);
    // A difference of megabytes would take minutes to be shown.
    for (const { pk, cells } of back) expect(cells.get('text') === `${pk}\n🎉`.repeat(500_000)).toBe(true);
  });

  it('leave nothing in the directory, not even while they wait', async () => {
    const directory = join(temporaryDirectory(), 'made');
    const store = await RowStore.fill(groups([row('b'), row('a')]), { directory, name: 'T' });
    expect(readdirSync(directory)).toEqual([]);
    await allRows(store.read());
    expect(readdirSync(directory)).toEqual([]);
    await store.close();
  });
});

describe('rows that cannot wait', () => {
  it('because there are too many columns are refused', async () => {
    const wide = async function* () {
      for (let i = 0; ; i += 1) yield [row(`${i}`, { [`column ${i}`]: 'x' })];
    };
    const fill = RowStore.fill(wide(), { directory: temporaryDirectory(), name: 'prices' });
    await expect(fill).rejects.toMatchObject({
      code: 'MIRROR_TOO_WIDE',
      message: 'prices has more than 16384 columns.',
    });
  });

  it('because the directory is none are told as that', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    mkdirSync(`${file}.d`);
    for (const directory of [file, join(file, 'x')]) {
      await expect(ordered([row('1')], { directory })).rejects.toMatchObject({ code: 'MIRROR_BLOCKED' });
    }
  });

  it('because the peer breaks off, or it is called off, end with that', async () => {
    const torn = async function* () {
      yield [row('1')];
      throw new Error('torn');
    };
    const options = { directory: temporaryDirectory(), name: 'T' };
    await expect(RowStore.fill(torn(), options)).rejects.toThrow('torn');
    const controller = new AbortController();
    const store = await RowStore.fill(groups([row('2'), row('1')]), {
      ...options,
      signal: controller.signal,
    });
    controller.abort(new Error('stop'));
    await expect(allRows(store.read())).rejects.toThrow('stop');
    await store.close();
  });
});

/** Files below a directory that this process has open, also those without a name; none where the system does not tell. */
function openBelow(directory: string): string[] {
  const descriptors = '/proc/self/fd';
  if (!existsSync(descriptors)) return [];
  return readdirSync(descriptors).flatMap((name) => {
    try {
      return [readlinkSync(join(descriptors, name))].filter((path) => path.startsWith(directory));
    } catch {
      return [];
    }
  });
}
