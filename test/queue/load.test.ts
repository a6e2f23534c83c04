import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { until } from '../support/wait.js';
import { lanesOf, openQueue, UNLIMITED } from './queue-setup.js';

/** Makes a queue with the system's clock and timers. */
const realQueue = (concurrency: number, requestsPerSecond = UNLIMITED.requestsPerSecond) =>
  openQueue({
    lanes: lanesOf({ requestsPerSecond, concurrency }),
    clock: systemClock,
  }).queue;

test('a backlog of 30,000 is processed with a handful of requests in the queue at any time, and leaves nothing behind', async () => {
  const queue = realQueue(8);
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  const { signal } = new AbortController();
  let done = 0;
  const end = () => {
    done += 1;
  };
  const most = { waiting: 0, running: 0 };
  for (let i = 0; i < 30_000; i += 1) {
    await queue.ready('push', signal);
    const work = async () => {
      if (i % 10 === 0) await setImmediate();
      if (i % 1000 === 999) throw new Error('one bad item');
    };
    queue.run('push', work, { signal }).then(end, end);
    if (i % 20 !== 0) continue;
    const { waiting, running } = queue.status().lanes.push;
    most.waiting = Math.max(most.waiting, waiting);
    most.running = Math.max(most.running, running);
  }
  await until(() => done === 30_000, 'all requests are done');
  await queue.stop(10_000);
  await setImmediate();
  process.off('unhandledRejection', onUnhandled);
  expect(Math.max(most.waiting, most.running)).toBeLessThanOrEqual(8);
  const { started, failed, running, waiting } = queue.status().lanes.push;
  expect({ started, failed, running, waiting, unhandled }).toEqual({
    started: 30_000,
    failed: 30,
    running: 0,
    waiting: 0,
    unhandled: [],
  });
});

test('a request that waits for the rate limit always starts', async () => {
  const queue = realQueue(8, 2000);
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
