import { describe, expect, it } from 'vitest';
import type { Mirror } from '../../src/mirror/mirror.js';
import type { RunResult } from '../../src/mirror/mirror-run.js';
import { Scheduler } from '../../src/mirror/scheduler.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** When the first runs have begun. */
const BEGUN = 5 * SECOND;

type Made = Partial<Mirror> & { readonly kind?: string };
type End = RunResult['end'];

/** A scheduler of mirrors, each every minute unless given, with runs that the test ends. */
class Runs {
  readonly clock = new FakeClock();
  /** Names, as their runs began. */
  readonly begun: string[] = [];
  end: () => End | Promise<End> = () => 'current';
  readonly failures: unknown[] = [];
  readonly ended: string[] = [];
  readonly scheduler: Scheduler;
  readonly #mirrors: Mirror[];
  #failed = 0;

  constructor(mirrors: Readonly<Record<string, Made>>) {
    this.scheduler = new Scheduler({
      clock: this.clock,
      random: () => 0.5,
      runner: {
        run: async ({ name, identity }) => {
          this.begun.push(name);
          const end = await this.end();
          this.#failed = end === 'failed' ? this.#failed + 1 : 0;
          return { end, report: { name, ...identity, failures: this.#failed } };
        },
        ended: ({ name }) => void this.ended.push(name),
      },
    });
    this.#mirrors = Object.entries(mirrors).map(
      ([name, { kind = 'share', ...made }]) =>
        ({ name, every: MINUTE, identity: { kind, path: name }, ...made }) as Mirror,
    );
    for (const mirror of this.#mirrors) this.scheduler.add(mirror);
    afterwards('test', () => this.scheduler.stop());
    this.scheduler.start((error) => void this.failures.push(error));
  }

  /** The first of the mirrors. */
  get first(): Mirror {
    return this.#mirrors[0] as Mirror;
  }

  /** Runs end when the list that this returns is called. */
  hold(): (() => void)[] {
    const ends: (() => void)[] = [];
    this.end = () => new Promise((resolve) => ends.push(() => resolve('current')));
    return ends;
  }

  /** Returns the number of runs, of all mirrors or of one, after some time. */
  async after(ms: number, name?: string): Promise<number> {
    await this.clock.advance(ms);
    return this.begun.filter((each) => name === undefined || each === name).length;
  }
}

describe('a scheduler', () => {
  it('runs each mirror soon after the start, then at its interval, and reports the next time', async () => {
    const runs = new Runs({ often: { every: 10 * SECOND }, seldom: {} });
    expect(await runs.after(BEGUN)).toBe(2);
    expect(runs.scheduler.planOf(runs.first).nextAt).toBe(runs.clock.now() + 10 * SECOND);
    expect(await runs.after(61 * SECOND, 'often')).toBe(7);
    expect(await runs.after(0, 'seldom')).toBe(2);
  });

  it('retries a failed mirror early, with backoff', async () => {
    const runs = new Runs({ m: { every: 10 * MINUTE } });
    runs.end = () => 'failed';
    await runs.after(BEGUN);
    for (const [i, seconds] of [30, 60, 120, 240].entries()) {
      expect(await runs.after(seconds * SECOND - 1)).toBe(i + 1);
      expect(await runs.after(1)).toBe(i + 2);
    }
    runs.end = () => 'current';
    expect(await runs.after(480 * SECOND)).toBe(6);
    expect(await runs.after(10 * MINUTE - 1)).toBe(6);
  });

  it.each<[End, number, number]>([
    ['condition', BEGUN + MINUTE, 2],
    ['busy', BEGUN + 6 * SECOND, 3],
    ['ended', 10 * MINUTE, 1],
  ])('plans the next run by the end of the last: %s', async (end, ms, count) => {
    const runs = new Runs({ m: {} });
    runs.end = () => end;
    expect(await runs.after(ms)).toBe(count);
    expect(runs.ended).toEqual(end === 'ended' ? ['m'] : []);
  });

  it('runs four files at a time, and passes over citations beside them', async () => {
    const runs = new Runs({
      a: {},
      b: {},
      c: {},
      d: {},
      e: {},
      f: {},
      pass: { kind: 'citations' },
    });
    const ends = runs.hold();
    expect(await runs.after(MINUTE)).toBe(5);
    expect(runs.begun).toContain('pass');
    for (const end of ends.splice(0)) end();
    expect(await runs.after(0)).toBe(7);
    for (const end of ends) end();
  });

  it.each<[string, Made, number]>([
    ['at its own time', { kind: 'citations', nextIn: () => 3 * MINUTE }, 3 * MINUTE],
    [
      'after longer than a timer can last',
      { every: 60 * 24 * HOUR, nextIn: () => 60 * 24 * HOUR },
      60 * 24 * HOUR,
    ],
  ])('runs a mirror %s', async (_, made, ms) => {
    const runs = new Runs({ m: made });
    expect(await runs.after(ms - 1)).toBe(0);
    expect(await runs.after(1)).toBe(1);
  });

  it('runs due mirrors within an hour after the machine was suspended', async () => {
    const runs = new Runs({ m: { every: 10 * HOUR } });
    await runs.after(BEGUN);
    runs.clock.suspend(20 * HOUR);
    expect(await runs.after(HOUR)).toBe(2);
  });

  it('polls edited files every two seconds unless the last run failed', async () => {
    let isEdited = false;
    const runs = new Runs({ m: { every: 10 * MINUTE, wantsRun: async () => isEdited } });
    await runs.after(BEGUN);
    isEdited = true;
    expect(await runs.after(2 * SECOND)).toBe(2);
    runs.end = () => 'failed';
    expect(await runs.after(2 * SECOND)).toBe(3);
    expect(await runs.after(20 * SECOND)).toBe(3);
  });

  it('starts a run if a file cannot be polled', async () => {
    const wantsRun = () => Promise.reject(new Error('it cannot be looked at'));
    const runs = new Runs({ m: { every: 10 * MINUTE, wantsRun } });
    expect(await runs.after(BEGUN + 2 * SECOND)).toBeGreaterThan(1);
    expect(runs.failures).toEqual([]);
  });

  it('runs other mirrors while a poll hangs, polls no second time, and can be stopped', async () => {
    let looks = 0;
    const wantsRun = () => {
      looks += 1;
      return new Promise<boolean>(() => {});
    };
    const runs = new Runs({ m: { every: 10 * MINUTE, wantsRun }, other: {} });
    expect(await runs.after(3 * MINUTE + BEGUN, 'other')).toBe(4);
    expect(looks).toBe(1);
    await runs.scheduler.stop();
  });

  it('reports an error that is not one of a mirror, and goes on', async () => {
    const runs = new Runs({ m: {} });
    runs.end = () => Promise.reject(new Error('the disk is gone'));
    await runs.after(BEGUN);
    expect(runs.failures).toMatchObject([{ message: 'the disk is gone' }]);
    runs.end = () => 'current';
    expect(await runs.after(30 * SECOND)).toBe(2);
  });

  it('stops when all runs have ended, and begins no other', async () => {
    const runs = new Runs({ m: {} });
    const ends = runs.hold();
    await runs.after(BEGUN);
    let isStopped = false;
    const stopping = runs.scheduler.stop().then(() => {
      isStopped = true;
    });
    await runs.after(0);
    expect(isStopped).toBe(false);
    ends[0]?.();
    await stopping;
    expect(await runs.after(10 * MINUTE)).toBe(1);
  });

  it('runs a mirror once at a time, and never after it was removed', async () => {
    const runs = new Runs({ m: {} });
    const ends = runs.hold();
    await runs.after(BEGUN);
    const ask = () => runs.scheduler.run(runs.first, { accepted: [], isAsked: true });
    const asked = ask();
    expect(await runs.after(MINUTE)).toBe(1);
    ends.shift()?.();
    expect(await runs.after(0)).toBe(2);
    ends.shift()?.();
    expect(await asked).toMatchObject({ end: 'current' });
    await runs.scheduler.remove([runs.first]);
    await expect(ask()).rejects.toMatchObject({ code: 'MIRROR_REPLACED' });
    expect(await runs.after(10 * MINUTE)).toBe(2);
  });
});
