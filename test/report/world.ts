import type { Config } from '../../src/config/config.js';
import type { Logger } from '../../src/lib/logger.js';
import { Statistics } from '../../src/report/statistics.js';
import type { PendingItem } from '../../src/state/entry.js';
import { accepted, confirmed, quarantined, read } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

export const SETTLE = 2_000;

/** A state in which a test lets files come and become searchable, and the figures of it. */
export class Desk {
  readonly clock = new FakeClock();
  readonly dir = temporaryDirectory();
  readonly lines: string[] = [];
  limitMs: number | undefined;
  folders = [
    { name: 'f', path: '/srv/f', collection: 'docs', settle: SETTLE, rules: [] as { collection: string }[] },
  ];
  state!: State;
  figures!: Statistics;

  async open(): Promise<void> {
    this.clock.restart();
    this.state = await State.open(this.dir, { clock: this.clock, log: this.log });
    this.figures = this.make();
    await this.figures.start();
    await this.figures.recalled;
  }

  make(): Statistics {
    return new Statistics({
      ...{ state: this.state, clock: this.clock, log: this.log },
      settings: () =>
        ({ folders: this.folders, alerts: { timeToSearch: this.limitMs } }) as unknown as Config,
    });
  }

  async close(): Promise<void> {
    await this.meanwhile(this.figures.stop());
    await this.state.close();
  }

  /** Lets the clock run while something is done that pauses now and then. */
  async meanwhile<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    while (!isOver) await this.clock.advance(0);
    return await over;
  }

  get log(): Logger {
    const say = (level: string) => (_: object, message: string) =>
      void this.lines.push(`${level}: ${message}`);
    return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  }

  /** What a person read in the log. */
  get said(): string[] {
    return this.lines.filter((line) => !line.startsWith('debug'));
  }

  /** A file that was changed now, and is found once it is at rest. */
  async drop(path: string, collection = 'docs'): Promise<void> {
    const changedAt = this.clock.now();
    await this.clock.advance(SETTLE);
    this.find(path, changedAt, collection);
  }

  /** A file that was changed then is found now. */
  find(path: string, changedAt: number, collection = 'docs'): void {
    const to = { folder: 'f', path, url: `https://x.example/${path}`, collection };
    const version = {
      ...{ size: 1, mtimeMs: 0, ctimeMs: changedAt, ino: 1, encoding: 'utf-8' as const },
      sha256: String(changedAt).padStart(64, '0'),
    };
    const now = this.clock.now();
    this.state.put(read(this.state.get('f', path), to, version, now, Math.min(now, changedAt + SETTLE)));
  }

  accept(path: string): void {
    const item = this.#pending(path);
    const { sha256 } = item.version;
    const { url, collection } = item;
    const sent = { sha256, size: 1, digest: sha256, url, collection, at: this.clock.now() };
    this.state.put(accepted(item, sent, this.clock.now()));
  }

  confirm(path: string): void {
    if (this.state.get('f', path)?.status === 'pending') this.accept(path);
    const item = this.state.get('f', path);
    if (item?.status !== 'accepted') throw new Error(`${path} is ${item?.status}`);
    const now = this.clock.now();
    this.state.put(confirmed(item, { kind: 'digest', at: now, shown: 'it' }, now));
  }

  quarantine(path: string): void {
    const item = this.#pending(path);
    const trouble = { code: 'NO', message: 'No.', hint: 'Wait.' };
    this.state.put(quarantined(item, item, item.version, trouble, this.clock.now()));
  }

  #pending(path: string): PendingItem {
    const item = this.state.get('f', path);
    if (item?.status !== 'pending') throw new Error(`${path} is ${item?.status}`);
    return item;
  }
}
