import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { PendingItem } from '../../src/state/entry.js';
import { pendingRecord } from '../state/records.js';
import { HOLD_MS, IsolationSetup } from './isolation-setup.js';

const URL = 'https://files.example.org/a.txt';
const named = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

describe('items that were lost together', () => {
  it('are confirmed except for those at fault, wherever those are', async () => {
    const run = async (count: number, numbers: number[], updateMs: number, commits: boolean) => {
      const poison = new Set(numbers.map((n) => `f${n % count}`));
      const setup = new IsolationSetup({
        lost: named(count),
        poison: [...poison],
        updateMs,
        commits,
      });
      await setup.run();
      expect(setup.quarantined).toEqual(poison);
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
    const setup = new IsolationSetup({ lost: named(200), poison: ['f77'] });
    setup.pushMs = 50;
    expect(await setup.run()).toBeLessThan(6);
    expect(setup.pushes).toHaveLength(200 + 1);
    expect([...setup.quarantined]).toEqual(['f77']);
  });

  it('continue without those that are removed or not pushed after all', async () => {
    const setup = new IsolationSetup({ lost: named(12), poison: ['f0'] });
    setup.goes('f11');
    void setup.begin();
    setup.goes('f10');
    setup.onPush = (item) => {
      if (setup.pushes.length === 2) setup.goes('f5');
      if (setup.pushes.length === 3) setup.goes('f1');
      return setup.pushes.length === 4 && setup.isolation.addIfLost(item);
    };
    await setup.run();
    expect([...setup.quarantined]).toEqual(['f0']);
    expect(setup.confirmed.size).toBe(7);
    expect(setup.isolation.isIdle).toBe(true);
  });

  it('with very many others, as in a crash, are pushed together beyond the limit of isolation', () => {
    const setup = new IsolationSetup({ lost: named(250) });
    expect(setup.loses(URL, 1)).toBe('pending: LOST_WITH_MANY');
    expect(setup.isolation.addIfLost(setup.items.get('a.txt') as PendingItem)).toBe(false);
    setup.goes('f0');
    expect(setup.loses(URL, 1)).toBe('pending: LOST_FROM_INDEX');
  });
});

it.each(['', 'f1'])(
  'an item that was lost alone is pushed once more with a hold before and after it, even if %j is removed before its turn',
  async (other) => {
    const setup = new IsolationSetup({ lost: ['f0'], poison: ['f0'] });
    await setup.begin(1.5);
    expect([setup.pushes.length, setup.isInRound]).toEqual([1, false]);
    if (other !== '') setup.lose(other);
    const before = setup.clock.elapsed();
    setup.isolation.pushed();
    void setup.begin();
    if (other !== '') setup.goes(other);
    await setup.clock.advance(1.5 * HOLD_MS);
    expect(setup.pushes[1]).toEqual({ name: 'f0', at: before + HOLD_MS });
    expect(setup.isInRound).toBe(true);
    await setup.clock.advance(HOLD_MS / 2);
    expect(setup.isInRound).toBe(false);
  },
);

it('lost items are pushed even if the clock was set back by a day before a restart', () => {
  const setup = new IsolationSetup({ lost: ['f0'] });
  setup.clock.set(-86_400_000);
  setup.clock.restart();
  expect(setup.isolation.isDue(false)).toBe(true);
});

describe('the isolation of lost items', () => {
  it('begins after a quarter of the hold without a push, and lets other items go between two rounds', async () => {
    const setup = new IsolationSetup({ lost: named(4) });
    expect(setup.isolation.isDue(true)).toBe(true);
    void setup.begin();
    await setup.clock.advance(HOLD_MS / 4 - 1);
    expect(setup.pushes).toEqual([]);
    await setup.clock.advance(1);
    expect(setup.pushes.map(({ name }) => name)).toEqual(named(4));
    expect([setup.isInRound, setup.isolation.isDue(true)]).toEqual([false, false]);
    setup.isolation.pushed();
    setup.lose('late');
    expect([setup.isolation.isDue(true), setup.isolation.isDue(false)]).toEqual([false, true]);
    const before = setup.clock.elapsed();
    await setup.clock.advance(HOLD_MS);
    expect(setup.isolation.isDue(true)).toBe(true);
    await setup.run();
    expect(setup.pushes.at(-1)?.at).toBeGreaterThanOrEqual(before + HOLD_MS / 4);
  });

  it('blocks other items for three quarters of the hold at most, however many are lost', async () => {
    const setup = new IsolationSetup({ lost: named(240) });
    const get = vi.spyOn(setup.items, 'get');
    for (const _ of [1, 2]) setup.isolation.isDue(true);
    expect(get.mock.calls.length).toBe(2);
    setup.pushMs = 100;
    await setup.begin(0.75 + setup.pushMs / HOLD_MS);
    expect(setup.isInRound).toBe(false);
    expect(setup.pushes).toHaveLength(101);
  });

  it('keeps a quarter of the hold between two lost items if the peer does not commit its index', async () => {
    const setup = new IsolationSetup({ lost: named(3), commits: false });
    await setup.run();
    const [first = 0, second = 0, third = 0] = setup.pushes.map(({ at }) => at);
    expect([second - first, third - second]).toEqual([HOLD_MS / 4, HOLD_MS / 4]);
  });

  it('does not block other items for lost ones of a missing folder, which wait for it', async () => {
    const setup = new IsolationSetup();
    setup.folderState = 'missing';
    setup.lose(...named(8));
    await setup.clock.advance(HOLD_MS);
    expect([setup.isolation.isDue(true), setup.isolation.isIdle]).toEqual([false, true]);
    setup.folderState = 'there';
    await setup.run();
    expect(setup.confirmed.size).toBe(8);
  });

  it('cannot begin a round while another one is under way', async () => {
    const setup = new IsolationSetup({ lost: named(2) });
    void setup.begin();
    const { signal } = new AbortController();
    const second = setup.isolation.round(async () => true, signal);
    await expect(second).rejects.toThrow('the mode quiet may not be followed by quiet');
  });

  it('is not for a new version of a lost item, nor for a peer that loses no updates', () => {
    const setup = new IsolationSetup({ lost: ['f0', 'f1'] });
    const item = setup.items.get('f1') as PendingItem;
    expect(setup.isolation.addIfLost(pendingRecord('f0'))).toBe(false);
    setup.dialect.current = DIALECTS.standard;
    expect(setup.isolation.addIfLost(item)).toBe(false);
    expect([setup.isolation.isDue(true), setup.isolation.isIdle]).toEqual([false, true]);
  });
});
