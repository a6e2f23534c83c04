import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Housekeeping } from '../../src/daemon/housekeeping.js';
import type { Clock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { accepted, gone, passedOver, read } from '../../src/state/transitions.js';
import { lifeOf, pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const DAY_MS = 86_400_000;
const clock = new FakeClock();
const said: string[] = [];
const log = { ...silentLogger, info: (_: object, message: string) => void said.push(message) };
let state: State;
let housekeeping: Housekeeping;

beforeEach(async () => {
  said.length = 0;
  state = await State.open(temporaryDirectory(), { clock, log: silentLogger });
  housekeeping = new Housekeeping({
    state,
    commit: () => state.commit(),
    folders: ['inbox'],
    keepGoneMs: 2 * DAY_MS,
    clock,
    log,
  });
});
afterEach(async () => {
  await housekeeping.stop();
  await state.close();
});

/** Each look at the clock takes 10 ms there. @param whilePausing what others do in each pause */
function housekeeperOnSlowMachine(whilePausing: () => void): Housekeeping {
  let now = clock.now();
  const slow: Clock = {
    now: () => {
      now += 10;
      return now;
    },
    wall: () => clock.wall(),
    after: (ms, fn) => clock.after(ms, fn),
    sleep: async () => whilePausing(),
  };
  const commit = () => state.commit();
  return new Housekeeping({ state, commit, folders: ['inbox'], keepGoneMs: DAY_MS, clock: slow, log });
}

describe('a folder that left the configuration', () => {
  it('has no files that anybody waits for, and that is said once', async () => {
    state.put(pendingRecord('waits', 'old'));
    state.put(lifeOf(pendingRecord('done', 'old'))[2]);
    const { version } = pendingRecord('empty');
    const why = { code: 'EMPTY', message: 'The file is empty.', hint: '' };
    state.put(passedOver(undefined, { folder: 'old', path: 'empty' }, version, why, clock.now()));
    state.put(pendingRecord('stays'));
    await housekeeping.start();
    expect(state.counts()).toMatchObject({ pending: 1, confirmed: 0, gone: 2, passed: 0 });
    expect(state.get('inbox', 'stays')?.status).toBe('pending');
    expect(said).toEqual([expect.stringContaining('its 3 files count as gone')]);
    await housekeeping.start();
    expect(said).toHaveLength(1);
  });

  it('costs no pushes when it comes back', async () => {
    const item = pendingRecord('done', 'old');
    state.put(lifeOf(item)[2]);
    await housekeeping.start();
    expect(read(state.get('old', 'done'), item, item.version, clock.now()).status).toBe('accepted');
  });
});

describe('a folder that leaves the configuration of a running daemon', () => {
  it('has no files that anybody waits for, and that is on disk when it is answered', async () => {
    await housekeeping.start();
    for (let i = 0; i < 12_000; i += 1) state.put(pendingRecord(`${i}`, 'old'));
    state.put(pendingRecord('stays'));
    await housekeeping.keep(['inbox'], 2 * DAY_MS);
    expect(state.counts()).toMatchObject({ pending: 1, gone: 12_000 });
    expect(state.figures().unsaved).toBe(0);
    expect(said).toEqual([expect.stringContaining('its 12000 files count as gone')]);
  });

  it('lets others work meanwhile, and takes what they did with it', async () => {
    await housekeeping.start();
    for (let i = 0; i < 2_000; i += 1) state.put(pendingRecord(`${i}`, 'old'));
    const goneAt: number[] = [];
    const answered = () => {
      goneAt.push(state.counts().gone);
      for (const entry of [...state.entries.all('old')])
        if (entry.status === 'pending') state.put(accepted(entry, sentOf(entry), clock.now()));
    };
    const keeper = housekeeperOnSlowMachine(answered);
    await keeper.keep([], 2 * DAY_MS);
    expect(goneAt.length).toBeGreaterThan(20);
    const unsent = [...state.entries.all('old')].filter((entry) => entry.sent === undefined);
    expect(unsent).toHaveLength(goneAt[0] ?? 0);
  });

  it('is left to the next run where the daemon stops', async () => {
    await housekeeping.start();
    for (let i = 0; i < 1_500; i += 1) state.put(pendingRecord(`${i}`, 'old'));
    const stopped: Promise<void>[] = [];
    const keeper = housekeeperOnSlowMachine(() => void stopped.push(keeper.stop()));
    await keeper.keep([], 2 * DAY_MS);
    await Promise.all(stopped);
    expect(state.counts().pending).toBeGreaterThan(500);
    expect(said).toEqual([]);
    await housekeeping.start();
    expect(state.counts()).toMatchObject({ pending: 0, gone: 1_500 });
  });

  it('is remembered for as long as is said then', async () => {
    await housekeeping.start();
    state.put(gone(pendingRecord('a'), clock.now()));
    await clock.advance(1.5 * DAY_MS);
    await housekeeping.keep(['inbox'], DAY_MS);
    await until(() => state.counts().gone === 0, 'it is forgotten');
    state.put(gone(pendingRecord('b'), clock.now()));
    await housekeeping.keep(['inbox'], 10 * DAY_MS);
    await clock.advance(5 * DAY_MS);
    expect(state.counts().gone).toBe(1);
  });
});

describe('a file that is gone', () => {
  it('is forgotten in time by a daemon that is never restarted, and not earlier', async () => {
    await housekeeping.start();
    state.put(gone(pendingRecord('a'), clock.now()));
    await clock.advance(2 * DAY_MS);
    expect(state.entries.size).toBe(1);
    await clock.advance(DAY_MS);
    await until(() => state.entries.size === 0, 'what is gone for three days is forgotten');
  });

  it('is forgotten on the day it is due, however slow the disk was the day before', async () => {
    let calls = 0;
    let diskAnswers = (): void => {};
    const slow = new Promise<number>((resolve) => {
      diskAnswers = () => resolve(0);
    });
    const forgetGone = (): Promise<number> => {
      calls += 1;
      return calls === 2 ? slow : Promise.resolve(0);
    };
    const { entries } = state;
    const slowState = {
      entries,
      put: state.put.bind(state),
      remove: state.remove.bind(state),
      commit: state.commit.bind(state),
      forgetGone,
    };
    const keeper = new Housekeeping({
      state: slowState,
      commit: () => state.commit(),
      folders: ['inbox'],
      keepGoneMs: DAY_MS,
      clock,
      log,
    });
    await keeper.start();
    await clock.advance(2 * DAY_MS);
    expect(calls).toBe(2);
    diskAnswers();
    await until(() => calls === 3, 'the second day is looked at');
    await keeper.stop();
  });
});
