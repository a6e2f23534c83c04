import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Lane } from '../../src/queue/options.js';
import { Gate, lanesOf, openQueue, pass, settle, UNLIMITED } from './queue-setup.js';

const HOUR_MS = 3_600_000;

const limits = (requestsPerSecond: number, concurrency = 100) => ({
  lanes: lanesOf({ requestsPerSecond, concurrency }),
});

/**
 * Makes a queue with these rates and a producer per lane that always has a request. Records the
 * times of the starts by lane.
 */
function producing(
  rates: Partial<Record<Lane, number>>,
  work: () => Promise<void> = async () => {},
) {
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

/** Returns the largest number of starts in any second. */
function most(times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((t) => t >= from && t < from + 1000).length));
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

test('each lane keeps and reaches its rate in every second, whatever other lanes do', async () => {
  const rates = { push: 20, confirm: 200, interactive: 10 } as const;
  const { queue, clock, of } = producing(rates);
  await pass(clock, 2000);
  await queue.stop(0);
  for (const lane of ['push', 'confirm', 'interactive'] as const) {
    expect(most(of(lane)), lane).toBeLessThanOrEqual(rates[lane]);
    expect(of(lane).length, lane).toBeGreaterThan(rates[lane] * 2 * 0.95);
  }
});

test.each([1, 3, 99, 149, 1000])(
  'a rate of %i is kept in every second, reached to 97 in 100, and spread evenly',
  async (rate) => {
    const { queue, clock, of } = producing({ mirror: rate });
    await pass(clock, 2000);
    await queue.stop(0);
    const starts = of('mirror');
    expect(most(starts)).toBeLessThanOrEqual(rate);
    expect(starts.length).toBeGreaterThanOrEqual(Math.floor(rate * 2 * 0.97));
    const halves = [0, 1000].map(
      (from) => starts.filter((t) => t >= from + 250 && t < from + 750).length,
    );
    for (const half of halves) expect(half).toBeLessThanOrEqual(Math.ceil(rate / 2 + rate / 20));
  },
);

test('a rate may be below one per second', async () => {
  const { queue, clock, of } = producing({ mirror: 0.5 });
  await pass(clock, 5000);
  await queue.stop(0);
  expect(of('mirror')).toEqual([0, 2001, 4002]);
});

test('a rate does not make up for idle time, and does not count aborted requests', async () => {
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

test('a pause does not reset the rate', async () => {
  const { queue, clock, of } = producing({ push: 20 });
  for (let i = 0; i < 20; i += 1) {
    await pass(clock, 130);
    queue.pause({ since: clock.now() });
    await settle();
    queue.resume();
  }
  await pass(clock, 1_000);
  expect(most(of('push'))).toBeLessThanOrEqual(20);
  expect(of('push').length).toBeGreaterThan(20);
});

test('a new rate applies at once, and no second has more starts than the larger of the two rates allows', async () => {
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

test.each([
  { what: 'a day back', byMs: -24 * HOUR_MS, everyMs: 2_000 },
  { what: 'a day ahead', byMs: 24 * HOUR_MS, everyMs: 2_000 },
  { what: 'an hour back', byMs: -HOUR_MS, everyMs: 2_000 },
  { what: 'an hour ahead', byMs: HOUR_MS, everyMs: 2_000 },
  { what: 'back by small steps', byMs: -700, everyMs: 500 },
  { what: 'ahead by small steps', byMs: 700, everyMs: 500 },
])('a rate is kept and reached while the wall clock is set: $what', async ({ byMs, everyMs }) => {
  const { queue, clock, of } = producing({ mirror: 10 });
  for (let passed = 0; passed < 6_000; passed += 500) {
    await pass(clock, 500);
    if (passed % everyMs !== 0) continue;
    vi.setSystemTime(Date.now() + byMs);
    clock.set(byMs);
  }
  await queue.stop(0);
  expect(most(of('mirror'))).toBeLessThanOrEqual(10);
  expect(of('mirror').length).toBeGreaterThanOrEqual(60);
});

test('one request may wait while the rate is exhausted, and otherwise as many as can start together', async () => {
  const { queue, clock } = openQueue(limits(1, 3));
  const gate = new Gate();
  void queue.run('mirror', gate.task('a'));
  expect(queue.hasRoom('mirror')).toBe(true);
  void queue.run('mirror', gate.task('b'));
  await settle();
  expect(queue.hasRoom('mirror')).toBe(false);
  await pass(clock, 1001);
  expect(gate.order).toEqual(['a', 'b']);
  expect(queue.hasRoom('mirror')).toBe(true);
});
