import { describe, expect, it } from 'vitest';
import { busyIn, goesOn } from '../support/health.js';
import { bad, Gate, openQueue, settle, slots } from './queue-setup.js';

const AT_ONCE = { unreachable: 1, failing: 1, denied: 1, busy: 1 };

describe('the health checks of the queue', () => {
  it('see a request that runs, until it ends', async () => {
    const { queue } = openQueue();
    const gate = new Gate();
    const runs = ['a', 'b'].map((name) => queue.run('push', gate.task(name)));
    await settle();
    expect(busyIn(queue)).toEqual(['no push request starts or ends in time']);
    expect(queue.health.find(({ name }) => name === 'request push')?.options.limitMs).toBe(15 * 60_000);
    goesOn(queue.health, 'request push');
    expect(goesOn(queue.health, 'request push')).toBe(false);
    gate.end('a');
    await settle();
    expect(goesOn(queue.health, 'request push')).toBe(true);
    gate.fail('b', bad('failing'));
    await Promise.allSettled(runs);
    expect(busyIn(queue)).toEqual([]);
  });

  it('see that a request hangs though others of its lane go on', async () => {
    const { queue } = openQueue();
    const gate = new Gate();
    // The peer bears two at a time, as far as is known.
    await queue.run('push', async () => {});
    const hangs = queue.run('push', gate.task('hangs'));
    await settle();
    goesOn(queue.health, 'request push');
    for (const name of ['a', 'b']) {
      const run = queue.run('push', gate.task(name));
      await settle();
      gate.end(name);
      await run;
      expect(goesOn(queue.health, 'request push')).toBe(false);
    }
    gate.end('hangs');
    await hangs;
    expect(goesOn(queue.health, 'request push')).toBe(true);
  });

  it('are not busy where requests wait for others of their lane, for the peer, or for a person', async () => {
    const small = openQueue({ lanes: slots(1) });
    void small.queue.run('push', new Gate().task('a'));
    void small.queue.run('push', new Gate().task('b'));
    await settle();
    expect(small.queue.mayStart('push')).toBe(false);

    const paused = openQueue();
    paused.queue.pause({ since: 0 });
    void paused.queue.run('push', new Gate().task('a')).catch(() => {});
    await settle();
    expect(paused.queue.mayStart('push')).toBe(false);
    expect(paused.queue.hasRoom('push')).toBe(false);
    await paused.queue.stop(0);

    const away = openQueue({ policy: { openAfter: AT_ONCE } });
    await expect(away.queue.run('push', () => Promise.reject(bad('unreachable')))).rejects.toThrow();
    void away.queue.run('push', new Gate().task('a')).catch(() => {});
    await settle();
    expect(away.queue.mayStart('push')).toBe(false);
    expect(away.queue.hasRoom('push')).toBe(false);
    await away.queue.stop(0);
    expect(away.queue.mayStart('push')).toBe(false);
  });

  it('are busy where the moment comes at which a request may start, and nobody notices', async () => {
    const { queue, clock } = openQueue({
      policy: { openAfter: AT_ONCE },
    });
    await expect(queue.run('push', () => Promise.reject(bad('unreachable')))).rejects.toThrow();
    const gate = new Gate();
    const probe = queue.run('push', gate.task('probe'));
    await settle();
    expect(queue.mayStart('push')).toBe(false);
    // The alarm that should ring then is late.
    clock.skip(2_000);
    expect(queue.mayStart('push')).toBe(true);
    expect(busyIn(queue)).toEqual(['no push request starts or ends in time']);
    await clock.advance(1);
    expect(gate.running).toEqual(['probe']);
    expect(queue.mayStart('push')).toBe(false);
    gate.end('probe');
    await probe;
  });
});
