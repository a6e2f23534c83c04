import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { Entries } from '../../src/state/entries.js';
import type { Entry, PendingItem } from '../../src/state/entry.js';
import { Backlog } from '../../src/uplink/backlog.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { ReadyQueue } from '../../src/uplink/ready-queue.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/uplink-world.js';

const BACKOFF_MS = 300_000;
/** Limit of due items in memory, and of later ones. */
const MAX_IN_MEMORY = 100;

/** A backlog for these records. */
function setting(...records: Entry[]) {
  const clock = new FakeClock();
  const entries = new Entries();
  let gets = 0;
  const put = (entry: Entry) => void entries.put(entry);
  records.forEach(put);
  const state = {
    entries,
    get: (folder: string, path: string) => {
      gets += 1;
      return entries.get(folder, path);
    },
  };
  const deps = {
    clock,
    state,
    maxInMemory: MAX_IN_MEMORY,
    settings: { ...QUICK, push: { ...QUICK.push, backoff: { min: 1, max: BACKOFF_MS } } },
    folders: { stateOf: () => 'there' },
  };
  /** The paths of documents that were extracted. */
  const extracted = new Set<string>();
  const isExtracted = ({ path, version }: PendingItem) =>
    version.encoding !== 'document' || extracted.has(path);
  const backlog = new Backlog(deps as unknown as UplinkDeps, () => {}, isExtracted);
  /** Takes the first due item. */
  const take = () => {
    let taken: string | undefined;
    backlog.take(({ path }) => {
      if (taken !== undefined) return false;
      taken = path;
      return true;
    });
    return taken;
  };
  return {
    clock,
    entries,
    backlog,
    extracted,
    put,
    gets: () => gets,
    add: (item: PendingItem, waitMs?: number) => {
      put(item);
      backlog.add(item, waitMs);
    },
    /** Reads the state into the backlog for as long as the backlog wants more. */
    fill: async () => {
      while (backlog.wantsMore)
        for (const entry of await backlog.more())
          if (entry.status === 'pending' && !backlog.has(entry)) backlog.add(entry);
    },
    take,
    takeAll: () => {
      const taken: string[] = [];
      backlog.take(({ path }) => taken.push(path) > 0);
      return taken;
    },
  };
}

const at = (item: PendingItem, notBefore: number): PendingItem => ({ ...item, notBefore });

it('items are taken in the order they came, and not again while they are in flight', async () => {
  const { add, takeAll, take, backlog, clock } = setting();
  const items = ['b', 'a', 'c'].map((path) => at(pendingRecord(path), clock.now()));
  for (const item of items) add(item);
  backlog.take(({ path }) => path !== 'b');
  expect(backlog.inFlight).toBe(0);
  expect(takeAll()).toEqual(['b', 'a', 'c']);
  const [first] = items;
  if (first === undefined) throw new Error('there is none');
  backlog.add(first);
  expect(take()).toBeUndefined();
  backlog.checkIn(first);
  backlog.add(first);
  expect(take()).toBe('b');
  expect(backlog.inFlight).toBe(3);
});

it('a file that changes for months while the peer is away is pushed once, in its last version', async () => {
  const { add, gets, take, clock, backlog, entries } = setting();
  const log = pendingRecord('log');
  for (let i = 0; i < 20_000; i += 1) add(at(log, clock.now() + 60_000 + i));
  await clock.advance(60_000);
  expect(take()).toBeUndefined();
  await clock.advance(20_000);
  expect([take(), take()]).toEqual(['log', undefined]);
  expect(gets()).toBe(1);
  backlog.checkIn(log);
  backlog.add(log);
  entries.delete('inbox', 'log');
  expect(take()).toBeUndefined();
});

it('an item with a delay is not due before its end, unless it changes', async () => {
  const { add, backlog, clock, fill, take } = setting();
  const item = at(pendingRecord('a'), clock.now());
  await fill();
  add(item, 10_000);
  expect([backlog.hasDue('text'), backlog.isIdle]).toEqual([false, false]);
  await clock.advance(9_999);
  expect(take()).toBeUndefined();
  add(item);
  expect(take()).toBe('a');
});

it('the longest normal delay of an item is waited for, and a longer one, of a clock that was set back, counts as over', async () => {
  const { add, clock, take } = setting();
  add(at(pendingRecord('a'), clock.now() + BACKOFF_MS));
  await clock.advance(BACKOFF_MS - 1);
  expect(take()).toBeUndefined();
  await clock.advance(1);
  expect(take()).toBe('a');
  add(at(pendingRecord('b'), clock.now() + 86_400_000));
  expect(take()).toBe('b');
});

it('while an item for a URL is in flight, no other item for that URL is taken', async () => {
  const [old, other] = [pendingRecord('a', 'old'), pendingRecord('b', 'new')];
  const renamed = { ...pendingRecord('a', 'new'), url: old.url };
  const { add, backlog, clock, takeAll } = setting();
  for (const each of [old, renamed, other]) add(each);
  expect(takeAll()).toEqual(['a', 'b']);
  await clock.advance(10_000);
  expect(takeAll()).toEqual([]);
  expect(backlog.isInFlight(old)).toBe(true);
  backlog.checkIn(old);
  await clock.advance(10_000);
  expect(takeAll()).toEqual(['a']);
  expect(backlog.isInFlight(renamed)).toBe(true);
});

it('only a part of very many items is in memory, and all are taken', async () => {
  const records = Array.from({ length: 5 * MAX_IN_MEMORY }, (_, i) =>
    pendingRecord(`d${i % 100}/f${i}`),
  );
  const { backlog, fill, put, take } = setting(...records);
  const taken = new Set<string>();
  expect(backlog.isIdle).toBe(false);
  for (;;) {
    await fill();
    expect(
      records.filter((each) => backlog.has(each)).length - backlog.inFlight,
    ).toBeLessThanOrEqual(2 * MAX_IN_MEMORY);
    const paths = Array.from({ length: 40 }, take).filter((path) => path !== undefined);
    if (paths.length === 0) break;
    for (const path of paths) {
      taken.add(path);
      const record = pendingRecord(path);
      put({ ...record, status: 'gone' });
      backlog.checkIn(record);
    }
  }
  expect(taken.size).toBe(5 * MAX_IN_MEMORY);
  expect(backlog.isIdle).toBe(true);
});

it('more delayed items than fit in memory do not keep back due ones', async () => {
  const { clock, fill, takeAll, put, backlog } = setting();
  for (let i = 0; i < 2.5 * MAX_IN_MEMORY; i += 1)
    put(at(pendingRecord(`late${i}`), clock.now() + 60_000));
  put(at(pendingRecord('now'), clock.now()));
  await fill();
  expect(takeAll()).toEqual(['now']);
  expect([backlog.hasDue('text'), backlog.isIdle]).toEqual([false, false]);
  await clock.advance(60_000);
  const late: string[] = [];
  for (;;) {
    await fill();
    const some = takeAll();
    if (some.length === 0) break;
    for (const path of some) put({ ...pendingRecord(path), status: 'gone' });
    late.push(...some);
  }
  expect(new Set(late).size).toBe(2.5 * MAX_IN_MEMORY);
});

it('many items that become due one by one and are delayed again cost a few passes over the state', async () => {
  const { backlog, clock, put, takeAll } = setting();
  for (let i = 0; i < 2 * MAX_IN_MEMORY; i += 1)
    put(at(pendingRecord(`f${i}`), clock.now() + 1_000 + ((i * 7_919) % 100_000)));
  let slices = 0;
  let taken = 0;
  for (let second = 0; second < 200; second += 1) {
    for (; backlog.wantsMore; slices += 1)
      for (const entry of await backlog.more())
        if (entry.status === 'pending' && !backlog.has(entry)) backlog.add(entry);
    for (const path of takeAll()) {
      taken += 1;
      const again = at(pendingRecord(path), clock.now() + BACKOFF_MS);
      put(again);
      backlog.checkIn(again);
      backlog.add(again);
    }
    await clock.advance(1_000);
  }
  expect(taken).toBe(2 * MAX_IN_MEMORY);
  expect(slices).toBeLessThan(10 * 2);
});

it('memory stays bounded when items become due and none is taken, as while the peer is paused', async () => {
  const { add, backlog, clock, fill, takeAll } = setting();
  const timers: (() => void)[] = [];
  clock.after = (_, fn) => {
    timers.push(fn);
    return { cancel: () => {} };
  };
  await fill();
  const items: PendingItem[] = [];
  for (let round = 0; round < 4; round += 1) {
    for (let i = 0; i < MAX_IN_MEMORY; i += 1) {
      const item = at(pendingRecord(`r${round}f${i}`), clock.now() + 1_000);
      items.push(item);
      add(item);
    }
    clock.skip(1_000);
    for (const fallDue of timers.splice(0)) fallDue();
  }
  expect(items.filter((each) => backlog.has(each)).length).toBeLessThanOrEqual(2 * MAX_IN_MEMORY);
  const taken = new Set<string>();
  for (let some = takeAll(); some.length > 0; some = takeAll()) {
    for (const path of some) taken.add(path);
    clock.skip(30_000);
    await fill();
  }
  expect(taken.size).toBe(4 * MAX_IN_MEMORY);
});

it('a delayed item is due when its time is over, even if the machine was suspended meanwhile', async () => {
  const { add, clock, take } = setting();
  add(at(pendingRecord('a'), clock.now() + BACKOFF_MS));
  clock.suspend(BACKOFF_MS);
  await clock.advance(30_000);
  expect(take()).toBe('a');
});

it('the state is not read again while so many items are due that there is no room for more', () => {
  const pass = async function* (): AsyncGenerator<Entry[]> {};
  const queue = new ReadyQueue<number>(new FakeClock(), 10, pass, () => {});
  for (let i = 0; i < 11; i += 1) queue.put(`${i}`, i, 0);
  expect([queue.wantsMore, queue.nextPassInMs]).toEqual([false, Number.POSITIVE_INFINITY]);
  for (let i = 0; i < 6; i += 1) queue.delete(`${i}`);
  expect([queue.wantsMore, queue.nextPassInMs]).toEqual([true, expect.any(Number)]);
});

it.each(['never', 'until it is empty'])(
  'the queue of due items frees the memory of items that left it, if its first one is read %s',
  async (asked) => {
    const pass = async function* (): AsyncGenerator<Entry[]> {};
    const queue = new ReadyQueue<object>(new FakeClock(), 1_000, pass, () => {});
    const left: WeakRef<object>[] = [];
    for (let i = 0; i < 5_000; i += 1) {
      const value = {};
      left.push(new WeakRef(value));
      queue.put(`${i}`, value, 0);
      if (asked !== 'never' && i < 200) expect(queue.first).toBeDefined();
      if (i % 100 === 99) for (let k = i - 99; k <= i; k += 1) queue.delete(`${k}`);
    }
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    // A WeakRef keeps its target alive until the end of the turn of the event loop in which it was
    // made.
    await new Promise((done) => setImmediate(done));
    collect();
    expect(left.filter((value) => value.deref() !== undefined).length).toBeLessThan(10);
  },
);

it('documents wait in a lane of their own until they are extracted, or their file is none any more', async () => {
  const { add, backlog, clock, extracted, fill, put, take } = setting();
  const pending = (path: string, encoding: 'utf-8' | 'document') => {
    const item = at(pendingRecord(path), clock.now());
    return { ...item, version: { ...item.version, encoding } };
  };
  const documents = (): string[] => {
    const taken: string[] = [];
    for (let item = backlog.takeDocument(); item; item = backlog.takeDocument())
      taken.push(item.path);
    return taken;
  };
  add(pending('a', 'document'));
  add(pending('b', 'utf-8'));
  expect([backlog.hasDue('text'), backlog.hasDue('document')]).toEqual([true, true]);
  expect(take()).toBe('b');
  expect(backlog.hasDue('text')).toBe(false);
  add(pending('a', 'utf-8'));
  expect(documents()).toEqual([]);
  expect(take()).toBe('a');
  // The lane is judged again when an item's turn comes, in either direction.
  add(pending('c', 'document'));
  extracted.add('c');
  expect(documents()).toEqual([]);
  extracted.delete('c');
  expect(take()).toBeUndefined();
  expect(documents()).toEqual(['c']);
  expect([backlog.isInFlight({ folder: 'f', path: 'c' }), documents()]).toEqual([false, []]);

  // More than fit in memory: each lane reads its own items from the state.
  for (let i = 0; i < 2 * MAX_IN_MEMORY; i += 1) {
    put(pending(`d${i}`, 'document'));
    put(pending(`t${i}`, 'utf-8'));
  }
  const seen = new Set<string>();
  while (seen.size < 4 * MAX_IN_MEMORY) {
    await fill();
    const some = [...documents(), take()].filter((path) => path !== undefined);
    expect(some).not.toEqual([]);
    // Otherwise a pass would find them again.
    for (const path of some) extracted.add(path);
    for (const path of some) seen.add(path);
  }
});

it('a document that found no room among the texts waits to be read if it is not extracted any more', async () => {
  const { add, backlog, extracted, fill, takeAll } = setting();
  await fill();
  const { version, ...rest } = pendingRecord('a.pdf');
  const document: PendingItem = { ...rest, version: { ...version, encoding: 'document' } };
  extracted.add('a.pdf');
  for (let i = 0; i < MAX_IN_MEMORY; i += 1) add(pendingRecord(`${i}.txt`));
  add(document);
  expect(backlog.has(document)).toBe(false);
  extracted.delete('a.pdf');
  takeAll();
  await fill();
  expect(backlog.hasDue('document')).toBe(true);
});
