import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { PendingItem } from '../../src/state/entry.js';
import { pendingRecord } from '../state/records.js';
import { HOLD_MS, LossyPeer } from './lossy-peer.js';

const URL = 'https://files.example.org/a.txt';
const named = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

describe('items that were lost together', () => {
  it('are confirmed except for those at fault, wherever those are', async () => {
    const run = async (count: number, numbers: number[], updateMs: number, commits: boolean) => {
      const poison = new Set(numbers.map((n) => `f${n % count}`));
      const peer = new LossyPeer(named(count), [...poison], updateMs, commits);
      await peer.run();
      expect(peer.quarantined).toEqual(poison);
    };
    const poison = fc.array(fc.nat(39), { maxLength: 4 });
    const updateMs = fc.integer({ min: 100, max: HOLD_MS });
    const any = fc.asyncProperty(
      fc.integer({ min: 1, max: 40 }),
      poison,
      updateMs,
      fc.boolean(),
      run,
    );
    await fc.assert(any, { numRuns: 20 });
  });

  it('with one of 200 at fault take less than 6 holds, and each other item is pushed once', async () => {
    const peer = new LossyPeer(named(200), ['f77']);
    peer.pushMs = 50;
    expect(await peer.run()).toBeLessThan(6);
    expect(peer.pushes).toHaveLength(200 + 1);
    expect([...peer.quarantined]).toEqual(['f77']);
  });

  it('continue without those that are removed or not pushed after all', async () => {
    const peer = new LossyPeer(named(12), ['f0']);
    peer.goes('f11');
    void peer.begin();
    peer.goes('f10');
    peer.onPush = (item) => {
      if (peer.pushes.length === 2) peer.goes('f5');
      if (peer.pushes.length === 3) peer.goes('f1');
      return peer.pushes.length === 4 && peer.isolation.addIfLost(item);
    };
    await peer.run();
    expect([...peer.quarantined]).toEqual(['f0']);
    expect(peer.confirmed.size).toBe(7);
    expect(peer.isolation.isIdle).toBe(true);
  });

  it('with very many others, as in a crash, are pushed together beyond the limit of isolation', () => {
    const peer = new LossyPeer(named(250));
    expect(peer.loses(URL, 1)).toBe('pending: LOST_WITH_MANY');
    expect(peer.isolation.addIfLost(peer.items.get('a.txt') as PendingItem)).toBe(false);
    peer.goes('f0');
    expect(peer.loses(URL, 1)).toBe('pending: LOST_FROM_INDEX');
  });
});

it.each(['', 'f1'])(
  'an item that was lost alone is pushed once more with a hold before and after it, even if %j is removed before its turn',
  async (other) => {
    const peer = new LossyPeer(['f0'], ['f0']);
    await peer.begin(1.5);
    expect([peer.pushes.length, peer.isInRound]).toEqual([1, false]);
    if (other !== '') peer.lose(other);
    const before = peer.clock.elapsed();
    peer.isolation.pushed();
    void peer.begin();
    if (other !== '') peer.goes(other);
    await peer.clock.advance(1.5 * HOLD_MS);
    expect(peer.pushes[1]).toEqual({ name: 'f0', at: before + HOLD_MS });
    expect(peer.isInRound).toBe(true);
    await peer.clock.advance(HOLD_MS / 2);
    expect(peer.isInRound).toBe(false);
  },
);

it('lost items are pushed even if the clock was set back by a day before a restart', () => {
  const peer = new LossyPeer(['f0']);
  peer.clock.set(-86_400_000);
  peer.clock.restart();
  expect(peer.isolation.isDue(false)).toBe(true);
});

describe('the isolation of lost items', () => {
  it('begins after a quarter of the hold without a push, and lets other items go between two rounds', async () => {
    const peer = new LossyPeer(named(4));
    expect(peer.isolation.isDue(true)).toBe(true);
    void peer.begin();
    await peer.clock.advance(HOLD_MS / 4 - 1);
    expect(peer.pushes).toEqual([]);
    await peer.clock.advance(1);
    expect(peer.pushes.map(({ name }) => name)).toEqual(named(4));
    expect([peer.isInRound, peer.isolation.isDue(true)]).toEqual([false, false]);
    peer.isolation.pushed();
    peer.lose('late');
    expect([peer.isolation.isDue(true), peer.isolation.isDue(false)]).toEqual([false, true]);
    const before = peer.clock.elapsed();
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.isDue(true)).toBe(true);
    await peer.run();
    expect(peer.pushes.at(-1)?.at).toBeGreaterThanOrEqual(before + HOLD_MS / 4);
  });

  it('blocks other items for three quarters of the hold at most, however many are lost', async () => {
    const peer = new LossyPeer(named(240));
    const get = vi.spyOn(peer.items, 'get');
    for (const _ of [1, 2]) peer.isolation.isDue(true);
    expect(get.mock.calls.length).toBe(2);
    peer.pushMs = 100;
    await peer.begin(0.75 + peer.pushMs / HOLD_MS);
    expect(peer.isInRound).toBe(false);
    expect(peer.pushes).toHaveLength(101);
  });

  it('keeps a quarter of the hold between two lost items if the peer does not commit its index', async () => {
    const peer = new LossyPeer(named(3), [], 3_000, false);
    await peer.run();
    const [first = 0, second = 0, third = 0] = peer.pushes.map(({ at }) => at);
    expect([second - first, third - second]).toEqual([HOLD_MS / 4, HOLD_MS / 4]);
  });

  it('does not block other items for lost ones of a missing folder, which wait for it', async () => {
    const peer = new LossyPeer();
    peer.folderState = 'missing';
    peer.lose(...named(8));
    await peer.clock.advance(HOLD_MS);
    expect([peer.isolation.isDue(true), peer.isolation.isIdle]).toEqual([false, true]);
    peer.folderState = 'there';
    await peer.run();
    expect(peer.confirmed.size).toBe(8);
  });

  it('cannot begin a round while another one is under way', async () => {
    const peer = new LossyPeer(named(2));
    void peer.begin();
    const { signal } = new AbortController();
    const second = peer.isolation.round(async () => true, signal);
    await expect(second).rejects.toThrow('the mode quiet may not be followed by quiet');
  });

  it('is not for a new version of a lost item, nor for a peer that loses no updates', () => {
    const peer = new LossyPeer(['f0', 'f1']);
    const item = peer.items.get('f1') as PendingItem;
    expect(peer.isolation.addIfLost(pendingRecord('f0'))).toBe(false);
    peer.dialect.current = DIALECTS.standard;
    expect(peer.isolation.addIfLost(item)).toBe(false);
    expect([peer.isolation.isDue(true), peer.isolation.isIdle]).toEqual([false, true]);
  });
});
