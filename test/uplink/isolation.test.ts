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
  pushes = 0;
  #update: { readonly names: string[]; readonly end: number } | undefined;

  constructor(
    readonly poison: ReadonlySet<string>,
    readonly updateMs: number,
  ) {
    const state = { get: (_: string, path: string) => this.items.get(path) };
    this.isolation = new Isolation(
      { state, clock: this.clock, standing: () => this.standing },
      { ms: HOLD_MS },
    );
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
    const began = this.clock.monotonic();
    while (this.confirmed.size + this.blamed.size < this.items.size) {
      const group = this.isolation.next(others);
      if (group.length > 0) {
        this.push(group.map(({ path }) => path));
        this.isolation.pushed();
        this.isolation.tested(group);
      }
      await this.clock.advance(100);
      if (this.clock.monotonic() - began > 1_000 * HOLD_MS) throw new Error('the suspects come to no end');
    }
    return (this.clock.monotonic() - began) / HOLD_MS;
  }

  push(names: readonly string[]): void {
    this.pushes += names.length;
    const now = this.clock.monotonic();
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
    if (this.isolation.isAlone(item)) {
      const { times, hadCompany } = this.isolation.failedAlone(item);
      if (times >= 2) {
        this.blamed.set(name, hadCompany);
        this.isolation.forget(item);
        return;
      }
    }
    this.isolation.suspect(item);
    this.isolation.take(item);
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
      expect(peer.isolation.next(false)).toEqual([]);
      await peer.clock.advance(100);
    }
    await peer.clock.advance(HOLD_MS / 4);
    expect(peer.isolation.next(false)).toHaveLength(10);
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
  it('waits for a quarter of the hold before and behind each test, and may go on between two', async () => {
    const peer = new Peer(new Set(['f0']), 3_000);
    peer.lose(named(4));
    expect(peer.isolation.keepsOthers).toBe(false);
    expect(peer.isolation.next(true)).toEqual([]);
    await peer.clock.advance(HOLD_MS / 4);
    const first = peer.isolation.next(true);
    expect(first).toHaveLength(1);
    expect(peer.isolation.keepsOthers).toBe(true);
    peer.isolation.pushed();
    peer.isolation.tested(first);
    expect(peer.isolation.keepsOthers).toBe(true);
    await peer.clock.advance(HOLD_MS / 4);
    expect(peer.isolation.keepsOthers).toBe(false);
    peer.isolation.pushed();
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.keepsOthers).toBe(true);
    expect(peer.isolation.next(true)).toHaveLength(1);
  });

  it('is not kept back by suspects of a folder that is missing, and they wait for it', async () => {
    const peer = new Peer(new Set(), 3_000);
    peer.standing = 'missing';
    peer.lose(named(8));
    await peer.clock.advance(HOLD_MS);
    expect([peer.isolation.next(false), peer.isolation.keepsOthers, peer.isolation.isIdle]).toEqual([
      [],
      false,
      true,
    ]);
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
});
