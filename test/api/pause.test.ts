import { beforeEach, describe, expect, it } from 'vitest';
import { pauseWork, restorePause, resumeWork } from '../../src/api/pause.js';
import { silentLogger } from '../../src/lib/logger.js';
import { eachLane } from '../../src/queue/options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { savedPause } from '../../src/report/status-report.js';
import type { Json } from '../../src/state/rows.js';
import { State } from '../../src/state/state.js';
import { DAY, HOUR } from '../report/world.js';
import { opened } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

/** Within this the end of a pause of two hours is noticed, or that the clock was set. */
const NOTICED_MS = 72_000;
const OVER = 'the pause is over: the work with the peer goes on';
let clock: FakeClock;
let directory: string;
let state: State;
let said: string[];

beforeEach(async () => {
  [clock, directory, said] = [new FakeClock(), temporaryDirectory(), []];
  state = await opened(directory, { clock });
});

/** Another run of the daemon: its queue, and what a person asks of it. */
function started(commit = () => state.commit()) {
  clock.restart();
  const log = { ...silentLogger, info: (_: object, message: string) => void said.push(message) };
  const queue = new RequestQueue({
    lanes: eachLane(() => ({ requestsPerSecond: 100, concurrency: 1 })),
    classify: () => ({ kind: 'answered' }),
    clock,
    log,
    peerName: 'the peer',
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
    pause: (forMs?: number) => pauseWork(deps, forMs),
    resume: () => resumeWork(deps),
  };
}

describe('a pause', () => {
  it.each([-DAY, DAY])(
    'ends in time though the clock is set by %d ms and the machine slept, and says when that is',
    async (byMs) => {
      const { queue, pause } = started();
      await pause(HOUR);
      clock.set(byMs);
      expect(queue.status().paused?.until).toBe(clock.now() + HOUR);
      await clock.advance(HOUR - 1_000);
      expect(queue.status().paused).toBeDefined();
      await clock.advance(1_000);
      expect(queue.status().paused).toBeUndefined();
      expect(said.at(-1)).toBe(OVER);
    },
  );

  it('is soon over where its end passed while the machine slept', async () => {
    const { queue, pause } = started();
    await pause(2 * HOUR);
    const work = queue.run('push', async () => 'done');
    await clock.advance(HOUR / 2);
    clock.suspend(14 * HOUR);
    // A watchdog that saw work that may start, and nobody who begins it, would end the daemon.
    expect(queue.mayStart('push') || queue.hasRoom('confirm')).toBe(false);
    await clock.advance(NOTICED_MS);
    expect(queue.status().paused).toBeUndefined();
    expect(await work).toBe('done');
    expect(said.at(-1)).toBe(OVER);
  });

  it('is on disk when it is answered, and so is its end', async () => {
    const { queue, pause, resume } = started();
    const since = clock.now();
    const onDisk = async () => savedPause(await State.read(directory), clock.now());
    expect(await pause(HOUR)).toEqual({ since, until: since + HOUR });
    expect(await onDisk()).toEqual({ since, until: since + HOUR });
    expect(await resume()).toBe(true);
    expect(await onDisk()).toBeUndefined();
    expect(queue.status().paused).toBeUndefined();
    expect(await resume()).toBe(false);
    const words = 'nothing is sent to the peer, what changes on disk is read and waits';
    expect(said).toEqual([`paused for 1h: ${words}`, OVER]);
  });

  it('holds the queue before it is on disk, and ends before that, and who asked is told where it cannot get there', async () => {
    const { queue, pause, resume } = started(() => Promise.reject(new Error('no disk')));
    await expect(pause()).rejects.toThrow('no disk');
    expect(queue.status().paused).toBeDefined();
    await expect(resume()).rejects.toThrow('no disk');
    expect(queue.status().paused).toBeUndefined();
  });

  it('takes no longer than it was to where the clock was set back before a restart', async () => {
    await started().pause(HOUR);
    clock.set(-DAY);
    const { queue } = started();
    expect(queue.status().paused).toEqual({ since: clock.now(), until: clock.now() + HOUR });
    await clock.advance(HOUR / 2);
    // Not anew with each restart.
    expect(started().queue.status().paused?.until).toBe(clock.now() + HOUR / 2);
    await clock.advance(HOUR / 2);
    expect(savedPause(state, clock.now())).toBeUndefined();
  });

  it('goes on after a restart, for what is left of its time, and is over where that passed while nothing ran', async () => {
    const since = clock.now();
    const until = since + HOUR;
    await started().pause(HOUR);
    await clock.advance(HOUR / 2);
    const { queue } = started();
    expect(queue.status().paused).toEqual({ since, until });
    const before = said.length;
    clock.skip(HOUR / 2);
    expect(savedPause(state, clock.now())).toBeUndefined();
    expect(started().queue.status().paused).toBeUndefined();
    expect(said.slice(before)).toEqual([]);
    await clock.advance(0);
    expect(queue.status().paused).toBeUndefined();
  });

  it('that is prolonged began when it began', async () => {
    const { pause } = started();
    const since = clock.now();
    await pause(HOUR);
    await clock.advance(1_000);
    expect(await pause()).toEqual({ since });
    expect(await pause(2 * HOUR)).toEqual({ since, until: clock.now() + 2 * HOUR });
    await clock.advance(2 * HOUR);
    expect(await pause()).toEqual({ since: clock.now() });
  });

  it.each(['yes', 7, null, {}, { since: 'now' }])('that was kept as %j is none', (kept) => {
    state.setMeta('paused', kept);
    expect(savedPause(state, clock.now())).toBeUndefined();
  });
});
