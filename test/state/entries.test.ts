import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Entries } from '../../src/state/entries.js';
import type { Entry } from '../../src/state/entry.js';
import { quarantined } from '../../src/state/entry.js';
import { anyEntry, anyFolder } from './arbitrary.js';
import { pendingRecord } from './records.js';

const shortPath = fc
  .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 })
  .map((names) => names.join('/'));
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ entry: anyEntry, folder: anyFolder, path: shortPath }) },
  { weight: 2, arbitrary: fc.record({ folder: anyFolder, path: shortPath }) },
);

function named(entries: Iterable<Entry>): string[] {
  return [...entries].map(({ folder, path, since }) => `${folder} ${path} ${since}`).sort();
}

function countsOf(entries: readonly Entry[]): Record<string, number> {
  const counts: Record<string, number> = {
    pending: 0,
    accepted: 0,
    confirmed: 0,
    quarantined: 0,
    gone: 0,
    passed: 0,
  };
  for (const { status } of entries) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

const isQuarantined = ({ status }: Entry) => status === 'quarantined';

describe('the records in memory', () => {
  it('answer as a plain list of them would, whatever is put and removed', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const entries = new Entries();
        const list = new Map<string, Entry>();
        for (const { folder, path, ...rest } of steps) {
          const key = `${folder} ${path}`;
          if ('entry' in rest) {
            const entry = { ...rest.entry, folder, path } as Entry;
            entries.put(entry);
            list.set(key, entry);
          } else {
            expect(entries.delete(folder, path) !== undefined).toBe(list.has(key));
            list.delete(key);
          }
          expect(entries.get(folder, path)).toEqual(list.get(key));
        }
        const all = [...list.values()];
        expect(entries.size).toBe(all.length);
        expect(named(entries.all())).toEqual(named(all));
        expect(entries.counts()).toEqual(countsOf(all));
        expect(named(entries.quarantined())).toEqual(named(all.filter(isQuarantined)));
        for (const entry of entries.quarantined())
          expect(entries.get(entry.folder, entry.path)).toEqual(entry);
        expect([...entries.folders()].sort()).toEqual([...new Set(all.map((e) => e.folder))].sort());
        for (const folder of new Set(steps.map((s) => s.folder))) {
          const own = all.filter((e) => e.folder === folder);
          expect(named(entries.all(folder))).toEqual(named(own));
          expect(entries.counts(folder)).toEqual(countsOf(own));
          for (const directory of ['', 'a', 'b', 'a/b', 'ab', 'a/a/a', 'no']) {
            const prefix = directory === '' ? '' : `${directory}/`;
            const below = own.filter((e) => e.path.startsWith(prefix));
            expect(named(entries.underDirectory(folder, directory))).toEqual(named(below));
            const rests = below.map((e) => e.path.slice(prefix.length).split('/'));
            const direct = below.filter((_, i) => rests[i]?.length === 1);
            expect([...entries.names(folder, directory)].sort()).toEqual(
              direct.map((e) => e.path.slice(prefix.length)).sort(),
            );
            const directories = new Set(rests.filter((r) => r.length > 1).map((r) => r[0]));
            expect([...entries.knownDirectories(folder, directory)].sort()).toEqual([...directories].sort());
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('know which are quarantined, and no more once they are not', () => {
    const entries = new Entries();
    const item = pendingRecord('a.txt');
    const trouble = { code: 'NO', message: 'No.', hint: 'Wait.' };
    const given = quarantined(item, item, item.version, trouble, 1);
    entries.put(given);
    entries.put({ ...given, since: 2 });
    expect([...entries.quarantined()]).toEqual([{ ...given, since: 2 }]);
    entries.put(item);
    expect([...entries.quarantined()]).toEqual([]);
    entries.put(given);
    entries.delete('inbox', 'a.txt');
    expect([...entries.quarantined()]).toEqual([]);
  });

  it('can be followed while they change', () => {
    const entries = new Entries();
    for (let i = 0; i < 100; i += 1) entries.put(pendingRecord(`d${i % 10}/${i}`));
    const seen = new Set<string>();
    for (const entry of entries.all()) {
      seen.add(entry.path);
      entries.put({ ...entry, attempts: 1 } as Entry);
      if (seen.size === 50) for (let i = 0; i < 100; i += 2) entries.delete('inbox', `d${i % 10}/${i}`);
    }
    for (let i = 1; i < 100; i += 2) expect(seen).toContain(`d${i % 10}/${i}`);
    expect(entries.size).toBe(50);
  });

  it('have a directory of 200 levels like any other', () => {
    const entries = new Entries();
    const deep = Array.from({ length: 200 }, () => 'd').join('/');
    entries.put(pendingRecord(`${deep}/file`));
    expect([...entries.underDirectory('inbox', '')]).toHaveLength(1);
    expect([...entries.knownDirectories('inbox', deep.slice(0, -2))]).toEqual(['d']);
    entries.delete('inbox', `${deep}/file`);
    expect([...entries.knownDirectories('inbox', '')]).toEqual([]);
  });

  it('come in slices between which others get their turn, each as it is by then', async () => {
    const entries = new Entries();
    for (let i = 0; i < 5_000; i += 1) entries.put(pendingRecord(`d${i % 10}/${i}`));
    const item = pendingRecord('d3/quarantined');
    entries.put(quarantined(item, item, item.version, { code: 'NO', message: 'No.', hint: 'Wait.' }, 1));
    let turns = 0;
    const turn = () => {
      turns += 1;
      ticking = setImmediate(turn);
    };
    let ticking = setImmediate(turn);
    const seen: Entry[] = [];
    for await (const slice of entries.slices({ folder: 'inbox', status: ['pending'] })) {
      for (const entry of slice) {
        if (seen.length === 0) entries.put({ ...pendingRecord('d9/4999'), attempts: 7 });
        seen.push(entry);
      }
    }
    clearImmediate(ticking);
    expect(turns).toBeGreaterThanOrEqual(5);
    expect(seen).toHaveLength(5_000);
    expect(seen.find(({ path }) => path === 'd9/4999')).toMatchObject({ attempts: 7 });
    const below: string[] = [];
    for await (const slice of entries.slices({ folder: 'inbox', directory: 'd3' }))
      for (const { path } of slice) below.push(path);
    expect(below).toHaveLength(501);
  });
});
