import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Dialect } from '../../src/peer/dialect.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import type { PendingItem } from '../../src/state/entry.js';
import { accepted, lost } from '../../src/state/entry.js';
import type { Standing, UplinkDeps } from '../../src/uplink/deps.js';
import { Isolation, lostTrouble, timesLost } from '../../src/uplink/failure-attribution.js';
import { pendingRecord, sentOf } from '../state/records.js';
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
  /** When each was pushed. */
  readonly pushes: { readonly name: string; readonly at: number }[] = [];
  /** Sees each item before it is pushed. @returns whether it is not pushed after all */
  onPush: (item: PendingItem) => boolean | undefined = () => undefined;
  /** How long a push takes. */
  pushMs = 0;
  isInRound = false;
  #update: { readonly names: string[]; readonly end: number } | undefined;

  constructor(
    readonly poison: ReadonlySet<string>,
    readonly updateMs = 3_000,
    readonly commits = true,
  ) {
    const state = { get: (_: string, path: string) => this.items.get(path) };
    const settings = { push: QUICK.push, confirm: { ...QUICK.confirm, hold: HOLD_MS } };
    this.dialect = { current: DIALECTS.yacy };
    const { clock, dialect } = this;
    const deps = { state, clock, dialect, settings, standing: () => this.standing };
    this.isolation = new Isolation(deps as unknown as UplinkDeps);
  }

  /** Makes them suspects together. */
  lose(names: readonly string[]): void {
    for (const name of names) this.#lost({ ...pendingRecord(name), notBefore: this.clock.now() });
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
    const push = async (item: PendingItem) => {
      this.pushes.push({ name: item.path, at: this.clock.elapsed() });
      if (this.pushMs > 0) await this.clock.sleep(this.pushMs);
      if (this.onPush(item) !== true) this.#push(item);
      if (this.commits) this.#update = undefined;
      this.isolation.pushed();
      return this.commits;
    };
    void this.isolation.round(push, new AbortController().signal).then(() => {
      this.isInRound = false;
    });
  }

  #push(item: PendingItem): void {
    const now = this.clock.elapsed();
    if (this.#update === undefined || this.#update.end <= now)
      this.#update = { names: [], end: now + this.updateMs };
    const { names: update } = this.#update;
    update.push(item.path);
    this.clock.after(HOLD_MS, () => {
      if (!this.items.has(item.path)) return;
      if (!update.some((name) => this.poison.has(name))) this.confirmed.add(item.path);
      else if (timesLost(item) === 2) this.blamed.add(item.path);
      else this.#lost(item);
    });
  }

  #lost(item: PendingItem): void {
    const now = this.clock.now();
    const again = lost(accepted(item, sentOf(item), now), lostTrouble, now);
    this.items.set(item.path, again);
    expect(this.isolation.take(again)).toBe(true);
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

  it('of which one of 200 is to blame take less than 6 holds, and each other travels once', async () => {
    const peer = new Peer(new Set(['f77']));
    peer.pushMs = 50;
    peer.lose(named(200));
    expect(await peer.run()).toBeLessThan(6);
    expect(peer.pushes).toHaveLength(200 + 1);
    expect([...peer.blamed]).toEqual(['f77']);
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
    peer.onPush = () => {
      if (peer.pushes.length === 2) goes('f5');
      if (peer.pushes.length === 3) goes('f1');
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
    peer.onPush = (item) => {
      peer.onPush = () => undefined;
      peer.isolation.take(item);
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
    expect([peer.pushes.length, peer.isInRound]).toEqual([1, false]);
    const before = peer.clock.elapsed();
    peer.isolation.pushed();
    peer.begin();
    await peer.clock.advance(1.5 * HOLD_MS);
    expect(peer.pushes[1]).toEqual({ name: 'f0', at: before + HOLD_MS });
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
    expect(peer.pushes[1]).toEqual({ name: 'f0', at: before + HOLD_MS });
  });
});

describe('what is pushed beside suspects', () => {
  it('waits for a quarter of the hold and while they are pushed, and goes on between two rounds', async () => {
    const peer = new Peer(new Set());
    peer.lose(named(4));
    expect(peer.isolation.isDue(true)).toBe(true);
    peer.begin();
    await peer.clock.advance(HOLD_MS / 4 - 1);
    expect(peer.pushes).toEqual([]);
    await peer.clock.advance(1);
    expect(peer.pushes.map(({ name }) => name)).toEqual(named(4));
    expect([peer.isInRound, peer.isolation.isDue(true)]).toEqual([false, false]);
    peer.lose(['late']);
    expect([peer.isolation.isDue(true), peer.isolation.isDue(false)]).toEqual([false, true]);
    await peer.clock.advance(HOLD_MS);
    expect(peer.isolation.isDue(true)).toBe(true);
  });

  it('waits for no longer than three quarters of the hold, however many they are', async () => {
    const peer = new Peer(new Set());
    peer.pushMs = 100;
    peer.lose(named(1_000));
    peer.begin();
    await peer.clock.advance(0.75 * HOLD_MS + peer.pushMs);
    expect(peer.isInRound).toBe(false);
    expect(peer.pushes).toHaveLength(101);
  });

  it('keeps its distance from the first suspects of another loss, too', async () => {
    const peer = new Peer(new Set());
    peer.lose(named(4));
    await peer.run();
    peer.isolation.pushed();
    peer.lose(['late']);
    const [pushes, before] = [peer.pushes.length, peer.clock.elapsed()];
    await peer.run();
    expect(peer.pushes[pushes]?.at).toBeGreaterThanOrEqual(before + HOLD_MS / 4);
  });

  it('keeps as much between two of them where the peer does not commit its index', async () => {
    const peer = new Peer(new Set(), 3_000, false);
    peer.lose(named(3));
    await peer.run();
    const [first = 0, second = 0, third = 0] = peer.pushes.map(({ at }) => at);
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
    expect(peer.isolation.take(pendingRecord('f0'))).toBe(false);
    expect(peer.isolation.take(pendingRecord('f1'))).toBe(false);
    expect(peer.isolation.isIdle).toBe(true);
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
