import { describe, expect, it } from 'vitest';
import { Watchdog, type WatchdogParts } from '../../src/daemon/watchdog.js';
import type { Duty } from '../../src/lib/pulse.js';
import { FakeClock } from '../support/fake-clock.js';

const MINUTE = 60_000;

/** A watchdog over one duty that a test neglects and moves, at a disk that answers or does not. */
class Watched {
  readonly clock = new FakeClock();
  readonly said: string[] = [];
  /** Signs of life so far. */
  signs = 0;
  neglected: string | undefined;
  moves = 0;
  diskAnswers = true;
  /** Lets a disk answer that did not. */
  answer = () => {};
  asked = 0;
  isUnheard = false;
  readonly watchdog: Watchdog;

  constructor(parts: Partial<WatchdogParts> = {}, duty: Partial<Duty> = {}, watchdogMs?: number) {
    const hear = (level: string) => (_: object, message: string) =>
      void this.said.push(`${level}: ${message}`);
    const isUnheard = (): boolean => this.isUnheard;
    this.watchdog = new Watchdog({
      notifier: {
        watchdogMs: watchdogMs ?? 2 * MINUTE,
        watchdog: () => this.#sign(),
        get isUnheard() {
          return isUnheard();
        },
      },
      duties: () => [{ name: 'work', moves: () => this.moves, neglects: () => this.neglected, ...duty }],
      disks: () => [{ path: '/state', isOwn: true }],
      askDisk: () => {
        this.asked += 1;
        return this.diskAnswers
          ? Promise.resolve()
          : new Promise((resolve) => {
              this.answer = resolve;
            });
      },
      clock: this.clock,
      log: { debug() {}, info: hear('info'), warn: hear('warn'), error: hear('error') },
      ...parts,
    });
    this.watchdog.start();
  }

  #sign(): void {
    this.signs += 1;
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
  it('gives a sign at once, and then at half the time that systemd grants, while nothing is neglected', async () => {
    const w = new Watched();
    expect(w.signs).toBe(1);
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThanOrEqual(MINUTE);
    expect(w.signs).toBeLessThan(25);
    expect(w.said).toEqual([]);
  });

  it('gives a sign again soon, until it arrives', async () => {
    const w = new Watched();
    await w.longestSilence(40_000);
    expect(w.signs).toBe(1);
    w.isUnheard = true;
    await w.longestSilence(40_000);
    expect(w.signs).toBeGreaterThanOrEqual(4);
    w.isUnheard = false;
    const { signs } = w;
    await w.longestSilence(40_000);
    expect(w.signs).toBe(signs);
  });

  it('gives no more signs once a duty was neglected for 90 s without a move, and says once what and since when', async () => {
    const w = new Watched();
    await w.clock.advance(5 * MINUTE);
    w.neglected = 'items that are due are not pushed';
    await w.clock.advance(80_000);
    expect(w.watchdog.stuck()).toEqual([]);
    await w.clock.advance(30_000);
    expect(w.watchdog.stuck()).toMatchObject([{ name: 'work', what: 'items that are due are not pushed' }]);
    const { signs } = w;
    await w.clock.advance(10 * MINUTE);
    expect(w.signs).toBe(signs);
    expect(w.said).toEqual([
      expect.stringMatching(
        /^error: stuck: items that are due are not pushed, for 1m (3|4)\ds, and nothing keeps it from going on; systemd is left to start peersync anew$/,
      ),
    ]);
  });

  it('goes on giving signs while what is neglected now and then moves', async () => {
    const w = new Watched();
    w.neglected = 'items that are due are not pushed';
    for (let i = 0; i < 40; i += 1) {
      expect(await w.longestSilence(60_000)).toBeLessThanOrEqual(MINUTE);
      w.moves += 1;
    }
    expect(w.watchdog.stuck()).toEqual([]);
    expect(w.said).toEqual([]);
  });

  it('goes on giving signs while there is a reason to wait between two neglects', async () => {
    const w = new Watched();
    for (let i = 0; i < 20; i += 1) {
      w.neglected = 'items that are due are not pushed';
      await w.clock.advance(60_000);
      w.neglected = undefined;
      await w.clock.advance(20_000);
    }
    expect(w.watchdog.stuck()).toEqual([]);
  });

  it('gives signs again when what stood still goes on after all, and says so', async () => {
    const w = new Watched();
    w.neglected = 'items that are due are not pushed';
    await w.clock.advance(2 * MINUTE);
    expect(w.watchdog.stuck()).not.toEqual([]);
    const { signs } = w;
    w.moves += 1;
    await w.clock.advance(20_000);
    expect(w.signs).toBeGreaterThan(signs);
    expect(w.said.at(-1)).toBe('info: what stood still goes on');
    expect(w.watchdog.stuck()).toEqual([]);
  });

  it('takes a disk that does not answer for a reason to wait, and stops giving signs when the disk does', async () => {
    const w = new Watched();
    w.neglected = 'a commit of the state does not end';
    w.diskAnswers = false;
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThan(2 * MINUTE);
    expect(w.asked).toBe(1);
    expect(w.said).toEqual([
      expect.stringMatching(/^warn: a commit .* the disk of \/state does not answer and is waited for$/),
    ]);
    expect(w.watchdog.stuck()).toEqual([]);
  });

  it('tells of a disk that does not answer long before it would count as neglect, once, until it answers', async () => {
    const w = new Watched({}, { limitMs: 15 * MINUTE });
    const began = w.clock.now();
    w.neglected = 'what is known is not brought to the disk';
    w.diskAnswers = false;
    await w.clock.advance(15_000);
    expect(w.watchdog.silentDisk()).toBeUndefined();
    await w.clock.advance(25_000);
    expect(w.watchdog.silentDisk()).toMatchObject({ path: '/state', what: w.neglected });
    expect((w.watchdog.silentDisk()?.since ?? 0) - began).toBeLessThan(20_000);
    await w.clock.advance(10 * MINUTE);
    expect(w.said).toEqual([expect.stringMatching(/^warn: what is known .* the disk of \/state does not/)]);
    w.answer();
    w.neglected = undefined;
    await w.clock.advance(20_000);
    expect(w.watchdog.silentDisk()).toBeUndefined();
    expect(w.said.at(-1)).toBe('info: what stood still goes on');
  });

  it('asks no disk while all goes on, and says nothing where the disks answer', async () => {
    const w = new Watched({}, { limitMs: 15 * MINUTE });
    await w.clock.advance(2 * MINUTE);
    expect(w.asked).toBe(0);
    w.neglected = 'the scan of docs does not go on';
    await w.clock.advance(2 * MINUTE);
    expect(w.asked).toBeGreaterThan(0);
    expect([w.watchdog.silentDisk(), w.said]).toEqual([undefined, []]);
  });

  it('hears a disk that refuses: that is an answer', async () => {
    const w = new Watched({ askDisk: () => Promise.reject(new Error('ENOENT')) });
    w.neglected = 'a commit of the state does not end';
    await w.clock.advance(2 * MINUTE);
    expect(w.watchdog.stuck()).not.toEqual([]);
  });

  it('bears longer with a duty that says so', async () => {
    const w = new Watched({}, { limitMs: 15 * MINUTE });
    w.neglected = 'a batch is not read from the disk';
    await w.clock.advance(14 * MINUTE);
    expect(w.watchdog.stuck()).toEqual([]);
    await w.clock.advance(2 * MINUTE);
    expect(w.watchdog.stuck()).not.toEqual([]);
  });

  it('finds what is stuck sooner where systemd grants less time, and keeps within that before', async () => {
    const w = new Watched({}, {}, 8_000);
    expect(await w.longestSilence(MINUTE)).toBeLessThanOrEqual(5_000);
    w.neglected = 'items that are due are not pushed';
    await w.clock.advance(7_500);
    expect(w.watchdog.stuck()).not.toEqual([]);
  });

  it('keeps within a short time also while it asks disks that do not answer', async () => {
    const w = new Watched({}, {}, 4_000);
    w.neglected = 'a commit of the state does not end';
    w.diskAnswers = false;
    expect(await w.longestSilence(MINUTE)).toBeLessThan(4_000);
  });

  it('does not count the time in which the process could not run', async () => {
    const w = new Watched();
    w.neglected = 'items that are due are not pushed';
    await w.clock.advance(20_000);
    // Stopped and continued: the timers come late, and a look finds that much time has passed.
    w.clock.skip(10 * MINUTE);
    await w.clock.advance(20_000);
    expect(w.watchdog.stuck()).toEqual([]);
  });

  it('says without systemd what is stuck, too, but that a person has to start it anew', async () => {
    const clock = new FakeClock();
    const said: string[] = [];
    const watchdog = new Watchdog({
      notifier: { watchdogMs: undefined, watchdog: () => said.push('sign'), isUnheard: false },
      duties: () => [{ name: 'work', moves: () => 0, neglects: () => 'items wait' }],
      disks: () => [],
      clock,
      log: { debug() {}, info() {}, warn() {}, error: (_, message) => void said.push(message) },
    });
    watchdog.start();
    await clock.advance(5 * MINUTE);
    expect(said).toEqual([expect.stringMatching(/^stuck: items wait, .*; start peersync anew$/)]);
  });

  it('takes a duty that fails to tell how it stands for one that stands still, says so once, and hears the others', async () => {
    const oops = (): never => {
      throw new TypeError('oops');
    };
    const w = new Watched({}, { moves: oops });
    await w.clock.advance(30_000);
    expect(w.said).toEqual(['error: whether "work" goes on cannot be told: oops']);
    expect(w.watchdog.stuck()).toEqual([]);
    await w.clock.advance(5 * MINUTE);
    expect(w.watchdog.stuck()).toMatchObject([{ name: 'work' }]);
    const { signs } = w;
    await w.clock.advance(10 * MINUTE);
    expect(w.signs).toBe(signs);
    expect(w.said.slice(1)).toEqual([
      expect.stringMatching(/^error: stuck: whether "work" goes on cannot be told, for /),
    ]);
  });

  it('bears with a duty that failed to tell once', async () => {
    let fails = true;
    const w = new Watched(
      {},
      {
        neglects: () => {
          if (fails) throw new TypeError('oops');
          return undefined;
        },
      },
    );
    await w.clock.advance(20_000);
    fails = false;
    expect(await w.longestSilence(20 * MINUTE)).toBeLessThanOrEqual(MINUTE);
    expect(w.watchdog.stuck()).toEqual([]);
    expect(w.said).toHaveLength(1);
  });

  it('gives no sign at a look that fails, says so once, and looks again', async () => {
    let fails = true;
    const w = new Watched({
      duties: () => {
        if (fails) throw new TypeError('oops');
        return [];
      },
    });
    await w.clock.advance(5 * MINUTE);
    expect(w.signs).toBe(1);
    expect(w.said).toEqual(['error: whether everything goes on could not be looked at: oops']);
    fails = false;
    await w.clock.advance(20_000);
    expect(w.signs).toBe(2);
  });

  it('asks nothing any more when it is stopped', async () => {
    const w = new Watched();
    w.watchdog.stop();
    w.neglected = 'items wait';
    await w.clock.advance(10 * MINUTE);
    expect(w.signs).toBe(1);
    expect(w.clock.waiting).toBe(0);
  });
});
