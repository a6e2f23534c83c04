import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sameStat } from '../../src/lib/file.js';
import { Entries, LineStore } from '../../src/state/entries.js';
import type { Entry } from '../../src/state/entry.js';
import {
  decode,
  encode,
  isSkippedUnsent,
  plainItem,
  statusOf,
  type UrlBases,
  unchangedItem,
  workOf,
} from '../../src/state/line.js';
import { evidenceNote } from '../../src/state/line-layout.js';
import { accepted } from '../../src/state/transitions.js';
import { anyEntry, anyFolder } from './arbitrary.js';
import { lifeOf, pendingRecord, sentOf } from './records.js';

describe('a record as a line of text', () => {
  it('decodes to the record that was encoded, to the last digit', () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        const bases: UrlBases = [];
        const line = encode(entry, bases);
        expect(decode(line, entry.folder, entry.path, bases)).toStrictEqual(entry);
        expect(statusOf(line)).toBe(entry.status);
        expect(isSkippedUnsent(line)).toBe(entry.status === 'skipped' && entry.sent === undefined);
      }),
      { numRuns: 1_000 },
    );
  });

  it('shows an item with an unchanged file, and its work, without being decoded', () => {
    const anyStat = anyEntry.map(({ version }) => version);
    fc.assert(
      fc.property(anyEntry, anyStat, (entry, other) => {
        const bases: UrlBases = [];
        const line = encode(entry, bases);
        const isLive = ['pending', 'accepted', 'confirmed'].includes(entry.status);
        const { version } = entry;
        const encoding = 'encoding' in version ? version.encoding : undefined;
        const shown = isLive ? { base: 0, encoding } : undefined;
        expect(unchangedItem(line, version)).toEqual(shown);
        expect(unchangedItem(line, other)).toEqual(sameStat(version, other) ? shown : undefined);
        expect(unchangedItem(line, { ...version, ino: version.ino + 1 })).toBeUndefined();
        const history = withoutEvidence(entry);
        const { status, since } = entry;
        expect(workOf(line, bases)).toEqual(
          'collection' in entry
            ? { status, since, collection: entry.collection, history }
            : undefined,
        );
      }),
      { numRuns: 1_000 },
    );
  });

  it('shows what a list has of a plain item without being decoded, and of any other nothing', () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        const bases: UrlBases = [];
        const plain = plainItem(encode(entry, bases), entry.path, bases);
        if (plain === undefined) return;
        expect(['pending', 'accepted', 'confirmed']).toContain(entry.status);
        const { since, status, version } = entry;
        const sha256 = 'sha256' in version ? version.sha256 : undefined;
        const url = 'url' in entry ? entry.url : undefined;
        expect(plain).toEqual({ status, since, size: version.size, sha256, url });
        expect('attempts' in entry && entry.attempts).toBe(0);
        expect(entry.failure).toBeUndefined();
      }),
      { numRuns: 1_000 },
    );
    for (const entry of lifeOf(pendingRecord('a b/ü.txt'))) {
      const bases: UrlBases = [];
      expect(plainItem(encode(entry, bases), entry.path, bases)?.status).toBe(entry.status);
    }
  });

  it('takes at most 200 characters for a confirmed file, wherever that is', () => {
    const bases: UrlBases = [];
    const [, , confirmed] = lifeOf(
      pendingRecord('some/directory/with/ümläuten and other/things/a file.txt'),
    );
    expect(encode(confirmed, bases).length).toBeLessThanOrEqual(200);
    expect(encode(confirmed, bases)).not.toContain('example.org');
    expect(bases).toHaveLength(1);
  });
});

it('a line of a document from before its pages were counted is read', () => {
  const bases: UrlBases = [];
  const item = pendingRecord('a.pdf');
  const sent = { ...sentOf(item), extracted: { reader: 'PDF', words: 12 } };
  const taken = accepted(item, sent, item.since + 3_000);
  const line = encode(taken, bases);
  expect(line).toContain('"PDF",12]');
  expect(decode(line, 'inbox', 'a.pdf', bases)).toStrictEqual(taken);
  const extracted = { reader: 'PDF', words: 12, ms: 80, pages: 3 };
  const now = accepted(item, { ...sent, extracted }, item.since + 3_000);
  expect(encode(now, bases)).toBe(line.replace('"PDF",12]', '"PDF",12,null,[80,3]]'));
});

/** Returns the history of a record without the note that follows from its evidence. */
function withoutEvidence(entry: Entry): Entry['history'] {
  if (entry.status !== 'confirmed') return entry.history;
  const known = evidenceNote(entry.evidence);
  return entry.history.map(({ at, note, status }) =>
    note === known || note === undefined ? { at, status } : { at, note, status },
  );
}

it('lines outside the heap reuse the slots of removed ones', () => {
  const store = new LineStore();
  const taken = () => process.memoryUsage().arrayBuffers;
  const before = taken();
  for (let i = 0; i < 500_000; i += 1) {
    const at = store.put('confirmed'.repeat(16), 0, store.put('pending'.repeat(15), 48));
    store.remove(store.put('quarantined'.repeat(20 + (i % 20)), 0, at));
  }
  expect(taken() - before).toBeLessThan(8 * 1024 * 1024);
});

const named = (entries: Iterable<Entry>) =>
  [...entries].map(({ folder, path, since }) => `${folder} ${path} ${since}`).sort();

function countsOf(entries: readonly Entry[]): Record<string, number> {
  const counts = {
    pending: 0,
    accepted: 0,
    confirmed: 0,
    quarantined: 0,
    gone: 0,
    skipped: 0,
    removing: 0,
    removed: 0,
  };
  for (const { status } of entries) counts[status] += 1;
  return counts;
}

/**
 * Expects the queries below each directory to agree with a plain list.
 *
 * @param own all records of the folder
 */
function expectBelow(
  entries: Entries,
  own: readonly Entry[],
  folder: string,
  directory: string,
): void {
  const prefix = directory === '' ? '' : `${directory}/`;
  const below = own.filter(({ path }) => path.startsWith(prefix));
  expect(named(entries.underDirectory(folder, directory))).toEqual(named(below));
  const rests = below.map(({ path }) => path.slice(prefix.length).split('/'));
  const files = rests.flatMap(([first, second]) => (second === undefined ? (first ?? []) : []));
  const directories = rests.flatMap(([first, second]) =>
    second === undefined ? [] : (first ?? []),
  );
  expect([...entries.names(folder, directory)].sort()).toEqual(files.sort());
  expect([...entries.knownDirectories(folder, directory)].sort()).toEqual(
    [...new Set(directories)].sort(),
  );
}

describe('the records in memory', () => {
  const path = fc
    .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 })
    .map((names) => names.join('/'));
  /** Lines of few lengths, so that they reuse each other's slots. */
  const notes = fc.constantFrom('', '.'.repeat(20), 'ü'.repeat(76));
  const noted = fc.tuple(anyEntry, notes).map(([entry, note]) => {
    return { ...entry, history: [{ status: entry.status, at: entry.since, note }] } as Entry;
  });
  /** A record to put; without one, the existing record is removed. */
  const entry = fc.option(fc.oneof(anyEntry, noted), { nil: undefined });
  const step = fc.record({ entry, folder: anyFolder, path });

  it('answer queries as a plain list would, after any puts and removals', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const entries = new Entries();
        const list = new Map<string, Entry>();
        for (const { entry, folder, path } of steps) {
          const key = `${folder} ${path}`;
          const placed = entry && ({ ...entry, folder, path } as Entry);
          if (placed === undefined)
            expect(entries.delete(folder, path) !== undefined).toBe(list.delete(key));
          else entries.put(placed);
          if (placed !== undefined) list.set(key, placed);
          expect(entries.get(folder, path)).toEqual(placed);
        }
        const all = [...list.values()];
        for (const entry of all) expect(entries.get(entry.folder, entry.path)).toEqual(entry);
        expect(entries.size).toBe(all.length);
        expect(named(entries.all())).toEqual(named(all));
        expect(entries.counts()).toEqual(countsOf(all));
        const quarantined = all.filter(({ status }) => status === 'quarantined');
        expect(named(entries.quarantined())).toEqual(named(quarantined));
        for (const item of entries.quarantined())
          expect(entries.get(item.folder, item.path)).toEqual(item);
        expect([...entries.folders()].sort()).toEqual(
          [...new Set(all.map((e) => e.folder))].sort(),
        );
        for (const folder of new Set(steps.map((s) => s.folder))) {
          const own = all.filter((e) => e.folder === folder);
          expect(named(entries.all(folder))).toEqual(named(own));
          expect(entries.counts(folder)).toEqual(countsOf(own));
          for (const directory of ['', 'a', 'b', 'a/b', 'ab', 'a/a/a', 'no'])
            expectBelow(entries, own, folder, directory);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('may be larger than a slab', () => {
    const entries = new Entries();
    const large = { ...pendingRecord('c'), url: 'large'.repeat(250_000) };
    const all = [pendingRecord('a'), large, pendingRecord('b')];
    for (const entry of all) entries.put(entry);
    expect([...entries.all()]).toEqual(all);
  });

  it('can be iterated while they change', () => {
    const entries = new Entries();
    for (let i = 0; i < 100; i += 1) entries.put(pendingRecord(`d${i % 10}/${i}`));
    const seen = new Set<string>();
    for (const entry of entries.all()) {
      seen.add(entry.path);
      entries.put({ ...entry, attempts: 1 } as Entry);
      if (seen.size === 50)
        for (let i = 0; i < 100; i += 2) entries.delete('inbox', `d${i % 10}/${i}`);
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

  it('come in slices that let the event loop run, each record in its latest version', async () => {
    const entries = new Entries();
    for (let i = 0; i < 5_000; i += 1) entries.put(pendingRecord(`d${i % 10}/${i}`));
    entries.put(lifeOf(pendingRecord('d3/confirmed'))[2]);
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
    let below = 0;
    for await (const slice of entries.slices({ folder: 'inbox', directory: 'd3' }))
      below += [...slice].length;
    expect(below).toBe(501);
  });
});
