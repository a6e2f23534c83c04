import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PendingItem } from '../../src/state/entry.js';
import { Isolation, lostTrouble } from '../../src/uplink/isolation.js';
import type { Standing } from '../../src/uplink/parts.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';

const HOLD_MS = 20_000;

/** The suspects of a peer whose index takes what comes within `updateMs` as one update, and refuses those with poison. */
class Peer {
  readonly clock = new FakeClock();
  readonly items = new Map<string, PendingItem>();
  readonly confirmed = new Set<string>();
  readonly blamed = new Map<string, boolean>();
  readonly isolation: Isolation;
  standing: Standing = 'there';
  isNeeded = true;
  pushes = 0;
  #update: { readonly names: string[]; readonly end: number } | undefined;

  constructor(
    readonly poison: ReadonlySet<string>,
    readonly updateMs: number,
  ) {
    const state = { get: (_: string, path: string) => this.items.get(path) };
    const parts = { state, clock: this.clock, standing: () => this.standing, isNeeded: () => this.isNeeded };
    this.isolation = new Isolation(parts, { ms: HOLD_MS });
  }

  lose(names: readonly string[]): void {
    for (const name of names) {
      const item: PendingItem = { ...pendingRecord(name), trouble: lostTrouble, notBefore: this.clock.now() };
      this.items.set(name, item);
      this.isolation.take(item);
    }
  }

  /** Goes on until all suspects are confirmed or blamed. @returns how long that took, in holds */
  async run(others = false): Promise<number> {
    const began = this.clock.elapsed();
    while (this.confirmed.size + this.blamed.size < this.items.size) {
      const decision = this.isolation.decide(others, false);
      if (decision.push !== undefined) {
        this.push(decision.push.map(({ path }) => path));
        this.isolation.pushed(true);
      }
      await this.clock.advance(100);
      if (this.clock.elapsed() - began > 1_000 * HOLD_MS) throw new Error('the suspects come to no end');
    }
    return (this.clock.elapsed() - began) / HOLD_MS;
  }

  push(names: readonly string[]): void {
    this.pushes += names.length;
    const now = this.clock.elapsed();
    if (this.#update === undefined || this.#update.end <= now)
      this.#update = { names: [], end: now + this.updateMs };
    const { names: update } = this.#update;
    update.push(...names);
    this.clock.after(HOLD_MS, () => {
      const isRefused = update.some((name) => this.poison.has(name));
      for (const name of names)
        if (isRefused) this.#lost(name);
        else {
          this.confirmed.add(name);
          this.isolation.forget(pendingRecord(name));
        }
    });
  }

  #lost(name: string): void {
    const item = this.items.get(name);
    if (item === undefined) return;
    const { timesAlone, hadCompany } = this.isolation.lost(item, true);
    if (timesAlone < 2) {
      this.isolation.take(item);
      return;
    }
    this.blamed.set(name, hadCompany);
    this.isolation.forget(item);
  }
}

const named = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

describe('items that were lost together', () => {
  it('are confirmed but for those that are to blame, however they are spread', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.nat(59), { maxLength: 5 }),
        fc.integer({ min: 100, max: HOLD_MS / 4 }),
        async (count, numbers, updateMs) => {
          const poison = new Set(numbers.map((n) => `f${n % count}`));
          const peer = new Peer(poison, updateMs);
          peer.lose(named(count));
          await peer.run();
          expect(new Set(peer.blamed.keys())).toEqual(poison);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('blames no innocent even where the updates of the peer are longer than two pushes are apart', async () => {
    const peer = new Peer(new Set(['f3']), HOLD_MS / 2);
    peer.lose(named(20));
    await peer.run();
    expect([...peer.blamed.keys()]).toEqual(['f3']);
  });

  it('of which one of 200 is to blame take 8 holds, and each travels a few times', async () => {
    const peer = new Peer(new Set(['f77']), 3_000);
    peer.lose(named(200));
    expect(await peer.run()).toBeLessThan(9);
    expect(peer.pushes).toBeLessThanOrEqual(200 + 50 + 13 + 4 + 2);
    expect(peer.blamed.get('f77')).toBe(true);
  });

  it('are waited for until all of an update are known', async () => {
    const peer = new Peer(new Set(), 3_000);
    for (const name of named(40)) {
      peer.lose([name]);
      expect(peer.isolation.decide(false, false).push).toBeUndefined();
      await peer.clock.advance(100);
    }
    await peer.clock.advance(HOLD_MS / 4);
    expect(peer.isolation.decide(false, false).push).toHaveLength(10);
  });

  it('that were not pushed after all wait in the same group', async () => {
    const peer = new Peer(new Set(), 3_000);
    peer.lose(named(16));
    await peer.clock.advance(HOLD_MS / 4);
    const { push = [] } = peer.isolation.decide(false, false);
    expect(push).toHaveLength(4);
    for (const item of push) peer.isolation.take(item);
    peer.isolation.pushed(true);
    await peer.clock.advance(HOLD_MS / 4);
    const sizes: number[] = [];
    for (let i = 0; i < 4; i += 1) {
      const decision = peer.isolation.decide(false, false);
      sizes.push(decision.push?.length ?? 0);
      peer.isolation.pushed(true);
      await peer.clock.advance(HOLD_MS / 4);
    }
    expect(sizes).toEqual([4, 4, 4, 4]);
  });

  it('of which some go or change go on without them, whatever they were at', async () => {
    const peer = new Peer(new Set(['f0']), 3_000);
    peer.lose(named(12));
    peer.isolation.forget(pendingRecord('f11'));
    peer.items.delete('f11');
    await peer.clock.advance(HOLD_MS / 4);
    peer.isolation.forget(pendingRecord('f10'));
    peer.items.delete('f10');
    const { push = [] } = peer.isolation.decide(false, false);
    peer.push(push.map(({ path }) => path));
    peer.isolation.pushed(true);
    const [, second] = push;
    if (second === undefined) throw new Error('the first group is too small');
    peer.isolation.forget(second);
    peer.items.delete(second.path);
    await peer.run();
    expect([...peer.blamed.keys()]).toEqual(['f0']);
    expect(peer.isolation.isIdle).toBe(true);
  });

  it('come back as one suspect when they are lost again after they were forgotten', async () => {
    const peer = new Peer(new Set(), 3_000);
    peer.lose(['x', 'a', 'b']);
    peer.isolation.forget(pendingRecord('x'));
    peer.lose(['x']);
    await peer.run();
    expect(peer.confirmed).toEqual(new Set(['x', 'a', 'b']));
  });
});

describe('one that was lost alone', () => {
  it('is told from one that took others along', async () => {
    const peer = new Peer(new Set(['f0']), 3_000);
    peer.lose(['f0']);
    await peer.run();
    expect(peer.blamed.get('f0')).toBe(false);
  });
});

describe('what is pushed beside suspects', () => {
  it('waits for a quarter of the hold before and behind each group, and may go on between two', async () => {
    const peer = new Peer(new Set(['f0']), 3_000);
    peer.lose(named(4));
    expect(peer.isolation.decide(true, false)).toMatchObject({ blocksOthers: false });
    await peer.clock.advance(HOLD_MS / 8);
    expect(peer.isolation.decide(true, false)).toEqual({ blocksOthers: true, againInMs: HOLD_MS / 8 });
    await peer.clock.advance(HOLD_MS / 8);
    expect(peer.isolation.decide(true, true)).toEqual({ blocksOthers: true, againInMs: undefined });
    expect(peer.isolation.decide(true, false).push).toHaveLength(1);
    expect(peer.isolation.decide(true, true)).toEqual({ blocksOthers: true, againInMs: undefined });
    peer.isolation.pushed(true);
    expect(peer.isolation.decide(true, false)).toEqual({ blocksOthers: true, againInMs: HOLD_MS / 4 });
    await peer.clock.advance(HOLD_MS / 4);
    expect(peer.isolation.decide(true, false)).toEqual({ blocksOthers: false, againInMs: HOLD_MS });
    peer.isolation.pushed();
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.decide(true, false).push).toHaveLength(1);
  });

  it('is not kept back by suspects of a folder that is missing, and they wait for it', async () => {
    const peer = new Peer(new Set(), 3_000);
    peer.standing = 'missing';
    peer.lose(named(8));
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.decide(true, false)).toEqual({ blocksOthers: false, againInMs: 5_000 });
    expect(peer.isolation.isIdle).toBe(true);
    peer.standing = 'there';
    await peer.run();
    expect(peer.confirmed.size).toBe(8);
  });

  it('of the same file in another version is no suspect', async () => {
    const peer = new Peer(new Set(), 3_000);
    peer.lose(['f0', 'f1']);
    const edited = { ...pendingRecord('f0'), version: { ...pendingRecord('f0').version, sha256: 'ee' } };
    expect(peer.isolation.take(edited)).toBe(false);
    expect(peer.isolation.has(edited)).toBe(false);
  });

  it('is all there is at a peer that loses no updates', async () => {
    const peer = new Peer(new Set(), 3_000);
    peer.lose(['f0']);
    peer.isNeeded = false;
    const item = peer.items.get('f0');
    expect(item === undefined || peer.isolation.take(item)).toBe(false);
    expect(peer.isolation.decide(true, false)).toEqual({ blocksOthers: false, againInMs: undefined });
  });
});
