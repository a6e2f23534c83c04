import { statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { askDisk, disksOf, Notifier, Watchdog, type WatchdogDeps } from '../../src/daemon/watchdog.js';
import { HealthCheck, type HealthOptions } from '../../src/lib/health.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Live, StatusReport } from '../../src/report/status.js';
import { report } from '../commands/report.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const MINUTE = 60_000;
const items = { pending: 0, accepted: 0, confirmed: 1, quarantined: 0, gone: 0 };

const CONFIG = {
  ...{ state: { dir: '/state' }, folders: [], mirror: { shares: [], tables: [], citations: [] } },
};

/** A watchdog over one loop that a test plays, at a disk that answers or does not. */
class Watched {
  readonly clock = new FakeClock();
  readonly said: string[] = [];
  readonly sentences: string[] = [];
  /** Signs of life so far. */
  signs = 0;
  isBusy = false;
  diskAnswers = true;
  /** Lets a disk answer that did not. */
  answer = () => {};
  asked = 0;
  status: StatusReport = report({ items });
  readonly loop: HealthCheck;
  readonly watchdog: Watchdog;

  constructor(deps: Partial<WatchdogDeps> = {}, options: HealthOptions = {}, watchdogMs = 2 * MINUTE) {
    const say = (level: string) => (_: object, message: string) =>
      void this.said.push(`${level}: ${message}`);
    this.loop = new HealthCheck('loop', 'items that are due are not pushed', {
      busy: () => this.isBusy,
      ...options,
    });
    const env = { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: String(watchdogMs * 1_000) };
    const send = async ([word = '']: readonly string[]) => {
      if (word === 'WATCHDOG=1') this.signs += 1;
      else this.sentences.push(word);
    };
    const live = {
      status: () => this.status,
      current: { config: CONFIG },
      clock: this.clock,
      log: { debug() {}, info: say('info'), warn: say('warn'), error: say('error') },
    };
    this.watchdog = new Watchdog(live as unknown as Live, {
      health: () => [this.loop],
      notifier: new Notifier(env, { log: silentLogger, send }),
      ask: () => {
        this.asked += 1;
        return this.diskAnswers
          ? Promise.resolve()
          : new Promise((resolve) => {
              this.answer = resolve;
            });
      },
      ...deps,
    });
    void this.watchdog.start();
  }

  /** The longest time that systemd waited for a sign, up to `ms` from now. */
  async longestSilence(ms: number): Promise<number> {
    let longest = 0;
    let silence = 0;
    for (let at = 0; at < ms; at += 1_000) {
      const before = this.signs;
      await this.clock.advance(1_000);
      silence = this.signs > before ? 0 : silence + 1_000;
      longest = Math.max(longest, silence);
    }
    return longest;
  }
}

describe('a watchdog', () => {
  it('gives a sign at once, and then well within the time that systemd grants, while no loop is busy', async () => {
    const w = new Watched();
    await w.clock.advance(0);
    expect(w.signs).toBe(1);
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThanOrEqual(MINUTE);
    expect(w.signs).toBeLessThan(35);
    expect(w.said).toEqual([]);
  });

  it('gives no more signs once a loop was busy for 90 s without progress, and says once which and since when', async () => {
    const w = new Watched();
    await w.clock.advance(5 * MINUTE);
    w.isBusy = true;
    await w.clock.advance(80_000);
    expect(w.watchdog.stuck).toEqual([]);
    await w.clock.advance(30_000);
    expect(w.watchdog.stuck).toMatchObject([{ name: 'loop', what: 'items that are due are not pushed' }]);
    const { signs } = w;
    await w.clock.advance(10 * MINUTE);
    expect(w.signs).toBe(signs);
    expect(w.said).toEqual([
      expect.stringMatching(
        /^error: stuck: items that are due are not pushed, for 1m (3|4)\ds, and nothing keeps it from going on; systemd is left to restart peersync$/,
      ),
    ]);
  });

  it('goes on giving signs while a busy loop makes progress now and then', async () => {
    const w = new Watched();
    w.isBusy = true;
    for (let i = 0; i < 40; i += 1) {
      expect(await w.longestSilence(60_000)).toBeLessThanOrEqual(MINUTE);
      w.loop.progress();
    }
    expect(w.watchdog.stuck).toEqual([]);
    expect(w.said).toEqual([]);
  });

  it('goes on giving signs while a loop has a reason to wait now and then', async () => {
    const w = new Watched();
    for (let i = 0; i < 20; i += 1) {
      w.isBusy = true;
      await w.clock.advance(60_000);
      w.isBusy = false;
      await w.clock.advance(20_000);
    }
    expect(w.watchdog.stuck).toEqual([]);
  });

  it('gives signs again when what stood still goes on after all, and says so', async () => {
    const w = new Watched();
    w.isBusy = true;
    await w.clock.advance(2 * MINUTE);
    expect(w.watchdog.stuck).not.toEqual([]);
    const { signs } = w;
    w.loop.progress();
    await w.clock.advance(20_000);
    expect(w.signs).toBeGreaterThan(signs);
    expect(w.said.at(-1)).toBe('info: what stood still goes on');
    expect(w.watchdog.stuck).toEqual([]);
  });

  it('takes a disk that does not answer for a reason to wait, and says so once, long before anything is stuck', async () => {
    const w = new Watched({}, { limitMs: 15 * MINUTE });
    const began = w.clock.now();
    w.isBusy = true;
    w.diskAnswers = false;
    await w.clock.advance(15_000);
    expect(w.watchdog.diskTrouble).toBeUndefined();
    await w.clock.advance(25_000);
    expect(w.watchdog.diskTrouble).toMatchObject({
      code: 'DISK_SILENT',
      message: `The disk of /state does not answer: ${w.loop.what}.`,
    });
    expect((w.watchdog.diskTrouble?.since ?? 0) - began).toBeLessThan(20_000);
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThan(2 * MINUTE);
    expect(w.asked).toBe(1);
    expect(w.watchdog.stuck).toEqual([]);
    expect(w.said).toEqual([
      expect.stringMatching(
        /^warn: The disk of \/state does not answer: items .* are not pushed\. It is waited for, for \d+s so far\.$/,
      ),
    ]);
    w.answer();
    w.isBusy = false;
    await w.clock.advance(20_000);
    expect(w.watchdog.diskTrouble).toBeUndefined();
    expect(w.said.at(-1)).toBe('info: what stood still goes on');
  });

  it('asks no disk while all goes on, and says nothing where the disks answer', async () => {
    const w = new Watched({}, { limitMs: 15 * MINUTE });
    await w.clock.advance(2 * MINUTE);
    expect(w.asked).toBe(0);
    w.isBusy = true;
    await w.clock.advance(2 * MINUTE);
    expect(w.asked).toBeGreaterThan(0);
    expect([w.watchdog.diskTrouble, w.said]).toEqual([undefined, []]);
  });

  it('takes an error of a disk for an answer', async () => {
    const w = new Watched({ ask: () => Promise.reject(new Error('ENOENT')) });
    w.isBusy = true;
    await w.clock.advance(2 * MINUTE);
    expect(w.watchdog.stuck).not.toEqual([]);
  });

  it('lets a loop take longer whose limit is longer', async () => {
    const w = new Watched({}, { limitMs: 15 * MINUTE });
    w.isBusy = true;
    await w.clock.advance(14 * MINUTE);
    expect(w.watchdog.stuck).toEqual([]);
    await w.clock.advance(2 * MINUTE);
    expect(w.watchdog.stuck).not.toEqual([]);
  });

  it('finds what is stuck sooner where systemd grants less time, and keeps within that before', async () => {
    const w = new Watched({}, {}, 8_000);
    expect(await w.longestSilence(MINUTE)).toBeLessThanOrEqual(5_000);
    w.isBusy = true;
    await w.clock.advance(7_500);
    expect(w.watchdog.stuck).not.toEqual([]);
  });

  it('keeps within a short time also while it asks disks that do not answer', async () => {
    const w = new Watched({}, {}, 4_000);
    w.isBusy = true;
    w.diskAnswers = false;
    expect(await w.longestSilence(MINUTE)).toBeLessThan(4_000);
  });

  it('does not count the time in which the process could not run', async () => {
    const w = new Watched();
    w.isBusy = true;
    await w.clock.advance(20_000);
    // Stopped and continued: the timers come late, and a look finds that much time has passed.
    w.clock.skip(10 * MINUTE);
    await w.clock.advance(20_000);
    expect(w.watchdog.stuck).toEqual([]);
  });

  it('says without systemd what is stuck, too, but that a person has to restart it', async () => {
    const w = new Watched({ notifier: new Notifier({}, { log: silentLogger }) });
    w.isBusy = true;
    await w.clock.advance(5 * MINUTE);
    expect(w.said).toEqual([expect.stringMatching(/^error: stuck: items .*; restart peersync$/)]);
    expect(w.watchdog.stuck).toMatchObject([{ name: 'loop' }]);
  });

  it('gives no sign at a look that fails, says why, and looks again', async () => {
    let fails = true;
    const w = new Watched(
      {},
      {
        busy: () => {
          if (fails) throw new TypeError('oops');
          return false;
        },
      },
    );
    await w.clock.advance(5 * MINUTE);
    expect(w.signs).toBe(1);
    expect(w.said[0]).toBe('error: The health of the loops is unknown: oops');
    fails = false;
    await w.clock.advance(MINUTE);
    expect(w.signs).toBeGreaterThan(1);
  });

  it('tells systemd how the daemon stands whenever that changed', async () => {
    const at = (time: string): number => new Date(`2026-11-21T${time}`).getTime();
    const figures = { timeToSearch: [], confirmedPerSecond: 0, alerts: [], lastConfirmedAt: at('10:04:12') };
    const w = new Watched();
    w.status = report({ items, figures });
    await w.clock.advance(MINUTE);
    const refused = { code: 'X', message: 'It is wrong.', hint: 'Mend it.', at: at('10:05:00') };
    w.status = report({ items, figures, configuration: { takenUpAt: 0, refused } });
    await w.clock.advance(MINUTE);
    const calm = '1 document confirmed, nothing waiting, last confirmation 2026-11-21 10:04:12';
    expect(w.sentences.slice(1)).toEqual([
      `STATUS=${calm}`,
      `STATUS=${calm}; The changed configuration was refused, and the one before holds: It is wrong (since 2026-11-21 10:05:00)`,
    ]);
  });

  it('asks nothing any more when it is stopped', async () => {
    const w = new Watched();
    w.watchdog.stop();
    w.isBusy = true;
    await w.clock.advance(10 * MINUTE);
    expect(w.signs).toBe(1);
    expect(w.clock.waiting).toBe(0);
  });
});

describe('the disks of a daemon', () => {
  it('are those of its state, its folders, and its mirrors where there are any', async () => {
    const folders = [{ path: '/srv/docs', collection: 'c' }];
    const configOf = (more: object = {}) => checkConfig({ folders, ...more }, '/etc/peersync/config.json');
    const state = { path: '/etc/peersync/data/state', isOwn: true };
    const docs = { path: '/srv/docs', isOwn: false };
    expect(disksOf(await configOf())).toEqual([state, docs]);
    const mirror = { root: '/srv/mirror', shares: [{ data: 'x.csv' }] };
    expect(disksOf(await configOf({ mirror }))).toEqual([state, docs, { path: '/srv/mirror', isOwn: true }]);
  });

  it('are written to where the directory is our own, for else a frozen one would seem to answer, and nowhere else', async () => {
    const [own, theirs] = [temporaryDirectory(), temporaryDirectory()];
    for (const path of [own, theirs]) utimesSync(path, 1_000, 1_000);
    await askDisk({ path: own, isOwn: true });
    await askDisk({ path: theirs, isOwn: false });
    expect(statSync(own).mtimeMs).toBeGreaterThan(1_000_000);
    expect(statSync(theirs).mtimeMs).toBe(1_000_000);
  });

  it('answer where the directory is not there, and it is not made', async () => {
    const path = join(temporaryDirectory(), 'gone');
    for (const isOwn of [true, false]) await askDisk({ path, isOwn });
    expect(() => statSync(path)).toThrow();
  });
});
