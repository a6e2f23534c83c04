import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { eachLane, type Lane } from '../../src/queue/options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { goesOn } from '../support/health.js';
import { until } from '../support/wait.js';
import { Gate, lanesOf, openQueue, pass, settle, UNLIMITED } from './queue-setup.js';

const HOUR_MS = 3_600_000;

const limits = (requestsPerSecond: number) => ({
  lanes: lanesOf({ requestsPerSecond, concurrency: 100 }),
});

/** A queue whose lane `mirror` has this rate, and when the requests of a producer that always has more started. */
function startsAt(rate: number) {
  const { queue, clock } = openQueue(limits(rate));
  const starts: number[] = [];
  const produce = async () => {
    for (;;) {
      await queue.ready('mirror');
      queue.run('mirror', async () => void starts.push(clock.elapsed())).catch(() => {});
    }
  };
  produce().catch(() => {});
  return { queue, clock, starts };
}

describe('the rate of a lane', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('is kept in every second, whoever else runs', async () => {
    const { queue, clock } = openQueue({
      lanes: lanesOf(UNLIMITED, {
        push: { requestsPerSecond: 20, concurrency: 4 },
        confirm: { requestsPerSecond: 200, concurrency: 4 },
      }),
    });
    const starts: Record<string, number[]> = { push: [], confirm: [] };
    const produce = async (lane: Lane) => {
      for (;;) {
        await queue.ready(lane);
        queue.run(lane, async () => starts[lane]?.push(clock.elapsed())).catch(() => {});
      }
    };
    const ends = [produce('push'), produce('confirm')].map((end) => end.catch(() => 'stopped'));
    await pass(clock, 3000);
    await queue.stop(0);
    expect(await Promise.all(ends)).toEqual(['stopped', 'stopped']);
    for (const [lane, rate] of [
      ['push', 20],
      ['confirm', 200],
    ] as const) {
      const times = starts[lane] ?? [];
      const most = Math.max(...times.map((from) => times.filter((t) => t >= from && t < from + 1000).length));
      expect(most, lane).toBeLessThanOrEqual(rate);
      expect(times.length, lane).toBeGreaterThan(rate * 3 * 0.95);
    }
  });

  test('is kept in the lane interactive, too', async () => {
    const { queue, clock } = openQueue({
      lanes: lanesOf(UNLIMITED, { interactive: { requestsPerSecond: 10, concurrency: 5 } }),
    });
    const gate = new Gate();
    for (const name of ['first', 'second']) void queue.run('interactive', gate.task(name));
    await pass(clock, 99);
    expect(gate.order).toEqual(['first']);
    await pass(clock, 1);
    expect(gate.order).toEqual(['first', 'second']);
  });

  test.each([1, 3, 20, 99, 100, 149, 200, 1000])(
    'of %i is reached, but for 3 in 100, and evenly',
    async (rate) => {
      const { queue, clock, starts } = startsAt(rate);
      await pass(clock, 2000);
      await queue.stop(0);
      expect(starts.length).toBeGreaterThanOrEqual(Math.floor(rate * 2 * 0.97));
      const halves = [0, 1000].map((from) => starts.filter((t) => t >= from + 250 && t < from + 750).length);
      for (const half of halves) expect(half).toBeLessThanOrEqual(Math.ceil(rate / 2 + rate / 20));
    },
  );

  test('may be less than one a second', async () => {
    const { queue, clock, starts } = startsAt(0.5);
    await pass(clock, 5000);
    await queue.stop(0);
    expect(starts).toEqual([0, 2000, 4000]);
  });

  test('is reached by a producer also while the requests before are still under way', async () => {
    const { queue, clock } = openQueue(limits(20));
    const starts: number[] = [];
    const produce = async () => {
      for (;;) {
        await queue.ready('mirror');
        queue.run('mirror', () => new Promise(() => void starts.push(clock.elapsed()))).catch(() => {});
      }
    };
    produce().catch(() => {});
    await pass(clock, 500);
    expect(starts.length).toBe(11);
  });

  test('does not make up for a time in which nothing was to be started', async () => {
    const { queue, clock } = openQueue(limits(20));
    const starts: number[] = [];
    const work = async () => void starts.push(clock.elapsed());
    await queue.run('mirror', work);
    await pass(clock, 2000);
    for (let i = 0; i < 4; i += 1) void queue.run('mirror', work);
    await pass(clock, 200);
    expect(starts).toEqual([0, 2000, 2050, 2100, 2150]);
  });

  test('changes at once, and never starts more in a second than the larger of both allows', async () => {
    const { queue, clock } = openQueue(limits(2));
    const starts: number[] = [];
    const work = async () => void starts.push(clock.elapsed());
    for (let i = 0; i < 60; i += 1) void queue.run('mirror', work);
    await pass(clock, 3_000);
    expect(starts.length).toBeLessThanOrEqual(7);
    const slow = starts.length;
    queue.limit(limits(10));
    await pass(clock, 4_000);
    const fast = starts.length - slow;
    expect(fast).toBeGreaterThanOrEqual(29);
    expect(fast).toBeLessThanOrEqual(41);
    queue.limit(limits(1));
    const from = starts.length;
    await pass(clock, 5_000);
    expect(starts.length - from).toBeLessThanOrEqual(5);
    expect(starts.length - from).toBeGreaterThanOrEqual(4);
  });

  test.each([-500, 24 * HOUR_MS])('goes on when the clock is set by %d ms', async (byMs) => {
    const { queue, clock, starts } = startsAt(10);
    await pass(clock, 1000);
    vi.setSystemTime(Date.now() + byMs);
    clock.set(byMs);
    const before = starts.length;
    await pass(clock, 4000);
    await queue.stop(0);
    expect(starts.length - before).toBeGreaterThanOrEqual(27);
    expect(starts.length - before).toBeLessThanOrEqual(41);
  });

  test('that p-queue keeps waiting because the wall clock was set back is a matter for the watchdog', async () => {
    const { queue, clock } = startsAt(10);
    await pass(clock, 1000);
    expect(goesOn(queue.health, 'request mirror')).toBe(true);
    await pass(clock, 1000);
    expect(goesOn(queue.health, 'request mirror')).toBe(true);
    vi.setSystemTime(Date.now() - HOUR_MS);
    clock.set(-HOUR_MS);
    await pass(clock, 3000);
    goesOn(queue.health, 'request mirror');
    await pass(clock, 3000);
    expect(goesOn(queue.health, 'request mirror')).toBe(false);
    await queue.stop(0);
  });

  test('lets one request come to wait while it is spent, and as many as can start together before', async () => {
    const { queue, clock } = openQueue({ lanes: lanesOf({ requestsPerSecond: 1, concurrency: 3 }) });
    const gate = new Gate();
    void queue.run('mirror', gate.task('a'));
    expect(queue.hasRoom('mirror')).toBe(true);
    void queue.run('mirror', gate.task('b'));
    await settle();
    expect(queue.hasRoom('mirror')).toBe(false);
    await pass(clock, 1000);
    expect(gate.order).toEqual(['a', 'b']);
    expect(queue.hasRoom('mirror')).toBe(true);
  });

  test('gives back the turn of a request that leaves before its start', async () => {
    const { queue, clock } = openQueue({ lanes: lanesOf({ requestsPerSecond: 1, concurrency: 3 }) });
    const gate = new Gate();
    const caller = new AbortController();
    void queue.run('mirror', gate.task('a'));
    const left = queue.run('mirror', gate.task('b'), { signal: caller.signal }).catch(() => 'left');
    void queue.run('mirror', gate.task('c'));
    caller.abort();
    expect(await left).toBe('left');
    await pass(clock, 1000);
    expect(gate.order).toEqual(['a', 'c']);
  });
});

test('a request that waits for the rate is never forgotten, by the clocks and timers of the system', async () => {
  const lane = { requestsPerSecond: 2000, concurrency: 8 };
  const queue = new RequestQueue({
    ...{ lanes: eachLane(() => lane) },
    ...{
      classify: () => ({ kind: 'answered' }),
      clock: systemClock,
      log: silentLogger,
      peerName: 'the peer',
    },
  });
  let done = 0;
  for (let i = 0; i < 400; i += 1) {
    await queue.ready('confirm');
    void queue.run('confirm', async () => {
      await systemClock.sleep((i * 7) % 10);
      done += 1;
    });
  }
  await until(() => done === 400, 'all requests are done');
  await queue.stop(0);
});
