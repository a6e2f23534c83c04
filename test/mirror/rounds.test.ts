import { describe, expect, it } from 'vitest';
import type { Mirror } from '../../src/mirror/parts.js';
import type { MirrorRecord } from '../../src/mirror/record.js';
import { Rounds } from '../../src/mirror/rounds.js';
import type { RunResult } from '../../src/mirror/runner.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

interface Made {
  readonly every?: number;
  readonly kind?: MirrorRecord['kind'];
  readonly nextIn?: number;
  /** `unknown` where it cannot be looked at. */
  edited?: boolean | 'unknown';
}

/** Rounds of mirrors whose runs a test decides about, on a clock that stands still. */
class Turns {
  readonly clock = new FakeClock();
  /** Names, as their runs began. */
  readonly begun: string[] = [];
  /** How a run ends: a name, or nothing yet. */
  end: (name: string) => RunResult['end'] | Promise<RunResult['end']> = () => 'followed';
  readonly failures: unknown[] = [];
  readonly records = new Map<string, object>();
  readonly mirrors = new Map<string, Mirror>();
  readonly rounds: Rounds;
  #failed = 0;

  constructor(mirrors: Readonly<Record<string, Made>>) {
    for (const [name, made] of Object.entries(mirrors)) this.mirrors.set(name, mirror(name, made));
    this.rounds = new Rounds({
      set: {
        all: [...this.mirrors.values()],
        get: (name) => this.mirrors.get(name),
        remove: (name) => void this.mirrors.delete(name),
      },
      runner: {
        isRunning: () => false,
        run: async ({ name, identity }) => {
          this.begun.push(name);
          const end = await this.end(name);
          this.#failed = end === 'failed' ? this.#failed + 1 : 0;
          return { end, report: { name, ...identity, failures: this.#failed } };
        },
      },
      state: { meta: (name) => this.records.get(name) as never },
      clock: this.clock,
      random: () => 0.5,
    });
    afterwards('test', () => this.rounds.stop());
  }

  start(): void {
    this.rounds.start((error) => void this.failures.push(error));
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
          looksEdited: async () => {
            if (made.edited === 'unknown') throw new Error('it cannot be looked at');
            return made.edited === true;
          },
        }),
    follow: () => Promise.reject(new Error('the runner does this')),
  };
}

describe('rounds', () => {
  it('run each mirror soon after the start, then as often as it wants', async () => {
    const turns = new Turns({ often: { every: 10 * SECOND }, seldom: { every: MINUTE } });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    expect(turns.begun.sort()).toEqual(['often', 'seldom']);
    await turns.clock.advance(61 * SECOND);
    expect([turns.count('often'), turns.count('seldom')]).toEqual([7, 2]);
  });

  it('run a mirror that failed earlier, and less and less early', async () => {
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

  it('run a mirror with an alarm as often as any', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => 'alarm';
    turns.start();
    await turns.clock.advance(5 * SECOND + MINUTE);
    expect(turns.count('m')).toBe(2);
  });

  it('come back in three seconds where somebody was writing the file', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => (turns.count('m') < 3 ? 'later' : 'followed');
    turns.start();
    await turns.clock.advance(5 * SECOND + 6 * SECOND);
    expect(turns.count('m')).toBe(3);
  });

  it('work on four files at a time, and on passes over citations beside them', async () => {
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

  it('run a mirror that knows its time at that time', async () => {
    const turns = new Turns({ pass: { kind: 'citations', nextIn: 3 * MINUTE } });
    turns.start();
    await turns.clock.advance(3 * MINUTE - 1);
    expect(turns.count('pass')).toBe(0);
    await turns.clock.advance(1);
    expect(turns.count('pass')).toBe(1);
  });

  it('sleep longer than a timer bears', async () => {
    const turns = new Turns({ m: { every: 60 * 86_400_000 } });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    await turns.clock.advance(59 * 86_400_000);
    expect(turns.count('m')).toBe(1);
    await turns.clock.advance(86_400_000);
    expect(turns.count('m')).toBe(2);
  });

  it('look at edited files every two seconds, unless the last run failed', async () => {
    const made: Made = { every: 10 * MINUTE, edited: false };
    const turns = new Turns({ m: made });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    made.edited = true;
    await turns.clock.advance(2 * SECOND);
    expect(turns.count('m')).toBe(2);
    turns.records.set('mirror/m', { kind: 'table', path: 'm', failure: { code: 'X' } });
    await turns.clock.advance(MINUTE);
    expect(turns.count('m')).toBe(2);
  });

  it('leave it to a run to find out why a file cannot be looked at', async () => {
    const made: Made = { every: 10 * MINUTE, edited: false };
    const turns = new Turns({ m: made });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    made.edited = 'unknown';
    await turns.clock.advance(2 * SECOND);
    expect(turns.failures).toEqual([]);
    expect(turns.count('m')).toBe(2);
  });

  it('forget what is over', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => 'over';
    turns.start();
    await turns.clock.advance(10 * MINUTE);
    expect(turns.count('m')).toBe(1);
    expect(turns.mirrors.size).toBe(0);
  });

  it('tell of an error that is not one of the mirror, and go on', async () => {
    const turns = new Turns({ m: {} });
    turns.end = () => Promise.reject(new Error('the disk is gone'));
    turns.start();
    await turns.clock.advance(5 * SECOND);
    expect(turns.failures).toMatchObject([{ message: 'the disk is gone' }]);
    turns.end = () => 'followed';
    await turns.clock.advance(30 * SECOND);
    expect(turns.count('m')).toBe(2);
  });

  it('stop when what is under way has ended, and begin nothing more', async () => {
    const turns = new Turns({ m: {} });
    let end = (): void => {};
    turns.end = () =>
      new Promise((resolve) => {
        end = () => resolve('followed');
      });
    turns.start();
    await turns.clock.advance(5 * SECOND);
    let stopped = false;
    const stopping = turns.rounds.stop().then(() => {
      stopped = true;
    });
    await turns.clock.advance(0);
    expect(stopped).toBe(false);
    end();
    await stopping;
    await turns.clock.advance(10 * MINUTE);
    expect(turns.count('m')).toBe(1);
  });

  it('are busy while a mirror that is due does not begin, and not while as many run as may', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const turns = new Turns(Object.fromEntries(names.map((name) => [name, {}])));
    const ends: (() => void)[] = [];
    turns.end = () =>
      new Promise((resolve) => {
        ends.push(() => resolve('followed'));
      });
    const { health } = turns.rounds;
    expect(health.busy).toBe(false);
    turns.start();
    expect(health.busy).toBe(false);
    // Nobody hears the bell that rings meanwhile.
    turns.clock.skip(30 * SECOND);
    expect(health.busy).toBe(true);
    health.look(0);
    await turns.clock.advance(1);
    expect(turns.begun).toHaveLength(4);
    expect(health.look(1_000)).toBe(0);
    expect(health.busy).toBe(false);
    for (const end of ends.splice(0)) end();
    await turns.clock.advance(1);
    expect(turns.begun).toHaveLength(6);
    turns.clock.skip(5 * MINUTE);
    expect(health.busy).toBe(true);
    for (const end of ends.splice(0)) end();
    await turns.rounds.stop();
    expect(health.busy).toBe(false);
  });
});
