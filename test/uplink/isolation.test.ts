import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Dialect } from '../../src/peer/dialect.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import { accepted, lost, type PendingItem } from '../../src/state/entry.js';
import type { Standing, UplinkDeps } from '../../src/uplink/deps.js';
import { Isolation, lostTrouble, timesLost } from '../../src/uplink/failure-attribution.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const HOLD_MS = 20_000;
const named = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

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
  readonly dialect: { current: Dialect } = { current: DIALECTS.yacy };
  standing: Standing = 'there';
  /** When each was pushed. */
  readonly pushes: { readonly name: string; readonly at: number }[] = [];
  /** Sees each item before it is pushed. @returns whether it is not pushed after all */
  onPush: (item: PendingItem) => boolean = () => false;
  /** How long a push takes. */
  pushMs = 0;
  isInRound = false;
  #update: { readonly names: string[]; readonly end: number } | undefined;

  /** @param suspects what it loses together at the beginning */
  constructor(
    suspects: readonly string[],
    readonly poison: readonly string[] = [],
    readonly updateMs = 3_000,
    readonly commits = true,
  ) {
    const state = { get: (_: string, path: string) => this.items.get(path) };
    const settings = { push: QUICK.push, confirm: { ...QUICK.confirm, hold: HOLD_MS } };
    const { clock, dialect } = this;
    const deps = { state, clock, dialect, settings, standing: () => this.standing };
    this.isolation = new Isolation(deps as unknown as UplinkDeps);
    this.lose(...suspects);
  }

  lose(...names: readonly string[]): void {
    for (const name of names) this.#lost({ ...pendingRecord(name), notBefore: this.clock.now() });
  }

  goes(name: string): void {
    this.isolation.forget(pendingRecord(name));
    this.items.delete(name);
  }

  /** Goes on until all suspects are confirmed or blamed. @returns how long that took, in holds */
  async run(): Promise<number> {
    const began = this.clock.elapsed();
    while (this.confirmed.size + this.blamed.size < this.items.size) {
      if (!this.isInRound && this.isolation.isDue(false)) void this.begin();
      await this.clock.advance(HOLD_MS / 40);
      if (this.clock.elapsed() - began > 2_000 * HOLD_MS) throw new Error('the suspects come to no end');
    }
    return (this.clock.elapsed() - began) / HOLD_MS;
  }

  /** Begins a round. @param holds how long it is watched */
  async begin(holds = 0): Promise<void> {
    this.isInRound = true;
    const push = async (item: PendingItem) => {
      this.pushes.push({ name: item.path, at: this.clock.elapsed() });
      if (this.pushMs > 0) await this.clock.sleep(this.pushMs);
      if (!this.onPush(item)) this.#push(item);
      if (this.commits) this.#update = undefined;
      this.isolation.pushed();
      return this.commits;
    };
    void this.isolation.round(push, new AbortController().signal).then(() => {
      this.isInRound = false;
    });
    await this.clock.advance(holds * HOLD_MS);
  }

  #push(item: PendingItem): void {
    const now = this.clock.elapsed();
    if (this.#update === undefined || this.#update.end <= now)
      this.#update = { names: [], end: now + this.updateMs };
    const { names: update } = this.#update;
    update.push(item.path);
    this.clock.after(HOLD_MS, () => {
      if (!this.items.has(item.path)) return;
      if (!update.some((name) => this.poison.includes(name))) this.confirmed.add(item.path);
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

describe('items that were lost together', () => {
  it('are confirmed but for those that are to blame, however they are spread', async () => {
    const run = async (count: number, numbers: number[], updateMs: number, commits: boolean) => {
      const poison = new Set(numbers.map((n) => `f${n % count}`));
      const peer = new Peer(named(count), [...poison], updateMs, commits);
      await peer.run();
      expect(peer.blamed).toEqual(poison);
    };
    const poison = fc.array(fc.nat(39), { maxLength: 4 });
    const updateMs = fc.integer({ min: 100, max: HOLD_MS });
    const any = fc.asyncProperty(fc.integer({ min: 1, max: 40 }), poison, updateMs, fc.boolean(), run);
    await fc.assert(any, { numRuns: 20 });
  });

  it('of which one of 200 is to blame take less than 6 holds, and each other travels once', async () => {
    const peer = new Peer(named(200), ['f77']);
    peer.pushMs = 50;
    expect(await peer.run()).toBeLessThan(6);
    expect(peer.pushes).toHaveLength(200 + 1);
    expect([...peer.blamed]).toEqual(['f77']);
  });

  it('of which some go, or are not pushed after all, go on without them', async () => {
    const peer = new Peer(named(12), ['f0']);
    peer.goes('f11');
    void peer.begin();
    peer.goes('f10');
    peer.onPush = (item) => {
      if (peer.pushes.length === 2) peer.goes('f5');
      if (peer.pushes.length === 3) peer.goes('f1');
      return peer.pushes.length === 4 && peer.isolation.take(item);
    };
    await peer.run();
    expect([...peer.blamed]).toEqual(['f0']);
    expect(peer.confirmed.size).toBe(7);
    expect(peer.isolation.isIdle).toBe(true);
  });
});

it.each(['', 'f1'])(
  'one that was lost alone is pushed once more apart from all else by the hold, though %j was to go first and went',
  async (other) => {
    const peer = new Peer(['f0'], ['f0']);
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

describe('what is pushed beside suspects', () => {
  it('waits for a quarter of the hold and while they are pushed, and goes on between two rounds', async () => {
    const peer = new Peer(named(4));
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

  it('waits for no longer than three quarters of the hold, however many they are', async () => {
    const peer = new Peer(named(1_000));
    const get = vi.spyOn(peer.items, 'get');
    for (const _ of [1, 2]) peer.isolation.isDue(true);
    expect(get.mock.calls.length).toBe(2);
    peer.pushMs = 100;
    await peer.begin(0.75 + peer.pushMs / HOLD_MS);
    expect(peer.isInRound).toBe(false);
    expect(peer.pushes).toHaveLength(101);
  });

  it('keeps as much between two of them where the peer does not commit its index', async () => {
    const peer = new Peer(named(3), [], 3_000, false);
    await peer.run();
    const [first = 0, second = 0, third = 0] = peer.pushes.map(({ at }) => at);
    expect([second - first, third - second]).toEqual([HOLD_MS / 4, HOLD_MS / 4]);
  });

  it('is not kept back by suspects of a folder that is missing, and they wait for it', async () => {
    const peer = new Peer([]);
    peer.standing = 'missing';
    peer.lose(...named(8));
    await peer.clock.advance(HOLD_MS);
    expect([peer.isolation.isDue(true), peer.isolation.isIdle]).toEqual([false, true]);
    peer.standing = 'there';
    await peer.run();
    expect(peer.confirmed.size).toBe(8);
  });

  it('is all there is of another version, and at a peer that loses no updates', () => {
    const peer = new Peer(['f0', 'f1']);
    const item = peer.items.get('f1');
    expect(peer.isolation.take(pendingRecord('f0'))).toBe(false);
    peer.dialect.current = DIALECTS.standard;
    expect(item && peer.isolation.take(item)).toBe(false);
    expect([peer.isolation.isDue(true), peer.isolation.isIdle]).toEqual([false, true]);
  });
});
