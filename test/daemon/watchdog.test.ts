import { statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { Notifier } from '../../src/daemon/notifier.js';
import { disksOf, probeDisk, Watchdog, type WatchdogDeps } from '../../src/daemon/watchdog.js';
import { HealthCheck, type HealthOptions } from '../../src/lib/health.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Live } from '../../src/report/live.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { NO_ITEMS, report } from '../commands/report.js';
import { FakeClock } from '../support/fake-clock.js';
import { loggerTo } from '../support/logger.js';
import { temporaryDirectory } from '../support/temp.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const items = { ...NO_ITEMS, confirmed: 1 };
const NO_MIRRORS = { shares: [], tables: [], citations: [] };
const CONFIG = { state: { dir: '/state' }, folders: [], mirror: NO_MIRRORS };

/** A watchdog over one loop and one disk, which the test controls. */
class Watched {
  readonly clock = new FakeClock();
  readonly logged: string[] = [];
  readonly sentences: string[] = [];
  /** Number of signs of life so far. */
  signs = 0;
  isBusy = false;
  /** Whether the health check throws. */
  fails = false;
  diskAnswers = true;
  /** Lets the disk answer after all. */
  answer = () => {};
  asked = 0;
  status: StatusReport = report({ items });
  readonly loop: HealthCheck;
  readonly watchdog: Watchdog;

  constructor(
    options: HealthOptions = {},
    watchdogMs = 2 * MINUTE,
    deps: Partial<WatchdogDeps> = {},
  ) {
    const busy = () => {
      if (this.fails) throw new TypeError('oops');
      return this.isBusy;
    };
    this.loop = new HealthCheck('loop', 'items that are due are not pushed', { busy, ...options });
    const env = { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: String(watchdogMs * 1_000) };
    const send = async ([word = '']: readonly string[]) => {
      if (word === 'WATCHDOG=1') this.signs += 1;
      else this.sentences.push(word);
    };
    const live = {
      status: () => this.status,
      current: { config: CONFIG },
      clock: this.clock,
      log: loggerTo(this.logged),
    };
    const probe = () => {
      this.asked += 1;
      if (this.diskAnswers) return Promise.resolve();
      return new Promise<void>((resolve) => {
        this.answer = resolve;
      });
    };
    const notifier = new Notifier(env, { log: silentLogger, send });
    const health = () => [this.loop];
    this.watchdog = new Watchdog(live as unknown as Live, { health, notifier, probe, ...deps });
    void this.watchdog.start();
  }

  /** Returns the longest time between two signs of life during the next `ms`. */
  async longestSilence(ms: number): Promise<number> {
    let longest = 0;
    let silence = 0;
    for (let at = 0; at < ms; at += SECOND) {
      const before = this.signs;
      await this.clock.advance(SECOND);
      silence = this.signs > before ? 0 : silence + SECOND;
      longest = Math.max(longest, silence);
    }
    return longest;
  }

  /** Whether the loop counts as stuck after a time. */
  async isStuckAfter(ms: number): Promise<boolean> {
    await this.clock.advance(ms);
    return this.watchdog.stuck.length > 0;
  }
}

describe('a watchdog', () => {
  it('sends a sign of life at once, and then well within the time that systemd waits, while no loop is busy', async () => {
    const w = new Watched();
    await w.clock.advance(0);
    expect(w.signs).toBe(1);
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThanOrEqual(MINUTE);
    expect(w.signs).toBeLessThan(35);
    // No disk is probed while all loops make progress.
    expect([w.logged, w.asked]).toEqual([[], 0]);
  });

  it('sends no more signs once a loop was busy for 90 s without progress, and logs that once, and the recovery', async () => {
    const w = new Watched();
    await w.clock.advance(5 * MINUTE);
    w.isBusy = true;
    expect(await w.isStuckAfter(80 * SECOND)).toBe(false);
    expect(await w.isStuckAfter(30 * SECOND)).toBe(true);
    expect(w.watchdog.stuck).toMatchObject([
      { name: 'loop', what: 'items that are due are not pushed' },
    ]);
    const { signs } = w;
    await w.clock.advance(10 * MINUTE);
    expect(w.signs).toBe(signs);
    const words =
      /^error: stuck: items that are due are not pushed, for 1m (3|4)\ds, although all disks answer; systemd restarts peersync$/;
    expect(w.logged).toEqual([expect.stringMatching(words)]);
    w.loop.progress();
    expect(await w.isStuckAfter(20 * SECOND)).toBe(false);
    expect(w.signs).toBeGreaterThan(signs);
    expect(w.logged.at(-1)).toBe('info: all loops make progress again');
  });

  it('continues to send signs while a busy loop makes progress now and then, or becomes idle', async () => {
    const w = new Watched();
    for (let i = 0; i < 40; i += 1) {
      w.isBusy = true;
      expect(await w.longestSilence(MINUTE)).toBeLessThanOrEqual(MINUTE);
      if (i < 20) w.loop.progress();
      else {
        w.isBusy = false;
        await w.clock.advance(20 * SECOND);
      }
    }
    expect([w.watchdog.stuck, w.logged]).toEqual([[], []]);
  });

  it('continues to send signs while a disk does not answer, and logs that once, long before a loop is stuck', async () => {
    const w = new Watched({ limitMs: 15 * MINUTE });
    const began = w.clock.now();
    w.isBusy = true;
    w.diskAnswers = false;
    await w.clock.advance(15 * SECOND);
    expect(w.watchdog.diskFailure).toBeUndefined();
    await w.clock.advance(25 * SECOND);
    const message = `The disk of /state does not answer: ${w.loop.what}.`;
    expect(w.watchdog.diskFailure).toMatchObject({ code: 'DISK_SILENT', message });
    expect((w.watchdog.diskFailure?.since ?? 0) - began).toBeLessThan(20 * SECOND);
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThan(2 * MINUTE);
    expect([w.asked, w.watchdog.stuck]).toEqual([1, []]);
    const words =
      /^warn: The disk of \/state does not answer: items .* are not pushed\. Waiting for it, for \d+s so far\.$/;
    expect(w.logged).toEqual([expect.stringMatching(words)]);
    w.answer();
    w.isBusy = false;
    await w.clock.advance(20 * SECOND);
    expect(w.watchdog.diskFailure).toBeUndefined();
    expect(w.logged.at(-1)).toBe('info: all loops make progress again');
  });

  it('reports no disk that answers, even with an error, and uses the longer limit of a loop', async () => {
    const w = new Watched({ limitMs: 15 * MINUTE });
    w.isBusy = true;
    expect(await w.isStuckAfter(14 * MINUTE)).toBe(false);
    expect(w.asked).toBeGreaterThan(0);
    expect([w.watchdog.diskFailure, w.logged]).toEqual([undefined, []]);
    expect(await w.isStuckAfter(2 * MINUTE)).toBe(true);
    const other = new Watched({}, 2 * MINUTE, { probe: () => Promise.reject(new Error('ENOENT')) });
    other.isBusy = true;
    expect(await other.isStuckAfter(2 * MINUTE)).toBe(true);
  });

  it('sends signs more often if systemd waits for less time, even while disks do not answer, and detects stuck loops earlier', async () => {
    const w = new Watched({}, 8 * SECOND);
    expect(await w.longestSilence(MINUTE)).toBeLessThanOrEqual(5 * SECOND);
    w.isBusy = true;
    expect(await w.isStuckAfter(7.5 * SECOND)).toBe(true);
    const other = new Watched({}, 4 * SECOND);
    other.isBusy = true;
    other.diskAnswers = false;
    expect(await other.longestSilence(MINUTE)).toBeLessThan(4 * SECOND);
  });

  it('does not count the time in which the process could not run', async () => {
    const w = new Watched();
    w.isBusy = true;
    await w.clock.advance(20 * SECOND);
    // After a stop of the process, timers fire late, and a check finds that much time has passed.
    w.clock.skip(10 * MINUTE);
    expect(await w.isStuckAfter(20 * SECOND)).toBe(false);
  });

  it('logs a stuck loop without systemd, too, and asks for a restart', async () => {
    const w = new Watched({}, 2 * MINUTE, { notifier: new Notifier({}, { log: silentLogger }) });
    w.isBusy = true;
    expect(await w.isStuckAfter(5 * MINUTE)).toBe(true);
    expect(w.logged).toEqual([expect.stringMatching(/; restart peersync$/)]);
  });

  it('sends no sign if a check fails, logs the reason, and checks again', async () => {
    const w = new Watched();
    w.fails = true;
    await w.clock.advance(5 * MINUTE);
    expect(w.signs).toBe(1);
    expect(w.logged[0]).toBe('error: The health of the loops is unknown: oops');
    w.fails = false;
    await w.clock.advance(MINUTE);
    expect(w.signs).toBeGreaterThan(1);
  });

  it('sends the status sentence to systemd when it changes', async () => {
    const w = new Watched();
    await w.clock.advance(2 * MINUTE);
    w.status = report({ items: { ...items, pending: 2 } });
    await w.clock.advance(2 * MINUTE);
    const words = ['nothing waiting', '2 waiting'].map(
      (waits) => `STATUS=1 document confirmed, ${waits}`,
    );
    expect(w.sentences.map((sentence) => sentence.split(', last')[0])).toEqual(words);
  });

  it('checks nothing after it is stopped', async () => {
    const w = new Watched();
    w.watchdog.stop();
    w.isBusy = true;
    await w.clock.advance(10 * MINUTE);
    expect([w.signs, w.clock.waiting]).toEqual([1, 0]);
  });
});

describe('the disks of a daemon', () => {
  it('are those of its state, its folders, and its mirrors if there are any', async () => {
    const folders = [{ path: '/srv/docs', collection: 'c' }];
    const configOf = (more: object = {}) =>
      checkConfig({ folders, ...more }, '/etc/peersync/config.json');
    const state = { path: '/etc/peersync/data/state', isOwn: true };
    const docs = { path: '/srv/docs', isOwn: false };
    expect(disksOf(await configOf())).toEqual([state, docs]);
    const mirror = { root: '/srv/mirror', shares: [{ data: 'x.csv' }] };
    expect(disksOf(await configOf({ mirror }))).toEqual([
      state,
      docs,
      { path: '/srv/mirror', isOwn: true },
    ]);
  });

  it('are probed by a write only in directories of our own, because a frozen one would otherwise seem to answer', async () => {
    const [own, theirs] = [temporaryDirectory(), temporaryDirectory()];
    const none = join(own, 'none');
    for (const path of [own, theirs]) utimesSync(path, 1_000, 1_000);
    await probeDisk({ path: own, isOwn: true });
    await probeDisk({ path: theirs, isOwn: false });
    expect(statSync(own).mtimeMs).toBeGreaterThan(1_000_000);
    expect(statSync(theirs).mtimeMs).toBe(1_000_000);
    for (const isOwn of [true, false]) await probeDisk({ path: none, isOwn });
    expect(() => statSync(none)).toThrow();
  });
});
