import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Dialect } from '../../src/peer/dialect.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import type { PendingItem } from '../../src/state/entry.js';
import type { Standing, UplinkDeps } from '../../src/uplink/deps.js';
import { Isolation, lostTrouble } from '../../src/uplink/isolation.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const HOLD_MS = 20_000;

/**
 * The suspects of a peer whose index takes what comes within `updateMs`, or up to a commit, as one update, and refuses those with
 * poison.
 */
class Peer {
  readonly clock = new FakeClock();
  readonly items = new Map<string, PendingItem>();
  readonly confirmed = new Set<string>();
  readonly blamed = new Set<string>();
  readonly isolation: Isolation;
  readonly dialect: { current: Dialect };
  standing: Standing = 'there';
  /** The sizes of the groups that were pushed, and when. */
  readonly groups: { readonly size: number; readonly at: number }[] = [];
  /** Sees each group before it is pushed. @returns whether it is not pushed after all */
  onGroup: (group: readonly PendingItem[]) => boolean | undefined = () => undefined;
  isInRound = false;
  #update: { readonly names: string[]; readonly end: number } | undefined;

  constructor(
    readonly poison: ReadonlySet<string>,
    readonly updateMs = 3_000,
    readonly commits = true,
  ) {
    const state = { get: (_: string, path: string) => this.items.get(path) };
    const push = { ...QUICK.push, maxItems: 1_000, maxBytes: 2_000 * pendingRecord('f').version.size };
    const settings = { push, confirm: { ...QUICK.confirm, hold: HOLD_MS } };
    this.dialect = { current: DIALECTS.yacy };
    const { clock, dialect } = this;
    const deps = { state, clock, dialect, settings, standing: () => this.standing };
    this.isolation = new Isolation(deps as unknown as UplinkDeps);
  }

  /** Makes them suspects together. */
  lose(names: readonly string[]): void {
    for (const name of names) {
      const item: PendingItem = { ...pendingRecord(name), trouble: lostTrouble, notBefore: this.clock.now() };
      this.items.set(name, item);
      this.isolation.lost(item);
      this.isolation.take(item);
    }
  }

  /** Goes on until all suspects are confirmed or blamed. @returns how long that took, in holds */
  async run(): Promise<number> {
    const began = this.clock.elapsed();
    while (this.confirmed.size + this.blamed.size < this.items.size) {
      if (!this.isInRound && this.isolation.isDue(false)) this.begin();
      await this.clock.advance(HOLD_MS / 40);
      if (this.clock.elapsed() - began > 2_000 * HOLD_MS) throw new Error('the suspects come to no end');
    }
    return (this.clock.elapsed() - began) / HOLD_MS;
  }

  begin(): void {
    this.isInRound = true;
    const push = async (group: readonly PendingItem[]) => {
      this.groups.push({ size: group.length, at: this.clock.elapsed() });
      if (this.onGroup(group) !== true) this.push(group.map(({ path }) => path));
      if (this.commits) this.#update = undefined;
      this.isolation.pushed();
      return this.commits;
    };
    void this.isolation.round(push, new AbortController().signal).then(() => {
      this.isInRound = false;
    });
  }

  push(names: readonly string[]): void {
    const now = this.clock.elapsed();
    if (this.#update === undefined || this.#update.end <= now)
      this.#update = { names: [], end: now + this.updateMs };
    const { names: update } = this.#update;
    update.push(...names);
    this.clock.after(HOLD_MS, () => {
      const isRefused = update.some((name) => this.poison.has(name));
      for (const name of names)
        if (isRefused) this.#lost(name);
        else if (this.items.has(name)) {
          this.confirmed.add(name);
          this.isolation.forget(pendingRecord(name));
        }
    });
  }

  #lost(name: string): void {
    const item = this.items.get(name);
    if (item === undefined) return;
    if (!this.isolation.lost(item)) {
      this.isolation.take(item);
      return;
    }
    this.blamed.add(name);
    this.isolation.forget(item);
  }
}

const named = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

describe('items that were lost together', () => {
  it('are confirmed but for those that are to blame, however they are spread', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.nat(39), { maxLength: 4 }),
        fc.integer({ min: 100, max: HOLD_MS }),
        fc.boolean(),
        async (count, numbers, updateMs, commits) => {
          const poison = new Set(numbers.map((n) => `f${n % count}`));
          const peer = new Peer(poison, updateMs, commits);
          peer.lose(named(count));
          await peer.run();
          expect(peer.blamed).toEqual(poison);
        },
      ),
      { numRuns: 20 },
    );
  });

  it('of which one of 200 is to blame take less than 6 holds, and hardly any travels more than once', async () => {
    const peer = new Peer(new Set(['f77']));
    peer.lose(named(200));
    expect(await peer.run()).toBeLessThan(6);
    // In groups of 8, the group with the poison one by one, and that once more.
    expect(peer.groups.reduce((sum, { size }) => sum + size, 0)).toBe(200 + 8 + 1);
    expect([...peer.blamed]).toEqual(['f77']);
  });

  it('of which very many are to blame come to an end as well', async () => {
    const poison = named(200).filter((_, i) => i % 4 === 0);
    const peer = new Peer(new Set(poison));
    peer.lose(named(200));
    await peer.run();
    expect(peer.blamed).toEqual(new Set(poison));
  });

  it('are as few groups where they are thousands', async () => {
    const peer = new Peer(new Set(['f77']));
    peer.lose(named(5_000));
    peer.begin();
    await peer.clock.advance(HOLD_MS / 4);
    expect(peer.groups.map(({ size }) => size)).toEqual(Array.from({ length: 25 }, () => 200));
    await peer.run();
    expect([peer.confirmed.size, [...peer.blamed]]).toEqual([4_999, ['f77']]);
  });

  it('never travel in more than a batch may have', async () => {
    const peer = new Peer(new Set());
    peer.lose(named(30_000));
    peer.begin();
    await peer.clock.advance(HOLD_MS / 4);
    expect(peer.groups.map(({ size }) => size)).toEqual(Array.from({ length: 25 }, () => 1_000));
  });

  it('of which some go or change go on without them, whatever they were at', async () => {
    const peer = new Peer(new Set(['f0']));
    peer.lose(named(12));
    const goes = (name: string) => {
      peer.isolation.forget(pendingRecord(name));
      peer.items.delete(name);
    };
    goes('f11');
    peer.begin();
    goes('f10');
    peer.onGroup = () => {
      if (peer.groups.length === 2) goes('f5');
      if (peer.groups.length === 3) goes('f1');
      return false;
    };
    await peer.run();
    expect([...peer.blamed]).toEqual(['f0']);
    expect(peer.confirmed.size).toBe(7);
    expect(peer.isolation.isIdle).toBe(true);
  });

  it('that were not pushed after all wait again', async () => {
    const peer = new Peer(new Set());
    peer.lose(named(3));
    peer.onGroup = (group) => {
      peer.onGroup = () => undefined;
      for (const item of group) peer.isolation.take(item);
      return true;
    };
    await peer.run();
    expect(peer.confirmed.size).toBe(3);
  });
});

describe('one that was lost alone', () => {
  it('is pushed once more apart from all else by the hold', async () => {
    const peer = new Peer(new Set(['f0']));
    peer.lose(['f0']);
    peer.begin();
    await peer.clock.advance(1.5 * HOLD_MS);
    expect([peer.groups.length, peer.isInRound]).toEqual([1, false]);
    const before = peer.clock.elapsed();
    peer.isolation.pushed();
    peer.begin();
    await peer.clock.advance(1.5 * HOLD_MS);
    expect(peer.groups[1]).toEqual({ size: 1, at: before + HOLD_MS });
    expect(peer.isInRound).toBe(true);
    await peer.clock.advance(HOLD_MS / 2);
    expect(peer.isInRound).toBe(false);
  });

  it('is pushed as far apart where the other that was to go first goes away meanwhile', async () => {
    const peer = new Peer(new Set(['f0']));
    peer.lose(['f0']);
    peer.begin();
    await peer.clock.advance(1.5 * HOLD_MS);
    peer.lose(['f1']);
    const before = peer.clock.elapsed();
    peer.isolation.pushed();
    peer.begin();
    peer.isolation.forget(pendingRecord('f1'));
    peer.items.delete('f1');
    await peer.clock.advance(1.5 * HOLD_MS);
    expect(peer.groups[1]).toEqual({ size: 1, at: before + HOLD_MS });
  });
});

describe('what is pushed beside suspects', () => {
  it('waits for a quarter of the hold and while they are pushed, and goes on between two rounds', async () => {
    const peer = new Peer(new Set());
    peer.lose(named(4));
    expect(peer.isolation.isDue(true)).toBe(true);
    peer.begin();
    await peer.clock.advance(HOLD_MS / 4 - 1);
    expect(peer.groups).toEqual([]);
    await peer.clock.advance(1);
    expect(peer.groups.map(({ size }) => size)).toEqual([1, 1, 1, 1]);
    expect([peer.isInRound, peer.isolation.isDue(true)]).toEqual([false, false]);
    peer.lose(['late']);
    expect([peer.isolation.isDue(true), peer.isolation.isDue(false)]).toEqual([false, true]);
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.isDue(true)).toBe(true);
  });

  it('keeps its distance from the first suspects of another loss, too', async () => {
    const peer = new Peer(new Set());
    peer.lose(named(4));
    await peer.run();
    peer.isolation.pushed();
    peer.lose(['late']);
    const [groups, before] = [peer.groups.length, peer.clock.elapsed()];
    await peer.run();
    expect(peer.groups[groups]?.at).toBeGreaterThanOrEqual(before + HOLD_MS / 4);
  });

  it('keeps as much between two groups where the peer does not commit its index', async () => {
    const peer = new Peer(new Set(), 3_000, false);
    peer.lose(named(3));
    await peer.run();
    const [first = 0, second = 0, third = 0] = peer.groups.map(({ at }) => at);
    expect([second - first, third - second]).toEqual([HOLD_MS / 4, HOLD_MS / 4]);
  });

  it('costs the suspects one look into the state, however many there are', () => {
    const peer = new Peer(new Set());
    peer.lose(named(1_000));
    const items = vi.spyOn(peer.items, 'get');
    peer.isolation.isDue(true);
    peer.isolation.isDue(true);
    expect(items.mock.calls.length).toBe(2);
  });

  it('is not kept back by suspects of a folder that is missing, and they wait for it', async () => {
    const peer = new Peer(new Set());
    peer.standing = 'missing';
    peer.lose(named(8));
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.isDue(true)).toBe(false);
    expect(peer.isolation.isIdle).toBe(true);
    peer.standing = 'there';
    await peer.run();
    expect(peer.confirmed.size).toBe(8);
  });

  it('of the same file in another version is no suspect', () => {
    const peer = new Peer(new Set());
    peer.lose(['f0', 'f1']);
    const edited = { ...pendingRecord('f0'), version: { ...pendingRecord('f0').version, sha256: 'ee' } };
    expect(peer.isolation.take(edited)).toBe(false);
    expect(peer.isolation.has(edited)).toBe(false);
  });

  it('is all there is at a peer that loses no updates', () => {
    const peer = new Peer(new Set());
    peer.lose(['f0']);
    peer.dialect.current = DIALECTS.standard;
    const item = peer.items.get('f0');
    expect(item === undefined || peer.isolation.take(item)).toBe(false);
    expect(peer.isolation.isDue(false)).toBe(false);
  });
});
