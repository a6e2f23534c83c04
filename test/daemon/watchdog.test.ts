import { statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import {
  askDisk,
  disksOf,
  Notifier,
  Watchdog,
  type WatchdogDeps,
} from '../../src/daemon/watchdog.js';
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

/** A watchdog over one loop that a test plays, at a disk that answers or does not. */
class Watched {
  readonly clock = new FakeClock();
  readonly said: string[] = [];
  readonly sentences: string[] = [];
  /** Signs of life so far. */
  signs = 0;
  isBusy = false;
  /** The loop's health cannot be known. */
  fails = false;
  diskAnswers = true;
  /** Lets a disk answer that did not. */
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
      log: loggerTo(this.said),
    };
    const ask = () => {
      this.asked += 1;
      if (this.diskAnswers) return Promise.resolve();
      return new Promise<void>((resolve) => {
        this.answer = resolve;
      });
    };
    const notifier = new Notifier(env, { log: silentLogger, send });
    const health = () => [this.loop];
    this.watchdog = new Watchdog(live as unknown as Live, { health, notifier, ask, ...deps });
    void this.watchdog.start();
  }

  /** The longest time that systemd waited for a sign, up to `ms` from now. */
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
  it('gives a sign at once, and then well within the time that systemd grants, while no loop is busy', async () => {
    const w = new Watched();
    await w.clock.advance(0);
    expect(w.signs).toBe(1);
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThanOrEqual(MINUTE);
    expect(w.signs).toBeLessThan(35);
    // No disk is asked while all goes on.
    expect([w.said, w.asked]).toEqual([[], 0]);
  });

  it('gives no more signs once a loop was busy for 90 s without progress, says so once, and when it goes on', async () => {
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
      /^error: stuck: items that are due are not pushed, for 1m (3|4)\ds, and nothing keeps it from going on; systemd is left to restart peersync$/;
    expect(w.said).toEqual([expect.stringMatching(words)]);
    w.loop.progress();
    expect(await w.isStuckAfter(20 * SECOND)).toBe(false);
    expect(w.signs).toBeGreaterThan(signs);
    expect(w.said.at(-1)).toBe('info: what stood still goes on');
  });

  it('goes on giving signs while a busy loop makes progress, or has a reason to wait, now and then', async () => {
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
    expect([w.watchdog.stuck, w.said]).toEqual([[], []]);
  });

  it('takes a disk that does not answer for a reason to wait, and says so once, long before anything is stuck', async () => {
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
      /^warn: The disk of \/state does not answer: items .* are not pushed\. It is waited for, for \d+s so far\.$/;
    expect(w.said).toEqual([expect.stringMatching(words)]);
    w.answer();
    w.isBusy = false;
    await w.clock.advance(20 * SECOND);
    expect(w.watchdog.diskFailure).toBeUndefined();
    expect(w.said.at(-1)).toBe('info: what stood still goes on');
  });

  it('says nothing where the disks answer, be it with an error, and lets a loop take longer whose limit is longer', async () => {
    const w = new Watched({ limitMs: 15 * MINUTE });
    w.isBusy = true;
    expect(await w.isStuckAfter(14 * MINUTE)).toBe(false);
    expect(w.asked).toBeGreaterThan(0);
    expect([w.watchdog.diskFailure, w.said]).toEqual([undefined, []]);
    expect(await w.isStuckAfter(2 * MINUTE)).toBe(true);
    const other = new Watched({}, 2 * MINUTE, { ask: () => Promise.reject(new Error('ENOENT')) });
    other.isBusy = true;
    expect(await other.isStuckAfter(2 * MINUTE)).toBe(true);
  });

  it('keeps within less time where systemd grants less, also while disks do not answer, and finds sooner what is stuck', async () => {
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
    // Stopped and continued: the timers come late, and a look finds that much time has passed.
    w.clock.skip(10 * MINUTE);
    expect(await w.isStuckAfter(20 * SECOND)).toBe(false);
  });

  it('says without systemd what is stuck, too, but that a person has to restart it', async () => {
    const w = new Watched({}, 2 * MINUTE, { notifier: new Notifier({}, { log: silentLogger }) });
    w.isBusy = true;
    expect(await w.isStuckAfter(5 * MINUTE)).toBe(true);
    expect(w.said).toEqual([expect.stringMatching(/; restart peersync$/)]);
  });

  it('gives no sign at a look that fails, says why, and looks again', async () => {
    const w = new Watched();
    w.fails = true;
    await w.clock.advance(5 * MINUTE);
    expect(w.signs).toBe(1);
    expect(w.said[0]).toBe('error: The health of the loops is unknown: oops');
    w.fails = false;
    await w.clock.advance(MINUTE);
    expect(w.signs).toBeGreaterThan(1);
  });

  it('tells systemd how the daemon stands whenever that changed', async () => {
    const w = new Watched();
    await w.clock.advance(2 * MINUTE);
    w.status = report({ items: { ...items, pending: 2 } });
    await w.clock.advance(2 * MINUTE);
    const words = ['nothing waiting', '2 waiting'].map(
      (waits) => `STATUS=1 document confirmed, ${waits}`,
    );
    expect(w.sentences.map((sentence) => sentence.split(', last')[0])).toEqual(words);
  });

  it('asks nothing any more when it is stopped', async () => {
    const w = new Watched();
    w.watchdog.stop();
    w.isBusy = true;
    await w.clock.advance(10 * MINUTE);
    expect([w.signs, w.clock.waiting]).toEqual([1, 0]);
  });
});

describe('the disks of a daemon', () => {
  it('are those of its state, its folders, and its mirrors where there are any', async () => {
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

  it('are written to where the directory is our own, for else a frozen one would seem to answer, and nowhere else', async () => {
    const [own, theirs] = [temporaryDirectory(), temporaryDirectory()];
    const none = join(own, 'none');
    for (const path of [own, theirs]) utimesSync(path, 1_000, 1_000);
    await askDisk({ path: own, isOwn: true });
    await askDisk({ path: theirs, isOwn: false });
    expect(statSync(own).mtimeMs).toBeGreaterThan(1_000_000);
    expect(statSync(theirs).mtimeMs).toBe(1_000_000);
    for (const isOwn of [true, false]) await askDisk({ path: none, isOwn });
    expect(() => statSync(none)).toThrow();
  });
});
