import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { until } from '../support/wait.js';
import { Bad, lanesOf, UNLIMITED, waitMs } from './queue-setup.js';

function realQueue(concurrency: number): RequestQueue {
  return new RequestQueue({
    lanes: lanesOf({ ...UNLIMITED, concurrency }),
    classify: (error) => (error instanceof Bad ? error.outcome : { kind: 'answered' }),
    clock: systemClock,
    log: silentLogger,
    peerName: 'peer',
    policy: { waitMs: waitMs(20, 60_000) },
  });
}

describe('a backlog of 100,000', () => {
  test('passes the queue with a handful of tasks in it at any time, and leaves nothing behind', async () => {
    const queue = realQueue(8);
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', hear);
    const shutdown = new AbortController();
    let done = 0;
    let mostWaiting = 0;
    let mostRunning = 0;
    for (let i = 0; i < 100_000; i += 1) {
      await queue.ready('push', shutdown.signal);
      const end = queue.run(
        'push',
        async () => {
          if (i % 10 === 0) await setImmediate();
          if (i % 1000 === 999) throw new Error('one bad item');
        },
        { signal: shutdown.signal },
      );
      end.then(
        () => {
          done += 1;
        },
        () => {
          done += 1;
        },
      );
      if (i % 20 !== 0) continue;
      const { waiting, running } = queue.status().lanes.push;
      mostWaiting = Math.max(mostWaiting, waiting);
      mostRunning = Math.max(mostRunning, running);
    }
    await until(() => done === 100_000, 'all tasks are done');
    await queue.stop(10_000);
    await setImmediate();
    process.off('unhandledRejection', hear);
    expect(mostWaiting).toBeLessThanOrEqual(8);
    expect(mostRunning).toBeLessThanOrEqual(8);
    expect(queue.status().lanes.push).toMatchObject({
      started: 100_000,
      failed: 100,
      running: 0,
      waiting: 0,
    });
    expect(unhandled).toEqual([]);
  });
});

describe('with real timers', () => {
  test('a peer that went away is found again, and everything that waited is done in order', async () => {
    const queue = realQueue(2);
    let isAway = true;
    const order: number[] = [];
    const push = async (n: number): Promise<void> => {
      for (;;) {
        try {
          await queue.run('push', async () => {
            if (isAway) throw new Bad({ kind: 'unreachable' });
            order.push(n);
          });
          return;
        } catch (error) {
          if (!(error instanceof Bad)) throw error;
        }
      }
    };
    const all = Array.from({ length: 20 }, (_, n) => push(n));
    await until(() => queue.status().circuit.tries > 3, 'probes failed');
    isAway = false;
    await Promise.all(all);
    expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    await queue.stop(0);
  });
});
