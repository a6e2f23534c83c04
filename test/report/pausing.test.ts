import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { eachLane } from '../../src/queue/options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { keptPause, pause, restorePause, resume } from '../../src/report/pausing.js';
import type { Json } from '../../src/state/journal.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const HOUR_MS = 3_600_000;
/** Within this the end of a pause of two hours is noticed, or that the clock was set. */
const NOTICED_MS = 72_000;
let clock: FakeClock;
let directory: string;
let state: State;
let said: string[];

beforeEach(async () => {
  clock = new FakeClock();
  directory = temporaryDirectory();
  said = [];
  state = await State.open(directory, { clock, log: silentLogger });
});
afterEach(() => state.close());

/** A daemon's queue and pausing, as they are after a start. */
/** Another run of the daemon. */
function started(commit = () => state.commit()) {
  clock.restart();
  const log = { ...silentLogger, info: (_: object, message: string) => void said.push(message) };
  const queue = new RequestQueue({
    lanes: eachLane(() => ({ requestsPerSecond: 100, concurrency: 1 })),
    ...{ classify: () => ({ kind: 'answered' }), clock, log, peerName: 'the peer' },
  });
  const kept = {
    meta: (name: string) => state.meta(name),
    setMeta: (name: string, value: Json | undefined) => state.setMeta(name, value),
    commit,
  };
  const deps = { state: kept, queue, clock, log };
  restorePause(deps);
  return {
    queue,
    pausing: { pause: (forMs?: number) => pause(deps, forMs), resume: () => resume(deps) },
  };
}

describe('a pause', () => {
  it.each([-24 * HOUR_MS, 24 * HOUR_MS])(
    'ends in time though the clock is set by %d ms, and says when that is',
    async (byMs) => {
      const { queue, pausing } = started();
      await pausing.pause(HOUR_MS);
      clock.set(byMs);
      expect(queue.status().paused?.until).toBe(clock.now() + HOUR_MS);
      await clock.advance(HOUR_MS - 1_000);
      expect(queue.status().paused).toBeDefined();
      await clock.advance(1_000);
      expect(queue.status().paused).toBeUndefined();
      expect(said.at(-1)).toBe('the pause is over: the work with the peer goes on');
    },
  );

  it('is over in time though the machine slept meanwhile', async () => {
    const { queue, pausing } = started();
    await pausing.pause(2 * HOUR_MS);
    await clock.advance(HOUR_MS / 2);
    clock.suspend(HOUR_MS);
    await clock.advance(NOTICED_MS);
    expect(queue.status().paused).toBeDefined();
    await clock.advance(HOUR_MS / 2 - NOTICED_MS);
    expect(queue.status().paused).toBeUndefined();
  });

  it('is soon over where its end passed while the machine slept', async () => {
    const { queue, pausing } = started();
    await pausing.pause(2 * HOUR_MS);
    const work = queue.run('push', async () => 'done');
    await clock.advance(HOUR_MS / 2);
    clock.suspend(14 * HOUR_MS);
    // A watchdog that saw work that may start, and nobody who begins it, would end the daemon.
    expect(queue.mayStart('push') || queue.hasRoom('confirm')).toBe(false);
    await clock.advance(NOTICED_MS);
    expect(queue.status().paused).toBeUndefined();
    expect(await work).toBe('done');
    expect(said.at(-1)).toBe('the pause is over: the work with the peer goes on');
  });

  it('is on disk when it is answered, and so is its end', async () => {
    const { queue, pausing } = started();
    const since = clock.now();
    expect(await pausing.pause(HOUR_MS)).toEqual({ since, until: since + HOUR_MS });
    expect(keptPause(await State.read(directory), clock.now())).toEqual({ since, until: since + HOUR_MS });
    expect(await pausing.resume()).toBe(true);
    expect(keptPause(await State.read(directory), clock.now())).toBeUndefined();
    expect(queue.status().paused).toBeUndefined();
    expect(await pausing.resume()).toBe(false);
    expect(said).toEqual([
      'paused for 1h: nothing is sent to the peer, what changes on disk is read and waits',
      'the pause is over: the work with the peer goes on',
    ]);
  });

  it('holds the queue before it is on disk, and is not answered when it cannot get there', async () => {
    const { queue, pausing } = started(() => Promise.reject(new Error('no disk')));
    await expect(pausing.pause(undefined)).rejects.toThrow('no disk');
    expect(queue.status().paused).toBeDefined();
  });

  it('goes on after a restart, for what is left of its time', async () => {
    const since = clock.now();
    await started().pausing.pause(HOUR_MS);
    await clock.advance(HOUR_MS / 2);
    const { queue } = started();
    expect(queue.status().paused).toEqual({ since, until: since + HOUR_MS });
    await clock.advance(HOUR_MS / 2 - 1);
    expect(queue.status().paused).toBeDefined();
    await clock.advance(1);
    expect(queue.status().paused).toBeUndefined();
    expect(said.at(-1)).toBe('the pause is over: the work with the peer goes on');
    expect(keptPause(state, clock.now())).toBeUndefined();
  });

  it('is over where its time passed while nothing ran', async () => {
    await started().pausing.pause(HOUR_MS);
    clock.skip(HOUR_MS);
    expect(keptPause(state, clock.now())).toBeUndefined();
    expect(started().queue.status().paused).toBeUndefined();
    expect(said.filter((line) => line.includes('as before the start'))).toEqual([]);
  });

  it('that is prolonged began when it began', async () => {
    const { pausing } = started();
    const since = clock.now();
    await pausing.pause(HOUR_MS);
    await clock.advance(1_000);
    expect(await pausing.pause(undefined)).toEqual({ since });
    expect(await pausing.pause(2 * HOUR_MS)).toEqual({ since, until: clock.now() + 2 * HOUR_MS });
    await clock.advance(2 * HOUR_MS);
    expect(await pausing.pause(undefined)).toEqual({ since: clock.now() });
  });

  it('that was kept in a way that cannot be read is none', () => {
    for (const kept of ['yes', 7, null, {}, { since: 'now' }]) {
      state.setMeta('paused', kept);
      expect(keptPause(state, clock.now())).toBeUndefined();
    }
  });
});
