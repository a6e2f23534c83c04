import { expect, it } from 'vitest';
import type { Entry, PendingItem } from '../../src/state/entry.js';
import { Backlog } from '../../src/uplink/backlog.js';
import type { UplinkState } from '../../src/uplink/parts.js';
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
