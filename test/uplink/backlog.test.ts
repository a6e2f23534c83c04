import { describe, expect, it } from 'vitest';
import type { Entry, PendingItem } from '../../src/state/entry.js';
import { Backlog } from '../../src/uplink/backlog.js';
import type { Standing, UplinkState } from '../../src/uplink/parts.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';

const CHANGES = 20_000;
const COUNTS = { pending: 2, accepted: 0, confirmed: 0, quarantined: 0, gone: 0, passed: 0 };

it('a file that changes for months while the peer is away keeps no turn for each change', async () => {
  const clock = new FakeClock();
  let looks = 0;
  const entries = new Map<string, Entry>();
  const state: Pick<UplinkState, 'get' | 'counts'> = {
    counts: () => COUNTS,
    get: (_, path) => {
      looks += 1;
      return entries.get(path);
    },
  };
  const backlog = new Backlog(state, clock);
  const put = (item: PendingItem) => {
    entries.set(item.path, item);
    backlog.add(item);
  };
  put({ ...pendingRecord('other'), notBefore: clock.now() + CHANGES + 1 });
  for (let i = 0; i < CHANGES; i += 1) {
    put({ ...pendingRecord('log'), notBefore: clock.now() + i });
  }
  await clock.advance(CHANGES);
  looks = 0;
  entries.delete('log');
  expect(backlog.peek()).toBeUndefined();
  expect(looks).toBeLessThan(CHANGES / 4);
  await clock.advance(1);
  expect(backlog.peek()?.path).toBe('other');
});

it('a file that changed many times is pushed when its last turn comes, once', async () => {
  const clock = new FakeClock();
  const item = { ...pendingRecord('log'), notBefore: clock.now() + 60_000 };
  const backlog = new Backlog({ counts: () => COUNTS, get: () => item }, clock);
  for (let i = 0; i < CHANGES; i += 1) backlog.add({ ...item, notBefore: clock.now() + i });
  backlog.add(item);
  for (let i = 0; i < CHANGES; i += 1) backlog.add(item);
  expect(backlog.peek()).toBeUndefined();
  await clock.advance(60_000);
  expect(backlog.peek()).toBe(item);
  backlog.take();
  expect(backlog.peek()).toBeUndefined();
});

it('an item that is left alone for a while is not due before, unless it changes', async () => {
  const clock = new FakeClock();
  let item = { ...pendingRecord('a'), notBefore: clock.now() };
  const backlog = new Backlog({ counts: () => COUNTS, get: () => item }, clock);
  backlog.add(item, 10_000);
  await clock.advance(9_999);
  expect(backlog.peek()).toBeUndefined();
  await clock.advance(1);
  expect(backlog.peek()).toBe(item);
  backlog.take();
  backlog.giveBack(item);
  backlog.add(item, 10_000);
  item = { ...item, notBefore: clock.now() };
  backlog.add(item);
  expect(backlog.peek()).toBe(item);
});

describe('a clock that is set while an item waits', () => {
  const DAY_MS = 86_400_000;
  const backlogOf = (clock: FakeClock, item: PendingItem, longestMs?: () => number) =>
    new Backlog({ counts: () => COUNTS, get: () => item }, clock, longestMs);

  it('does not lose one that was due: it leaves though its time is in the future now', () => {
    const clock = new FakeClock();
    const item = { ...pendingRecord('a'), notBefore: clock.now() };
    const backlog = backlogOf(clock, item);
    backlog.add(item);
    expect(backlog.peek()).toBe(item);
    clock.set(-DAY_MS);
    expect(backlog.peek()).toBe(item);
    expect(backlog.nextInMs).toBe(0);
    backlog.take();
    expect(backlog.out).toBe(1);
  });

  it.each([-DAY_MS, DAY_MS])('neither keeps nor hurries one that was put off (by %d ms)', async (byMs) => {
    const clock = new FakeClock();
    const item = { ...pendingRecord('a'), notBefore: clock.now() + 60_000 };
    const backlog = backlogOf(clock, item);
    backlog.add(item);
    clock.set(byMs);
    await clock.advance(59_000);
    expect(backlog.peek()).toBeUndefined();
    expect(backlog.nextInMs).toBe(1_000);
    await clock.advance(1_000);
    expect(backlog.peek()).toBe(item);
  });

  it('keeps one that was put off before it was set back, or before a restart, for no longer than anything waits', async () => {
    const clock = new FakeClock();
    const item = { ...pendingRecord('a'), notBefore: clock.now() + DAY_MS };
    const backlog = backlogOf(clock, item, () => 300_000);
    backlog.add(item);
    await clock.advance(299_000);
    expect(backlog.peek()).toBeUndefined();
    await clock.advance(1_000);
    expect(backlog.peek()).toBe(item);
  });
});

it('an address that something is on its way to is for nothing else until that is back', () => {
  const clock = new FakeClock();
  const [old, renamed, other] = [
    pendingRecord('a', 'old'),
    { ...pendingRecord('a', 'new'), url: pendingRecord('a', 'old').url },
    pendingRecord('b', 'new'),
  ];
  const entries = new Map<string, Entry>(
    [old, renamed, other].map((each) => [each.folder + each.path, each]),
  );
  const backlog = new Backlog(
    { counts: () => COUNTS, get: (folder, path) => entries.get(folder + path) },
    clock,
  );
  for (const each of [old, renamed, other]) backlog.add(each);
  const taken = () => {
    const item = backlog.peek();
    backlog.take();
    return item;
  };
  expect([taken(), taken(), taken()]).toEqual([old, other, undefined]);
  backlog.giveBack(other);
  backlog.add(other);
  expect(taken()).toBe(other);
  entries.delete('olda');
  backlog.giveBack(old);
  expect([taken(), taken()]).toEqual([renamed, undefined]);
});

describe('items of several folders', () => {
  const ITEMS = [
    pendingRecord('a', 'here'),
    pendingRecord('b', 'far'),
    pendingRecord('c', 'far'),
    pendingRecord('d', 'here'),
  ];
  const backlogOf = (standing: () => Standing) => {
    const entries = new Map<string, Entry>(ITEMS.map((item) => [item.path, item]));
    const backlog = new Backlog(
      { counts: () => COUNTS, get: (_, path) => entries.get(path) },
      new FakeClock(),
      undefined,
      (folder) => (folder === 'far' ? standing() : 'there'),
    );
    for (const item of ITEMS) backlog.add(item);
    return backlog;
  };
  const takeAll = (backlog: Backlog) => {
    const taken: string[] = [];
    for (let item = backlog.peek(); item !== undefined; item = backlog.peek()) {
      backlog.take();
      taken.push(item.path);
    }
    return taken;
  };

  it('leave in the order they came, where they are due at the same time', () => {
    expect(takeAll(backlogOf(() => 'there'))).toEqual(['a', 'b', 'c', 'd']);
  });

  it('are not shown while their folder is missing, also when one of them was shown before', () => {
    let standing: Standing = 'there';
    const backlog = backlogOf(() => standing);
    backlog.peek();
    backlog.take();
    expect(backlog.peek()?.path).toBe('b');
    standing = 'missing';
    expect(takeAll(backlog)).toEqual(['d']);
    expect(backlog.nextInMs).toBeUndefined();
    for (const item of ITEMS) backlog.giveBack(item);
    expect(backlog.isIdle).toBe(true);
    standing = 'there';
    expect(backlog.isIdle).toBe(false);
    expect(takeAll(backlog).toSorted()).toEqual(['b', 'c']);
  });
});
