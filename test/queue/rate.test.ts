import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Lane } from '../../src/queue/options.js';
import { goesOn } from '../support/health.js';
import { Gate, lanesOf, openQueue, pass, settle, UNLIMITED } from './queue-setup.js';

const HOUR_MS = 3_600_000;

const limits = (requestsPerSecond: number, concurrency = 100) => ({
  lanes: lanesOf({ requestsPerSecond, concurrency }),
});

/** A queue with these rates, and for each lane when the requests of a producer started that always has more. */
function producing(rates: Partial<Record<Lane, number>>, work: () => Promise<void> = async () => {}) {
  const own = Object.entries(rates).map(([lane, requestsPerSecond]) => [
    lane,
    { requestsPerSecond, concurrency: 4 },
  ]);
  const { queue, clock } = openQueue({ lanes: lanesOf(UNLIMITED, Object.fromEntries(own)) });
  const starts: Partial<Record<Lane, number[]>> = {};
  const produce = async (lane: Lane) => {
    const times: number[] = [];
    starts[lane] = times;
    for (;;) {
      await queue.ready(lane);
      queue
        .run(lane, () => {
          times.push(clock.elapsed());
          return work();
        })
        .catch(() => {});
    }
  };
  for (const [lane] of own) produce(lane as Lane).catch(() => {});
  return { queue, clock, of: (lane: Lane) => starts[lane] ?? [] };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('the rate of each lane is kept in every second, whoever else runs, and reached', async () => {
  const rates = { push: 20, confirm: 200, interactive: 10 } as const;
  const { queue, clock, of } = producing(rates);
  await pass(clock, 2000);
  await queue.stop(0);
  for (const lane of ['push', 'confirm', 'interactive'] as const) {
    const times = of(lane);
    const most = Math.max(...times.map((from) => times.filter((t) => t >= from && t < from + 1000).length));
    expect(most, lane).toBeLessThanOrEqual(rates[lane]);
    expect(times.length, lane).toBeGreaterThan(rates[lane] * 2 * 0.95);
  }
});

test.each([1, 3, 99, 149, 1000])('a rate of %i is reached, but for 3 in 100, and evenly', async (rate) => {
  const { queue, clock, of } = producing({ mirror: rate });
  await pass(clock, 2000);
  await queue.stop(0);
  const starts = of('mirror');
  expect(starts.length).toBeGreaterThanOrEqual(Math.floor(rate * 2 * 0.97));
  const halves = [0, 1000].map((from) => starts.filter((t) => t >= from + 250 && t < from + 750).length);
  for (const half of halves) expect(half).toBeLessThanOrEqual(Math.ceil(rate / 2 + rate / 20));
});

test('a rate may be less than one a second', async () => {
  const { queue, clock, of } = producing({ mirror: 0.5 });
  await pass(clock, 5000);
  await queue.stop(0);
  expect(of('mirror')).toEqual([0, 2000, 4000]);
});

test('a rate does not make up for a time in which nothing was to be started, and counts no request that left', async () => {
  const { queue, clock } = openQueue(limits(20));
  const starts: number[] = [];
  const work = async () => void starts.push(clock.elapsed());
  await queue.run('mirror', work);
  await pass(clock, 1000);
  const caller = new AbortController();
  for (let i = 0; i < 5; i += 1)
    void queue.run('mirror', work, i === 1 ? { signal: caller.signal } : {}).catch(() => {});
  caller.abort();
  await pass(clock, 200);
  expect(starts).toEqual([0, 1000, 1050, 1100, 1150]);
});

test('a rate changes at once, and no second has more starts than the larger of both allows', async () => {
  const { queue, clock } = openQueue(limits(2));
  let starts = 0;
  const work = async () => {
    starts += 1;
  };
  for (let i = 0; i < 60; i += 1) void queue.run('mirror', work);
  const startsIn = async (ms: number) => {
    const before = starts;
    await pass(clock, ms);
    return starts - before;
  };
  expect(await startsIn(2_000)).toBeLessThanOrEqual(5);
  queue.limit(limits(10));
  const fast = await startsIn(2_000);
  expect(fast).toBeGreaterThanOrEqual(15);
  expect(fast).toBeLessThanOrEqual(21);
  queue.limit(limits(1));
  const slow = await startsIn(3_000);
  expect(slow).toBeGreaterThanOrEqual(2);
  expect(slow).toBeLessThanOrEqual(3);
});

test.each([-500, 24 * HOUR_MS])('a rate goes on when the clock is set by %d ms', async (byMs) => {
  const { queue, clock, of } = producing({ mirror: 10 });
  await pass(clock, 1000);
  vi.setSystemTime(Date.now() + byMs);
  clock.set(byMs);
  const before = of('mirror').length;
  await pass(clock, 2000);
  await queue.stop(0);
  expect(of('mirror').length - before).toBeGreaterThanOrEqual(12);
  expect(of('mirror').length - before).toBeLessThanOrEqual(21);
});

test('that p-queue keeps waiting because the wall clock was set back is a matter for the watchdog', async () => {
  const { queue, clock } = producing({ mirror: 10 });
  await pass(clock, 1000);
  expect(goesOn(queue.health, 'request mirror')).toBe(true);
  vi.setSystemTime(Date.now() - HOUR_MS);
  clock.set(-HOUR_MS);
  await pass(clock, 2000);
  goesOn(queue.health, 'request mirror');
  await pass(clock, 1000);
  expect(goesOn(queue.health, 'request mirror')).toBe(false);
  await queue.stop(0);
});

test('one request may come to wait while the rate is spent, and as many as can start together before', async () => {
  const { queue, clock } = openQueue(limits(1, 3));
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
