import { describe, expect, it } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import { busyIn, goesOn } from '../support/health.js';
import { bad, Gate, openQueue, settle, slots } from './queue-setup.js';

const AT_ONCE = { openAfter: { unreachable: 1, failing: 1, denied: 1, weak: 1, busy: 1 } };
const AWAY = () => Promise.reject(bad('unreachable'));
const isMoving = ({ health }: RequestQueue) => goesOn(health, 'request push');

describe('the health checks of the queue', () => {
  it('watch a running request until it ends, even if others of its lane make progress', async () => {
    const { queue } = openQueue();
    const gate = new Gate();
    // One answer raises the adaptive limit to two.
    await queue.run('push', async () => {});
    const hangs = queue.run('push', gate.task('hangs')).catch(() => {});
    await settle();
    expect(busyIn(queue)).toEqual(['no push request starts or ends in time']);
    expect(queue.health.find(({ name }) => name === 'request push')?.options.limitMs).toBe(
      15 * 60_000,
    );
    isMoving(queue);
    for (const name of ['a', 'b']) {
      const run = queue.run('push', gate.task(name));
      await settle();
      gate.end(name);
      await run;
      expect(isMoving(queue)).toBe(false);
    }
    gate.fail('hangs', bad('failing'));
    await hangs;
    expect([isMoving(queue), busyIn(queue)]).toEqual([true, []]);
  });

  it('are idle while requests wait for others of their lane, for the peer, or for a person', async () => {
    const full = openQueue({ lanes: slots(1) }).queue;
    void full.run('push', new Gate().task('a'));
    const paused = openQueue().queue;
    paused.pause({ since: 0 });
    const away = openQueue({ policy: AT_ONCE }).queue;
    await away.run('push', AWAY).catch(() => {});
    for (const queue of [full, paused, away]) {
      void queue.run('push', new Gate().task('waits')).catch(() => {});
      await settle();
      expect([queue.mayStart('push'), queue.hasRoom('push')]).toEqual([false, false]);
    }
    await away.stop(0);
    expect(away.mayStart('push')).toBe(false);
  });

  it('are busy once a request may start and nothing starts it', async () => {
    const { queue, clock } = openQueue({ policy: AT_ONCE });
    await queue.run('push', AWAY).catch(() => {});
    const gate = new Gate();
    const probe = queue.run('push', gate.task('probe'));
    await settle();
    expect(queue.mayStart('push')).toBe(false);
    // The timer is late.
    clock.skip(2_000);
    expect(queue.mayStart('push')).toBe(true);
    expect(busyIn(queue)).toEqual(['no push request starts or ends in time']);
    await clock.advance(1);
    expect([gate.running, queue.mayStart('push')]).toEqual([['probe'], false]);
    gate.end('probe');
    await probe;
  });
});
