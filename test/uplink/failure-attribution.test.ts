import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Dialect } from '../../src/peer/dialects/dialect.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { yacyAddresses } from '../../src/peer/dialects/yacy-addresses.js';
import { accepted, type Entry, failed, type PendingItem } from '../../src/state/entry.js';
import { Blame } from '../../src/uplink/blame.js';
import type { FolderState, UplinkDeps } from '../../src/uplink/deps.js';
import { FailureAttribution } from '../../src/uplink/failure-attribution.js';
import { Isolation } from '../../src/uplink/isolation.js';
import { Reaches } from '../../src/uplink/reach.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const HOLD_MS = 20_000;
const PUBLIC = 'https://files.example.org/a.txt';
const LOCAL = 'http://vault.local/a.txt';
const NOT_SHOWN = { code: 'NOT_SHOWN', message: 'Not shown.', hint: 'Wait.' };
const named = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

/**
 * A YaCy in memory. Its index takes the items of `updateMs`, or those up to a commit, as one
 * update, and refuses an update with a poisonous item. It records the decisions about the items,
 * and their records.
 */
class Peer {
  readonly clock = new FakeClock();
  readonly items = new Map<string, Entry>();
  readonly confirmed = new Set<string>();
  readonly dialect: { current: Dialect } = { current: DIALECTS.yacy };
  folderState: FolderState = 'there';
  /** The time of each push. */
  readonly pushes: { readonly name: string; readonly at: number }[] = [];
  /**
   * Called with each item before its push.
   * @returns whether it is not pushed after all
   */
  onPush: (item: PendingItem) => boolean = () => false;
  /** Duration of a push, in ms. */
  pushMs = 0;
  isInRound = false;
  readonly isolation: Isolation;
  readonly #deps: UplinkDeps;
  #attribution: FailureAttribution;
  #update: { readonly names: string[]; readonly end: number } | undefined;

  /** @param lost the names of the items that it loses together at the beginning */
  constructor(
    lost: readonly string[] = [],
    readonly poison: readonly string[] = [],
    readonly updateMs = 3_000,
    readonly commits = true,
  ) {
    const meta = new Map<string, unknown>();
    const state = {
      get: (_: string, path: string) => this.items.get(path),
      put: (entry: Entry) => void this.items.set(entry.path, entry),
      meta: (name: string) => meta.get(name),
      setMeta: (name: string, value: unknown) => void meta.set(name, value),
    };
    const settings = { push: QUICK.push, confirm: { ...QUICK.confirm, hold: HOLD_MS } };
    const { clock, dialect } = this;
    const deps = {
      state,
      clock,
      dialect,
      settings,
      log: silentLogger,
      folderState: () => this.folderState,
    };
    this.#deps = deps as unknown as UplinkDeps;
    this.isolation = new Isolation(this.#deps);
    this.#attribution = this.#attributionOf();
    this.lose(...lost);
  }

  /** Starts a later run with the same records. */
  restart(): void {
    this.#attribution = this.#attributionOf();
  }

  #attributionOf(): FailureAttribution {
    return new FailureAttribution(this.#deps, {
      blame: new Blame(this.#deps),
      isolation: this.isolation,
      reaches: new Reaches(this.#deps),
    });
  }

  get quarantined(): Set<string> {
    return new Set(
      [...this.items.values()].flatMap((e) => (e.status === 'quarantined' ? [e.path] : [])),
    );
  }

  lose(...names: readonly string[]): void {
    for (const name of names) this.#lost({ ...pendingRecord(name), notBefore: this.clock.now() });
  }

  /**
   * Loses an item so many times.
   * @returns the final status of the item
   */
  loses(url: string, times: number): string {
    this.items.set('a.txt', { ...pendingRecord('a.txt'), url });
    for (let i = 0; i < times; i += 1) {
      const item = this.items.get('a.txt');
      if (item?.status === 'pending') this.#lost(item, false);
    }
    return this.#outcome();
  }

  /**
   * Shows the documents with these URLs, but not another one that it accepted for the `attempts`-th
   * time.
   */
  shows(shown: readonly string[], notShown?: string, attempts = 1): string {
    for (const url of shown) this.#attribution.shown(url);
    const now = this.clock.now();
    let item: PendingItem = { ...pendingRecord('a.txt'), url: notShown ?? '' };
    for (let i = 1; i < attempts; i += 1)
      item = failed(accepted(item, sentOf(item), now), NOT_SHOWN, now, now);
    if (notShown !== undefined)
      this.#attribution.notShown(accepted(item, sentOf(item), now), 10_000, 'no');
    return this.#outcome();
  }

  #outcome(): string {
    const { status, failure } = this.items.get('a.txt') ?? {};
    const network = failure?.hint.includes('network.unit.domain') ? ', see its network' : '';
    return `${status}: ${failure?.code}${network}`;
  }

  goes(name: string): void {
    this.isolation.forget(pendingRecord(name));
    this.items.delete(name);
  }

  /**
   * Runs rounds until all lost items are confirmed or quarantined.
   * @returns the time that took, in holds
   */
  async run(): Promise<number> {
    const began = this.clock.elapsed();
    while (this.confirmed.size + this.quarantined.size < this.items.size) {
      if (!this.isInRound && this.isolation.isDue(false)) void this.begin();
      await this.clock.advance(HOLD_MS / 40);
      if (this.clock.elapsed() - began > 2_000 * HOLD_MS)
        throw new Error('the isolation does not end');
    }
    return (this.clock.elapsed() - began) / HOLD_MS;
  }

  /**
   * Begins a round.
   * @param holds how long it is observed
   */
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
      else this.#lost(item);
    });
  }

  #lost(item: PendingItem, isTaken = true): void {
    this.#attribution.lost(accepted(item, sentOf(item), this.clock.now()), 'no');
    const after = this.items.get(item.path);
    if (isTaken && after?.status === 'pending') expect(this.isolation.addIfLost(after)).toBe(true);
  }
}

describe('items that were lost together', () => {
  it('are confirmed except for those at fault, wherever those are', async () => {
    const run = async (count: number, numbers: number[], updateMs: number, commits: boolean) => {
      const poison = new Set(numbers.map((n) => `f${n % count}`));
      const peer = new Peer(named(count), [...poison], updateMs, commits);
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
    const peer = new Peer(named(200), ['f77']);
    peer.pushMs = 50;
    expect(await peer.run()).toBeLessThan(6);
    expect(peer.pushes).toHaveLength(200 + 1);
    expect([...peer.quarantined]).toEqual(['f77']);
  });

  it('continue without those that are removed or not pushed after all', async () => {
    const peer = new Peer(named(12), ['f0']);
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
    const peer = new Peer(named(250));
    expect(peer.loses(PUBLIC, 1)).toBe('pending: LOST_WITH_MANY');
    expect(peer.isolation.addIfLost(peer.items.get('a.txt') as PendingItem)).toBe(false);
    peer.goes('f0');
    expect(peer.loses(PUBLIC, 1)).toBe('pending: LOST_FROM_INDEX');
  });
});

it.each(['', 'f1'])(
  'an item that was lost alone is pushed once more with a hold before and after it, even if %j is removed before its turn',
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

it('lost items are pushed even if the clock was set back by a day before a restart', () => {
  const peer = new Peer(['f0']);
  peer.clock.set(-86_400_000);
  peer.clock.restart();
  expect(peer.isolation.isDue(false)).toBe(true);
});

describe('the isolation of lost items', () => {
  it('begins after a quarter of the hold without a push, and lets other items go between two rounds', async () => {
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

  it('blocks other items for three quarters of the hold at most, however many are lost', async () => {
    const peer = new Peer(named(240));
    const get = vi.spyOn(peer.items, 'get');
    for (const _ of [1, 2]) peer.isolation.isDue(true);
    expect(get.mock.calls.length).toBe(2);
    peer.pushMs = 100;
    await peer.begin(0.75 + peer.pushMs / HOLD_MS);
    expect(peer.isInRound).toBe(false);
    expect(peer.pushes).toHaveLength(101);
  });

  it('keeps a quarter of the hold between two lost items if the peer does not commit its index', async () => {
    const peer = new Peer(named(3), [], 3_000, false);
    await peer.run();
    const [first = 0, second = 0, third = 0] = peer.pushes.map(({ at }) => at);
    expect([second - first, third - second]).toEqual([HOLD_MS / 4, HOLD_MS / 4]);
  });

  it('does not block other items for lost ones of a missing folder, which wait for it', async () => {
    const peer = new Peer();
    peer.folderState = 'missing';
    peer.lose(...named(8));
    await peer.clock.advance(HOLD_MS);
    expect([peer.isolation.isDue(true), peer.isolation.isIdle]).toEqual([false, true]);
    peer.folderState = 'there';
    await peer.run();
    expect(peer.confirmed.size).toBe(8);
  });

  it('is not for a new version of a lost item, nor for a peer that loses no updates', () => {
    const peer = new Peer(['f0', 'f1']);
    const item = peer.items.get('f1') as PendingItem;
    expect(peer.isolation.addIfLost(pendingRecord('f0'))).toBe(false);
    peer.dialect.current = DIALECTS.standard;
    expect(peer.isolation.addIfLost(item)).toBe(false);
    expect([peer.isolation.isDue(true), peer.isolation.isIdle]).toEqual([false, true]);
  });
});

it.each([
  ['once is pushed again in isolation', [PUBLIC], PUBLIC, 1, 'pending: LOST_FROM_INDEX'],
  ['alone is pushed once more', [PUBLIC], PUBLIC, 2, 'pending: LOST_FROM_INDEX'],
  ['alone twice is quarantined', [PUBLIC], PUBLIC, 3, 'quarantined: REFUSED_BY_INDEX'],
  [
    'once at an address that the peer never showed is pushed again',
    [PUBLIC],
    LOCAL,
    1,
    'pending: LOST_FROM_INDEX',
  ],
  [
    'twice at an address that the peer never showed is quarantined as gated',
    [PUBLIC],
    LOCAL,
    2,
    'quarantined: DOMAIN_GATE, see its network',
  ],
  [
    'twice is pushed again if the peer showed such an address',
    [PUBLIC, 'http://nas/b'],
    LOCAL,
    2,
    'pending: LOST_FROM_INDEX',
  ],
])('an item that is lost %s, also in a later run', (_, shown, url, times, outcome) => {
  const peer = new Peer();
  peer.shows(shown);
  expect(peer.loses(url, times)).toBe(outcome);
  peer.restart();
  expect(peer.loses(url, times)).toBe(outcome);
});

it.each([
  [
    'is gated if its reach is never shown and the other one is',
    DIALECTS.yacy,
    PUBLIC,
    2,
    'quarantined: DOMAIN_GATE, see its network',
  ],
  [
    'is not gated if its reach was shown, but the hint names the network',
    DIALECTS.yacy,
    LOCAL,
    3,
    'quarantined: NOT_SHOWN, see its network',
  ],
  [
    'is not gated if the dialect has no network',
    DIALECTS.standard,
    PUBLIC,
    3,
    'quarantined: NOT_SHOWN',
  ],
])('an item that is not shown %s', (_, dialect, shown, attempts, outcome) => {
  const peer = new Peer();
  peer.dialect.current = dialect;
  expect(peer.shows([shown], LOCAL, attempts)).toBe(outcome);
});

it.each(
  `local file:///srv/a.txt http://localhost/a http://127.0.0.1:8090/a http://172.16.0.1/a http://192.168.1.1/a
   local http://[::1]/a http://[fd12::1]/a https://wiki.internal/a http://user@nas:80/a
   global http://example.org/a https://files.example.org:8443/local/a http://172.32.0.1/a
   global http://[2001:db8::1]/a http://local.example.org/a`
    .split('\n')
    .map((line) => line.trim().split(' ')),
)('the reach %s has addresses such as %s', (reach, ...urls) => {
  for (const url of urls) expect([url, yacyAddresses.reachOf(url)]).toEqual([url, reach]);
});
