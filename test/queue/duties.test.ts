import { describe, expect, it } from 'vitest';
import type { Door } from '../../src/queue/door.js';
import { doorDuties } from '../../src/queue/duties.js';
import { bad, Gate, lanesOf, openDoor, settle, UNLIMITED } from './at-the-door.js';

function neglects(door: Door): string[] {
  return doorDuties(door, { longestTaskMs: () => 60_000 }).flatMap((duty) => duty.neglects() ?? []);
}

function movesOf(door: Door, name: string): unknown {
  return doorDuties(door, { longestTaskMs: () => 60_000 })
    .find((duty) => duty.name === name)
    ?.moves();
}

const OUTLIVED = 'a push request has outlived all of its time-outs';

describe('the duties of the door', () => {
  it('know which request runs longest, as long as it runs', async () => {
    const { door } = openDoor();
    const gate = new Gate();
    expect(movesOf(door, 'request push')).toBeUndefined();
    const runs = ['a', 'b'].map((name) => door.run('push', gate.task(name)));
    await settle();
    expect(neglects(door)).toEqual([OUTLIVED]);
    const first = movesOf(door, 'request push');
    gate.end('a');
    await settle();
    expect(neglects(door)).toEqual([OUTLIVED]);
    expect(movesOf(door, 'request push')).not.toBe(first);
    gate.fail('b', bad('failing'));
    await Promise.allSettled(runs);
    expect(neglects(door)).toEqual([]);
    expect(movesOf(door, 'door push')).toBe(2);
  });

  it('are no neglect where requests wait for others of their lane, for slots, for their rate or for the peer', async () => {
    const slow = openDoor({
      lanes: lanesOf(UNLIMITED, { push: { requestsPerSecond: 0.1, concurrency: 1 } }),
    });
    const gate = new Gate();
    void slow.door.run('push', gate.task('a'));
    void slow.door.run('push', gate.task('b'));
    await settle();
    expect(slow.door.mayStart('push')).toBe(false);
    gate.end('a');
    await settle();
    // Its rate lets the next one start in 10 s.
    expect(slow.door.mayStart('push')).toBe(false);

    const small = openDoor({ maxConcurrency: 1 });
    void small.door.run('push', new Gate().task('a'));
    void small.door.run('confirm', new Gate().task('b'));
    await settle();
    expect(small.door.mayStart('confirm')).toBe(false);

    const paused = openDoor();
    paused.door.pause({ since: 0 });
    void paused.door.run('push', new Gate().task('a')).catch(() => {});
    await settle();
    expect(paused.door.mayStart('push')).toBe(false);
    expect(paused.door.hasRoom('push')).toBe(false);
    await paused.door.stop(0);

    const away = openDoor({ policy: { openAfter: { unreachable: 1, failing: 1, denied: 1 } } });
    await expect(away.door.run('push', () => Promise.reject(bad('unreachable')))).rejects.toThrow();
    void away.door.run('push', new Gate().task('a')).catch(() => {});
    await settle();
    expect(away.door.mayStart('push')).toBe(false);
    expect(away.door.hasRoom('push')).toBe(false);
    await away.door.stop(0);
    expect(away.door.mayStart('push')).toBe(false);
  });

  it('are neglected where the moment comes at which a request may start, and nobody notices', async () => {
    const { door, clock } = openDoor({
      policy: { openAfter: { unreachable: 1, failing: 1, denied: 1 }, probeMs: 1_000 },
    });
    await expect(door.run('push', () => Promise.reject(bad('unreachable')))).rejects.toThrow();
    const gate = new Gate();
    const probe = door.run('push', gate.task('probe'));
    await settle();
    expect(door.mayStart('push')).toBe(false);
    // The alarm that should ring then is late.
    clock.skip(2_000);
    expect(door.mayStart('push')).toBe(true);
    expect(neglects(door)).toEqual(['push requests that may start wait at the door']);
    await clock.advance(1);
    expect(gate.running).toEqual(['probe']);
    expect(door.mayStart('push')).toBe(false);
    gate.end('probe');
    await probe;
  });
});
