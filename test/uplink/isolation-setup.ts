import { expect } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Dialect } from '../../src/peer/dialects/dialect.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { Entry, PendingItem } from '../../src/state/entry.js';
import { accepted, failed } from '../../src/state/transitions.js';
import { Blame } from '../../src/uplink/blame.js';
import type { FolderState, UplinkDeps } from '../../src/uplink/deps.js';
import { FailureAttribution } from '../../src/uplink/failure-attribution.js';
import { Isolation } from '../../src/uplink/isolation.js';
import { Reaches } from '../../src/uplink/reach.js';
import { UnansweredPushes } from '../../src/uplink/unanswered-pushes.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { FakePeer } from '../support/fake-peer.js';
import { QUICK } from '../support/uplink-world.js';

export const HOLD_MS = 20_000;
const NOT_SHOWN = { code: 'NOT_SHOWN', message: 'Not shown.', hint: 'Wait.' };

export interface IsolationOptions {
  /** The names of items that the peer accepts and loses together at the beginning. */
  readonly lost?: readonly string[];
  /** The names of the items at fault: the peer loses each update with one of them. */
  readonly poison?: readonly string[];
  /** The longest time between two documents of one update, in ms. */
  readonly updateMs?: number;
  /** Whether the index is committed after each push. */
  readonly commits?: boolean;
}

/**
 * An isolation and a failure attribution, with records in memory and a fake peer that loses
 * documents together. They are apart from a world because thousands of rounds are run: there are
 * no files, and a test itself says which items are lost or not shown.
 */
export class IsolationSetup {
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
  readonly #peer: FakePeer;
  readonly #commits: boolean;
  readonly #deps: UplinkDeps;
  #attribution: FailureAttribution;

  constructor({ lost = [], poison = [], updateMs = 3_000, commits = true }: IsolationOptions = {}) {
    const meta = new Map<string, unknown>();
    const state = {
      get: (_: string, path: string) => this.items.get(path),
      put: (entry: Entry) => void this.items.set(entry.path, entry),
      meta: (name: string) => meta.get(name),
      setMeta: (name: string, value: unknown) => void meta.set(name, value),
    };
    const settings = { push: QUICK.push, confirm: { ...QUICK.confirm, hold: HOLD_MS } };
    const { clock, dialect } = this;
    const because = poison.map((name) => pendingRecord(name).url);
    this.#peer = new FakePeer({ clock, losesUpdates: { because, withinMs: updateMs } });
    this.#commits = commits;
    const deps = {
      state,
      clock,
      dialect,
      settings,
      log: silentLogger,
      folders: { stateOf: () => this.folderState },
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
      unansweredPushes: new UnansweredPushes(this.#deps),
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
      if (!this.onPush(item)) await this.#push(item);
      if (this.#commits) await this.#peer.commitIndex();
      this.isolation.pushed();
      return this.#commits;
    };
    void this.isolation.round(push, new AbortController().signal).then(() => {
      this.isInRound = false;
    });
    await this.clock.advance(holds * HOLD_MS);
  }

  async #push(item: PendingItem): Promise<void> {
    const { url, collection, path } = item;
    await this.#peer.push([{ url, collection, data: Buffer.from(path) }]);
    this.clock.after(HOLD_MS, () => {
      if (!this.items.has(path)) return;
      if (this.#peer.documents.has(url)) this.confirmed.add(path);
      else this.#lost(item);
    });
  }

  #lost(item: PendingItem, isTaken = true): void {
    this.#attribution.lost(accepted(item, sentOf(item), this.clock.now()), 'no');
    const after = this.items.get(item.path);
    if (isTaken && after?.status === 'pending') expect(this.isolation.addIfLost(after)).toBe(true);
  }
}
