import { join } from 'node:path';
import { expect } from 'vitest';
import type { Config } from '../../src/config/config.js';
import { loadConfig } from '../../src/config/load.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Statistics, type TimeToSearch } from '../../src/report/statistics.js';
import type { ConfirmedItem, Entry, PendingItem } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { accepted, confirmed, quarantined, read } from '../../src/state/transitions.js';
import { sentOf } from '../state/records.js';
import { DiskWithFaults } from '../state/state-disk.js';
import { afterwards } from '../support/afterwards.js';
import { writeConfig } from '../support/config.js';
import { FakeClock } from '../support/fake-clock.js';
import { loggerTo } from '../support/logger.js';
import { temporaryDirectory } from '../support/temp.js';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
const SETTLE = 2 * SECOND;
export const TROUBLE = { code: 'X', message: 'It is refused.', hint: 'Change it.' };

/** A configuration with the folder `inbox`, and its state, without a daemon. */
export async function setUp(folder: object = {}) {
  const directory = temporaryDirectory();
  const peer = { url: 'http://127.0.0.1:1' };
  const { config } = await loadConfig(
    writeConfig(directory, { peer, folders: [{ name: 'inbox', ...folder }] }),
  );
  const disk = new DiskWithFaults();
  const clock = new FakeClock();
  const state = await State.open(config.state.dir, { clock, log: silentLogger, open: disk.open });
  afterwards('test', () => state.close());
  return { config, disk, clock, state, inbox: join(directory, 'inbox'), now: clock.now() };
}

/** A desk that is open, with an alert where files become searchable later than this. */
export async function desk(limitMs?: number): Promise<Desk> {
  const made = new Desk(limitMs);
  await made.open();
  afterwards('test', () => made.close());
  return made;
}

export function expectNear(told: number | undefined, ms: number, within = 0.04): void {
  expect(Math.abs((told ?? Number.NaN) - ms)).toBeLessThanOrEqual(ms * within);
}

/** A state in which a test lets files come and become searchable, and the figures of it. */
export class Desk {
  readonly clock = new FakeClock();
  readonly dir = temporaryDirectory();
  /** The messages in the log. */
  readonly said: string[] = [];
  readonly log = loggerTo(this.said);
  state!: State;
  figures!: Statistics;

  constructor(public limitMs?: number) {}

  /** Another run of the daemon. */
  async open(): Promise<void> {
    this.clock.restart();
    this.state = await State.open(this.dir, { clock: this.clock, log: this.log });
    await this.begin();
  }

  /** Counts anew. */
  async begin(): Promise<void> {
    const folders = [{ name: 'f', path: '/srv/f', collection: 'docs', settle: SETTLE, rules: [] }];
    this.figures = new Statistics({
      state: this.state,
      clock: this.clock,
      log: this.log,
      settings: () => ({ folders, alerts: { timeToSearch: this.limitMs } }) as unknown as Config,
    });
    await this.figures.start();
    await this.figures.recalled;
  }

  async close(): Promise<void> {
    let isOver = false;
    const stopped = this.figures.stop().finally(() => {
      isOver = true;
    });
    while (!isOver) await this.clock.advance(0);
    await stopped;
    await this.state.close();
  }

  get alerts() {
    return this.figures.report().alerts;
  }

  row(collection = 'docs'): TimeToSearch {
    const row = this.figures.report().timeToSearch.find((one) => one.collection === collection);
    if (row === undefined) throw new Error(`nothing is known of ${collection}`);
    return row;
  }

  /** Files that were changed now, and are found once they are at rest. */
  async drop(...paths: string[]): Promise<void> {
    const changedAt = this.clock.now();
    await this.clock.advance(SETTLE);
    for (const path of paths) await this.find(path, changedAt);
  }

  /** A file that was changed then is found now. */
  async find(path: string, changedAt: number, collection = 'docs'): Promise<void> {
    const to = { folder: 'f', path, url: `https://x.example/${path}`, collection };
    const version = {
      size: 1,
      mtimeMs: 0,
      ctimeMs: changedAt,
      ino: 1,
      encoding: 'utf-8' as const,
      sha256: String(changedAt).padStart(64, '0'),
    };
    const now = this.clock.now();
    this.state.put(read(this.get(path), to, version, now, Math.min(now, changedAt + SETTLE)));
    await this.state.commit();
  }

  /** Files become searchable so long after they were at rest. */
  async searchable(afterMs: number, ...paths: string[]): Promise<void> {
    await this.drop(...paths);
    await this.clock.advance(afterMs);
    for (const path of paths) await this.confirm(path);
  }

  /** Files were confirmed now, so long after they were at rest, and reach the disk together. */
  async confirmedBefore(afterMs: number, paths: readonly string[]): Promise<void> {
    const now = this.clock.now();
    const at = now - afterMs;
    for (const path of paths) {
      const to = { folder: 'f', path, url: `https://x.example/${path}`, collection: 'docs' };
      const sha256 = '0'.repeat(64);
      const stat = { size: 1, mtimeMs: 0, ctimeMs: at, ino: 1 };
      const item = read(undefined, to, { ...stat, encoding: 'utf-8', sha256 }, at, at);
      if (item.status !== 'pending') throw new Error(`${path} is ${item.status}`);
      const inPeer = accepted(item, { ...sentOf(item), at: now }, now);
      this.state.put(confirmed(inPeer, { kind: 'digest', at: now, shown: 'it' }, now));
    }
    await this.state.commit();
  }

  async accept(path: string): Promise<void> {
    const item = this.#pending(path);
    const now = this.clock.now();
    this.state.put(accepted(item, { ...sentOf(item), at: now }, now));
    await this.state.commit();
  }

  async confirm(path: string): Promise<void> {
    if (this.get(path)?.status === 'pending') await this.accept(path);
    const item = this.get(path);
    if (item?.status !== 'accepted') throw new Error(`${path} is ${item?.status}`);
    const now = this.clock.now();
    this.state.put(confirmed(item, { kind: 'digest', at: now, shown: 'it' }, now));
    await this.state.commit();
  }

  async quarantine(path: string): Promise<void> {
    const item = this.#pending(path);
    this.state.put(quarantined(item, item, item.version, TROUBLE, this.clock.now()));
    await this.state.commit();
  }

  /** A confirmed file is found with the content that it had, changed now. */
  async touch(path: string, item: ConfirmedItem): Promise<void> {
    const now = this.clock.now();
    this.state.put(read(this.get(path), item, { ...item.version, ctimeMs: now }, now));
    await this.state.commit();
  }

  get(path: string): Entry | undefined {
    return this.state.get('f', path);
  }

  confirmed(path: string): ConfirmedItem {
    const item = this.get(path);
    if (item?.status !== 'confirmed') throw new Error(`${path} is ${item?.status}`);
    return item;
  }

  #pending(path: string): PendingItem {
    const item = this.get(path);
    if (item?.status !== 'pending') throw new Error(`${path} is ${item?.status}`);
    return item;
  }
}
