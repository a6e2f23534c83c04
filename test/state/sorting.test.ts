import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Entries } from '../../src/state/entries.js';
import type { EntriesReader } from '../../src/state/entries-reader.js';
import type { Entry } from '../../src/state/entry.js';
import { sortedLines } from '../../src/state/sorting.js';
import { State } from '../../src/state/state.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { pendingRecord } from './records.js';

interface Asked {
  readonly folder?: string;
  readonly status?: Entry['status'];
}

async function listed(entries: EntriesReader, asked: Asked = {}): Promise<string[]> {
  const names: string[] = [];
  for await (const slice of sortedLines(entries, asked))
    for (const { folder, path } of slice) names.push(`${folder}/${path}`);
  return names;
}

function entriesOf(paths: Iterable<string>, folder = 'inbox'): Entries {
  const entries = new Entries();
  for (const path of paths) entries.put({ ...pendingRecord(path), folder });
  return entries;
}

describe('a sorted list', () => {
  it('is ordered by whole paths, whatever their characters', async () => {
    const name = fc.constantFrom('a', 'b', 'a.txt', 'a-1', 'A', 'ä', '10', '9', ' ');
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'));
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(path, { maxLength: 40 }), async (paths) => {
        expect(await listed(entriesOf(paths))).toEqual(paths.map((each) => `inbox/${each}`).sort());
      }),
    );
  });

  it('orders folders by name, and can be limited to one status', async () => {
    const entries = entriesOf(['b', 'a/c', 'a/b'], 'z');
    for (const path of ['2', '1']) entries.put({ ...pendingRecord(path), folder: 'y' });
    const { failure: _, ...item } = pendingRecord('a/b');
    entries.put({ ...item, folder: 'z', status: 'gone' });
    expect(await listed(entries)).toEqual(['y/1', 'y/2', 'z/a/b', 'z/a/c', 'z/b']);
    expect(await listed(entries, { folder: 'z', status: 'pending' })).toEqual(['z/a/c', 'z/b']);
    expect(await listed(entries, { status: 'gone' })).toEqual(['z/a/b']);
    expect(await listed(entries, { folder: 'none' })).toEqual([]);
  });

  it('is ordered with very many files in one directory, and lets the event loop run meanwhile', async () => {
    const paths = Array.from({ length: 30_000 }, (_, i) => `d/${(i * 7_919) % 30_000}`);
    const entries = entriesOf(paths);
    let turns = 0;
    let isDone = false;
    const turn = () => {
      turns += 1;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    const found = await listed(entries);
    isDone = true;
    expect(found).toEqual(paths.map((path) => `inbox/${path}`).sort());
    expect(turns).toBeGreaterThan(60);
  });

  it('includes records that exist only on disk, and omits those that are not on disk yet', async () => {
    const options = { clock: systemClock, log: silentLogger };
    const state = await State.open(temporaryDirectory(), options);
    afterwards('test', () => state.close());
    for (const path of ['a', 'b/1', 'b/2', 'c', 'z']) state.put(pendingRecord(path));
    await state.commit();
    for (const path of ['a', 'b/1', 'b/2', 'z']) state.remove('inbox', path);
    state.put(pendingRecord('b/0'));
    state.put(pendingRecord('z'));
    expect(await listed(state.committed.entries)).toEqual(
      ['a', 'b/1', 'b/2', 'c', 'z'].map((p) => `inbox/${p}`),
    );
    expect(await listed(state.entries)).toEqual(['inbox/b/0', 'inbox/c', 'inbox/z']);
  });
});
