import { describe, expect, it } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import { bad, Gate, lanesOf, openQueue, settle, UNLIMITED } from './queue-setup.js';

function neglects(queue: RequestQueue): string[] {
  return queue.duties(() => 60_000).flatMap((duty) => duty.neglects() ?? []);
}

function movesOf(queue: RequestQueue, name: string): unknown {
  return queue
    .duties(() => 60_000)
    .find((duty) => duty.name === name)
    ?.moves();
}

const OUTLIVED = 'a push request has outlived all of its time-outs';

describe('the duties of the queue', () => {
  it('know which request runs longest, as long as it runs', async () => {
    const { queue } = openQueue();
    const gate = new Gate();
    expect(movesOf(queue, 'request push')).toBeUndefined();
    const runs = ['a', 'b'].map((name) => queue.run('push', gate.task(name)));
    await settle();
    expect(neglects(queue)).toEqual([OUTLIVED]);
    const first = movesOf(queue, 'request push');
    gate.end('a');
    await settle();
    expect(neglects(queue)).toEqual([OUTLIVED]);
    expect(movesOf(queue, 'request push')).not.toBe(first);
    gate.fail('b', bad('failing'));
    await Promise.allSettled(runs);
    expect(neglects(queue)).toEqual([]);
    expect(movesOf(queue, 'queue push')).toBe(2);
  });

  it('are no neglect where requests wait for others of their lane, for slots, for their rate or for the peer', async () => {
    const slow = openQueue({
      lanes: lanesOf(UNLIMITED, { push: { requestsPerSecond: 0.1, concurrency: 1 } }),
    });
    const gate = new Gate();
    void slow.queue.run('push', gate.task('a'));
    void slow.queue.run('push', gate.task('b'));
    await settle();
    expect(slow.queue.mayStart('push')).toBe(false);
    gate.end('a');
    await settle();
    // Its rate lets the next one start in 10 s.
    expect(slow.queue.mayStart('push')).toBe(false);

    const small = openQueue({ maxConcurrency: 1 });
    void small.queue.run('push', new Gate().task('a'));
    void small.queue.run('confirm', new Gate().task('b'));
    await settle();
    expect(small.queue.mayStart('confirm')).toBe(false);

    const paused = openQueue();
    paused.queue.pause({ since: 0 });
    void paused.queue.run('push', new Gate().task('a')).catch(() => {});
    await settle();
    expect(paused.queue.mayStart('push')).toBe(false);
    expect(paused.queue.hasRoom('push')).toBe(false);
    await paused.queue.stop(0);

    const away = openQueue({ policy: { openAfter: { unreachable: 1, failing: 1, denied: 1 } } });
    await expect(away.queue.run('push', () => Promise.reject(bad('unreachable')))).rejects.toThrow();
    void away.queue.run('push', new Gate().task('a')).catch(() => {});
    await settle();
    expect(away.queue.mayStart('push')).toBe(false);
    expect(away.queue.hasRoom('push')).toBe(false);
    await away.queue.stop(0);
    expect(away.queue.mayStart('push')).toBe(false);
  });

  it('are neglected where the moment comes at which a request may start, and nobody notices', async () => {
    const { queue, clock } = openQueue({
      policy: { openAfter: { unreachable: 1, failing: 1, denied: 1 }, probeMs: 1_000 },
    });
    await expect(queue.run('push', () => Promise.reject(bad('unreachable')))).rejects.toThrow();
    const gate = new Gate();
    const probe = queue.run('push', gate.task('probe'));
    await settle();
    expect(queue.mayStart('push')).toBe(false);
    // The alarm that should ring then is late.
    clock.skip(2_000);
    expect(queue.mayStart('push')).toBe(true);
    expect(neglects(queue)).toEqual(['push requests that may start wait in the queue']);
    await clock.advance(1);
    expect(gate.running).toEqual(['probe']);
    expect(queue.mayStart('push')).toBe(false);
    gate.end('probe');
    await probe;
  });
});
