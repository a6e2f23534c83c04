import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { Entries } from '../../src/state/entries.js';
import type { Entry, PendingItem } from '../../src/state/entry.js';
import { Backlog, ReadyQueue } from '../../src/uplink/backlog.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const BACKOFF_MS = 300_000;
/** So many are held that are due, and so many that are due later. */
const HELD = 100;

/** A backlog of what these records say. */
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
    held: HELD,
    settings: { ...QUICK, push: { ...QUICK.push, backoff: { min: 1, max: BACKOFF_MS } } },
    standing: () => 'there',
  };
  const backlog = new Backlog(deps as unknown as UplinkDeps, () => {});
  /** The first that is due. */
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
    put,
    gets: () => gets,
    add: (item: PendingItem, waitMs?: number) => {
      put(item);
      backlog.add(item, waitMs);
    },
    /** Takes up what is in the state, as far as the backlog wants it. */
    fill: async () => {
      while (backlog.wantsMore)
        for (const entry of await backlog.more())
          if (entry.status === 'pending' && !backlog.holds(entry)) backlog.add(entry);
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

it('items leave in the order they came, each once until it is given back', async () => {
  const { add, takeAll, take, backlog, clock } = setting();
  const items = ['b', 'a', 'c'].map((path) => at(pendingRecord(path), clock.now()));
  for (const item of items) add(item);
  backlog.take(({ path }) => path !== 'b');
  expect(backlog.out).toBe(0);
  expect(takeAll()).toEqual(['b', 'a', 'c']);
  const [first] = items;
  if (first === undefined) throw new Error('there is none');
  backlog.add(first);
  expect(take()).toBeUndefined();
  backlog.giveBack(first);
  backlog.add(first);
  expect(take()).toBe('b');
  expect(backlog.out).toBe(3);
});

it('a file that changes for months while the peer is away has one turn, its last', async () => {
  const { add, gets, take, clock, backlog, entries } = setting();
  const log = pendingRecord('log');
  for (let i = 0; i < 20_000; i += 1) add(at(log, clock.now() + 60_000 + i));
  await clock.advance(60_000);
  expect(take()).toBeUndefined();
  await clock.advance(20_000);
  expect([take(), take()]).toEqual(['log', undefined]);
  expect(gets()).toBe(1);
  backlog.giveBack(log);
  backlog.add(log);
  entries.delete('inbox', 'log');
  expect(take()).toBeUndefined();
});

it('an item that is left alone for a while is not due before, unless it changes', async () => {
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

it('an item whose time is far ahead, for the clock was set back since, waits for no longer than any', async () => {
  const { add, clock, take } = setting();
  add(at(pendingRecord('a'), clock.now() + 86_400_000));
  await clock.advance(BACKOFF_MS - 1);
  expect(take()).toBeUndefined();
  await clock.advance(1);
  expect(take()).toBe('a');
});

it('a URL that something is on its way to is for nothing else until that is back', async () => {
  const [old, other] = [pendingRecord('a', 'old'), pendingRecord('b', 'new')];
  const renamed = { ...pendingRecord('a', 'new'), url: old.url };
  const { add, backlog, clock, takeAll } = setting();
  for (const each of [old, renamed, other]) add(each);
  expect(takeAll()).toEqual(['a', 'b']);
  await clock.advance(10_000);
  expect(takeAll()).toEqual([]);
  expect(backlog.isOut(old)).toBe(true);
  backlog.giveBack(old);
  await clock.advance(10_000);
  expect(takeAll()).toEqual(['a']);
  expect(backlog.isOut(renamed)).toBe(true);
});

it('of many items in the state a part is held, and all leave', async () => {
  const records = Array.from({ length: 5 * HELD }, (_, i) => pendingRecord(`d${i % 100}/f${i}`));
  const { backlog, fill, put, take } = setting(...records);
  const taken = new Set<string>();
  expect(backlog.isIdle).toBe(false);
  for (;;) {
    await fill();
    expect(records.filter((each) => backlog.holds(each)).length - backlog.out).toBeLessThanOrEqual(
      2 * HELD,
    );
    const paths = Array.from({ length: 40 }, take).filter((path) => path !== undefined);
    if (paths.length === 0) break;
    for (const path of paths) {
      taken.add(path);
      const record = pendingRecord(path);
      put({ ...record, status: 'gone' });
      backlog.giveBack(record);
    }
  }
  expect(taken.size).toBe(5 * HELD);
  expect(backlog.isIdle).toBe(true);
});

it('what is due is not kept back by more than can be held that is due later', async () => {
  const { clock, fill, takeAll, put, backlog } = setting();
  for (let i = 0; i < 2.5 * HELD; i += 1) put(at(pendingRecord(`late${i}`), clock.now() + 60_000));
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
  expect(new Set(late).size).toBe(2.5 * HELD);
});

it('many that fall due one after the other, and are put off again, cost a few passes over the state', async () => {
  const { backlog, clock, put, takeAll } = setting();
  for (let i = 0; i < 2 * HELD; i += 1)
    put(at(pendingRecord(`f${i}`), clock.now() + 1_000 + ((i * 7_919) % 100_000)));
  let slices = 0;
  let taken = 0;
  for (let second = 0; second < 200; second += 1) {
    for (; backlog.wantsMore; slices += 1)
      for (const entry of await backlog.more())
        if (entry.status === 'pending' && !backlog.holds(entry)) backlog.add(entry);
    for (const path of takeAll()) {
      taken += 1;
      const again = at(pendingRecord(path), clock.now() + BACKOFF_MS);
      put(again);
      backlog.giveBack(again);
      backlog.add(again);
    }
    await clock.advance(1_000);
  }
  expect(taken).toBe(2 * HELD);
  expect(slices).toBeLessThan(10 * 2);
});

it('no more are held where they fall due and none leaves, as while the peer is paused', async () => {
  const { add, backlog, clock, fill, takeAll } = setting();
  const timers: (() => void)[] = [];
  clock.after = (_, fn) => {
    timers.push(fn);
    return { cancel: () => {} };
  };
  await fill();
  const items: PendingItem[] = [];
  for (let round = 0; round < 4; round += 1) {
    for (let i = 0; i < HELD; i += 1) {
      const item = at(pendingRecord(`r${round}f${i}`), clock.now() + 1_000);
      items.push(item);
      add(item);
    }
    clock.skip(1_000);
    for (const fallDue of timers.splice(0)) fallDue();
  }
  expect(items.filter((each) => backlog.holds(each)).length).toBeLessThanOrEqual(2 * HELD);
  const taken = new Set<string>();
  for (let some = takeAll(); some.length > 0; some = takeAll()) {
    for (const path of some) taken.add(path);
    clock.skip(30_000);
    await fill();
  }
  expect(taken.size).toBe(4 * HELD);
});

it('an item that is put off is due when its time is over, also where the machine was suspended meanwhile', async () => {
  const { add, clock, take } = setting();
  add(at(pendingRecord('a'), clock.now() + BACKOFF_MS));
  clock.suspend(BACKOFF_MS);
  await clock.advance(30_000);
  expect(take()).toBe('a');
});

it('no pass is waited for, nor wanted, while so many are due that there is no room for what it finds', () => {
  const pass = async function* (): AsyncGenerator<Entry[]> {};
  const queue = new ReadyQueue<number>(new FakeClock(), 10, pass, () => {});
  for (let i = 0; i < 11; i += 1) queue.put(`${i}`, i, 0);
  expect([queue.wantsMore, queue.nextPassInMs]).toEqual([false, Number.POSITIVE_INFINITY]);
  for (let i = 0; i < 6; i += 1) queue.delete(`${i}`);
  expect([queue.wantsMore, queue.nextPassInMs]).toEqual([true, expect.any(Number)]);
});

it.each(['never', 'until it is empty'])(
  'keeps nothing of what has left, where it is asked for its first %s',
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
    // A reference that was made in this turn of the event loop is kept until it is over.
    await new Promise((done) => setImmediate(done));
    collect();
    expect(left.filter((value) => value.deref() !== undefined).length).toBeLessThan(10);
  },
);

it('documents wait in a lane of their own, and change lanes when their file does', async () => {
  const { add, backlog, clock, fill, put, take } = setting();
  const pending = (path: string, encoding: 'utf-8' | 'document') => {
    const item = at(pendingRecord(path), clock.now());
    return { ...item, version: { ...item.version, encoding } };
  };
  const documents = (): string[] => {
    const taken: string[] = [];
    backlog.take(({ path }) => taken.push(path) > 0, 'document');
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

  // More than can be held: each lane takes up its own from the state.
  for (let i = 0; i < 2 * HELD; i += 1) {
    put(pending(`d${i}`, 'document'));
    put(pending(`t${i}`, 'utf-8'));
  }
  const seen = new Set<string>();
  while (seen.size < 4 * HELD) {
    await fill();
    const some = [...documents(), take()].filter((path) => path !== undefined);
    expect(some).not.toEqual([]);
    for (const path of some) seen.add(path);
  }
});
