import { describe, expect, it } from 'vitest';
import type { Mirror, RunResult } from '../../src/mirror/mirror.js';
import type { MirrorRecord } from '../../src/mirror/record.js';
import { Scheduler } from '../../src/mirror/scheduler.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

interface Made {
  readonly every?: number;
  readonly kind?: MirrorRecord['kind'];
  readonly nextIn?: number;
  /** `unknown` where it cannot be looked at, `hangs` where the disk does not answer. */
  edited?: boolean | 'unknown' | 'hangs';
  looks?: number;
}

/** A scheduler of mirrors whose runs a test decides about, on a clock that stands still. */
class Turns {
  readonly clock = new FakeClock();
  /** Names, as their runs began. */
  readonly begun: string[] = [];
  /** How a run ends: a name, or nothing yet. */
  end: (name: string) => RunResult['end'] | Promise<RunResult['end']> = () => 'followed';
  readonly failures: unknown[] = [];
  readonly over: string[] = [];
  readonly mirrors = new Map<string, Mirror>();
  readonly scheduler: Scheduler;
  #failed = 0;

  constructor(mirrors: Readonly<Record<string, Made>>) {
    this.scheduler = new Scheduler({
      clock: this.clock,
      random: () => 0.5,
      run: async ({ name, identity }) => {
        this.begun.push(name);
        const end = await this.end(name);
        this.#failed = end === 'failed' ? this.#failed + 1 : 0;
        return { end, report: { name, ...identity, failures: this.#failed } };
      },
      onOver: ({ name }) => void this.over.push(name),
    });
    for (const [name, made] of Object.entries(mirrors)) {
      this.mirrors.set(name, mirror(name, made));
      this.scheduler.add(this.mirror(name));
    }
    afterwards('test', () => this.scheduler.stop());
  }

  mirror(name: string): Mirror {
    const mirror = this.mirrors.get(name);
    if (mirror === undefined) throw new Error(`no mirror ${name}`);
    return mirror;
  }

  start(): void {
    this.scheduler.start((error) => void this.failures.push(error));
  }

  /** How often it ran so far. */
  count(name: string): number {
    return this.begun.filter((each) => each === name).length;
  }
}

function mirror(name: string, made: Made): Mirror {
  const { every = MINUTE, kind = 'share', nextIn } = made;
  return {
    name,
    every,
    identity: { kind, path: name },
    ...(nextIn === undefined ? {} : { nextIn: () => nextIn }),
    ...(made.edited === undefined
      ? {}
      : {
          wantsRun: async () => {
            made.looks = (made.looks ?? 0) + 1;
            if (made.edited === 'hangs') return new Promise(() => {});
            if (made.edited === 'unknown') throw new Error('it cannot be looked at');
            return made.edited === true;
          },
        }),
    follow: () => Promise.reject(new Error('the runner does this')),
  } as Partial<Mirror> as Mirror;
}

describe('a scheduler', () => {
  it('runs each mirror soon after the start, then as often as it wants', async () => {
    const turns = new Turns({ often: { every: 10 * SECOND }, seldom: { every: MINUTE } });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    expect(turns.begun.sort()).toEqual(['often', 'seldom']);
    await turns.clock.advance(61 * SECOND);
    expect([turns.count('often'), turns.count('seldom')]).toEqual([7, 2]);
  });

  it('runs a mirror that failed earlier, and less and less early', async () => {
    const turns = new Turns({ m: { every: 10 * MINUTE } });
    turns.end = () => 'failed';
    turns.start();
    await turns.clock.advance(5 * SECOND);
    for (const [at, count] of [
      [30, 2],
      [60, 3],
      [120, 4],
      [240, 5],
    ] as const) {
      await turns.clock.advance(at * SECOND - 1);
      expect(turns.count('m')).toBe(count - 1);
      await turns.clock.advance(1);
      expect(turns.count('m')).toBe(count);
    }
    turns.end = () => 'followed';
    await turns.clock.advance(480 * SECOND);
    expect(turns.count('m')).toBe(6);
    await turns.clock.advance(10 * MINUTE - 1);
    expect(turns.count('m')).toBe(6);
  });

  it('runs a mirror with an alarm as often as any', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => 'alarm';
    turns.start();
    await turns.clock.advance(5 * SECOND + MINUTE);
    expect(turns.count('m')).toBe(2);
  });

  it('comes back in three seconds where somebody was writing the file', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => (turns.count('m') < 3 ? 'later' : 'followed');
    turns.start();
    await turns.clock.advance(5 * SECOND + 6 * SECOND);
    expect(turns.count('m')).toBe(3);
  });

  it('works on four files at a time, and on passes over citations beside them', async () => {
    const files = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, {}]));
    const turns = new Turns({ ...files, pass: { kind: 'citations' } });
    const ends: (() => void)[] = [];
    turns.end = () => new Promise((resolve) => ends.push(() => resolve('followed')));
    turns.start();
    await turns.clock.advance(MINUTE);
    expect(turns.begun.filter((name) => name !== 'pass')).toHaveLength(4);
    expect(turns.begun).toContain('pass');
    for (const end of ends.splice(0)) end();
    await turns.clock.advance(0);
    expect(turns.begun).toHaveLength(7);
    for (const end of ends) end();
  });

  it('runs a mirror that knows its time at that time', async () => {
    const turns = new Turns({ pass: { kind: 'citations', nextIn: 3 * MINUTE } });
    turns.start();
    await turns.clock.advance(3 * MINUTE - 1);
    expect(turns.count('pass')).toBe(0);
    await turns.clock.advance(1);
    expect(turns.count('pass')).toBe(1);
  });

  it('says when a mirror runs next', async () => {
    const turns = new Turns({ m: { every: MINUTE } });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    expect(turns.scheduler.planOf(turns.mirror('m')).nextAt).toBe(turns.clock.now() + MINUTE);
  });

  it('waits longer than a timer bears', async () => {
    const turns = new Turns({ m: { every: 60 * 86_400_000 } });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    await turns.clock.advance(59 * 86_400_000);
    expect(turns.count('m')).toBe(1);
    await turns.clock.advance(86_400_000);
    expect(turns.count('m')).toBe(2);
  });

  it('runs what is due within an hour after the machine was suspended, where timers stood still', async () => {
    const turns = new Turns({ m: { every: 10 * 60 * MINUTE } });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    turns.clock.suspend(20 * 60 * MINUTE);
    await turns.clock.advance(60 * MINUTE);
    expect(turns.count('m')).toBe(2);
  });

  it('looks at edited files every two seconds, unless the last run failed', async () => {
    const made: Made = { every: 10 * MINUTE, edited: false };
    const turns = new Turns({ m: made });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    made.edited = true;
    await turns.clock.advance(2 * SECOND);
    expect(turns.count('m')).toBe(2);
    turns.end = () => 'failed';
    await turns.clock.advance(2 * SECOND);
    expect(turns.count('m')).toBe(3);
    await turns.clock.advance(20 * SECOND);
    expect(turns.count('m')).toBe(3);
  });

  it('leaves it to a run to find out why a file cannot be looked at', async () => {
    const made: Made = { every: 10 * MINUTE, edited: false };
    const turns = new Turns({ m: made });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    made.edited = 'unknown';
    await turns.clock.advance(2 * SECOND);
    expect(turns.failures).toEqual([]);
    expect(turns.count('m')).toBe(2);
  });

  it('runs the others while a look at a file hangs, looks no second time, and can be stopped', async () => {
    const made: Made = { every: 10 * MINUTE, edited: 'hangs' };
    const turns = new Turns({ m: made, other: { every: MINUTE } });
    turns.start();
    await turns.clock.advance(3 * MINUTE + 5 * SECOND);
    expect(turns.count('other')).toBe(4);
    expect(made.looks).toBe(1);
    await turns.scheduler.stop();
  });

  it('forgets what is over', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => 'over';
    turns.start();
    await turns.clock.advance(10 * MINUTE);
    expect(turns.count('m')).toBe(1);
    expect(turns.over).toEqual(['m']);
  });

  it('reports an error that is not one of the mirror, and goes on', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => Promise.reject(new Error('the disk is gone'));
    turns.start();
    await turns.clock.advance(5 * SECOND);
    expect(turns.failures).toMatchObject([{ message: 'the disk is gone' }]);
    turns.end = () => 'followed';
    await turns.clock.advance(30 * SECOND);
    expect(turns.count('m')).toBe(2);
  });

  it('stops when what is under way has ended, and begins nothing more', async () => {
    const turns = new Turns({ m: {} });
    let end = (): void => {};
    turns.end = () =>
      new Promise((resolve) => {
        end = () => resolve('followed');
      });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    let stopped = false;
    const stopping = turns.scheduler.stop().then(() => {
      stopped = true;
    });
    await turns.clock.advance(0);
    expect(stopped).toBe(false);
    end();
    await stopping;
    await turns.clock.advance(10 * MINUTE);
    expect(turns.count('m')).toBe(1);
  });

  it('runs a mirror one time after the other, and one that is removed no more', async () => {
    const turns = new Turns({ m: {} });
    const ends: (() => void)[] = [];
    turns.end = () => new Promise((resolve) => ends.push(() => resolve('followed')));
    turns.start();
    await turns.clock.advance(5 * SECOND);
    const options = { accepted: [], isAsked: true, signal: new AbortController().signal };
    const asked = turns.scheduler.run(turns.mirror('m'), options);
    await turns.clock.advance(MINUTE);
    expect(turns.count('m')).toBe(1);
    ends.shift()?.();
    await turns.clock.advance(0);
    expect(turns.count('m')).toBe(2);
    ends.shift()?.();
    expect(await asked).toMatchObject({ end: 'followed' });
    await turns.scheduler.remove([turns.mirror('m')]);
    await expect(turns.scheduler.run(turns.mirror('m'), options)).rejects.toMatchObject({
      code: 'MIRROR_REPLACED',
    });
    await turns.clock.advance(10 * MINUTE);
    expect(turns.count('m')).toBe(2);
  });
});
