import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Audit } from '../../src/uplink/audit.js';
import { until } from '../support/wait.js';
import { QUICK, World } from '../support/world.js';

const DAY_MS = 86_400_000;

/** A clock on the wall that a test sets; how fast time passes stays as it is. */
class WallClock implements Clock {
  byMs = 0;
  readonly wall = () => this.now();
  readonly monotonic = systemClock.monotonic;
  readonly boottime = systemClock.boottime;
  readonly after = systemClock.after;
  readonly sleep = systemClock.sleep;

  now(): number {
    return systemClock.now() + this.byMs;
  }
}

const worlds: World[] = [];
async function world(settings = QUICK): Promise<{ w: World; clock: WallClock }> {
  const w = new World();
  const clock = new WallClock();
  w.clock = clock;
  worlds.push(w);
  await w.start(settings);
  return { w, clock };
}
afterEach(async () => {
  for (const w of worlds.splice(0)) await w.stop();
});

describe('a clock that is set back by a day', () => {
  it('lets a batch leave that waits for more', async () => {
    const { w, clock } = await world({ ...QUICK, push: { ...QUICK.push, linger: 500 } });
    w.write('a.txt', 'one');
    // It is taken into the batch by what this promise lets run first.
    await systemClock.sleep(50);
    clock.byMs = -DAY_MS;
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
  });

  it('does not keep what the peer accepted from being given up in time, and pushed again', async () => {
    const { w, clock } = await world();
    w.peer.visibleAfter = Number.POSITIVE_INFINITY;
    w.write('a.txt', 'one');
    await until(() => w.statusOf('a.txt') === 'accepted' && w.peer.lookups > 0, 'looked up');
    clock.byMs = -DAY_MS;
    await until(() => w.peer.pushes.length > 1, 'pushed again');
  });

  it('does not keep a file that changes then from being pushed', async () => {
    const { w, clock } = await world();
    w.peer.showsDigest = false;
    w.write('a.txt', 'one');
    await until(() => w.statusOf('a.txt') === 'accepted' || w.statusOf('a.txt') === 'confirmed', 'accepted');
    clock.byMs = -DAY_MS;
    w.write('a.txt', 'another');
    const item = w.state.get('inbox', 'a.txt');
    expect(item?.status === 'pending' && item.notBefore - clock.now()).toBeGreaterThan(DAY_MS / 2);
    await until(() => w.peer.pushes.length > 1, 'pushed');
  });

  it('leaves what was confirmed before to the audit', async () => {
    const { w, clock } = await world();
    w.write('a.txt', 'one');
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
    clock.byMs = -DAY_MS;
    w.state.setMeta('auditedUntil', clock.now());
    let looks = 0;
    const audit = new Audit({
      state: w.state,
      commit: () => w.state.commit(),
      queue: {
        run: async (_, work) => work(new AbortController().signal),
        ready: async () => {},
        hasRoom: () => true,
        isBusy: () => false,
        answeringForMs: 0,
      },
      peer: {
        push: () => Promise.reject(new Error('not expected')),
        peerdoc: async (target) => {
          looks += 1;
          return w.peer.peerdoc(target);
        },
      },
      dialect: w.dialect,
      clock,
      log: silentLogger,
    });
    audit.start(1_000, (error) => {
      w.failure = error;
    });
    await until(() => looks > 0, 'looked up');
    await audit.stop();
  });
});

describe('a clock that is set ahead by a day', () => {
  it('while a push is under way teaches nothing of how long the peer takes', async () => {
    const { w, clock } = await world();
    w.peer.onPush = () => {
      clock.byMs += DAY_MS;
      return undefined;
    };
    for (const name of ['a.txt', 'b.txt', 'c.txt']) {
      w.write(name, name);
      await until(() => w.statusOf(name) === 'confirmed', `${name} is confirmed`);
    }
    expect(w.state.meta('timeToVisibleMs')).toBeLessThan(DAY_MS / 2);
  });

  it('spends no attempt of what the peer has had no time to show', async () => {
    const { w, clock } = await world({ ...QUICK, confirm: { ...QUICK.confirm, timeout: 60_000 } });
    w.peer.visibleAfter = Number.POSITIVE_INFINITY;
    w.write('a.txt', 'one');
    await until(() => w.statusOf('a.txt') === 'accepted' && w.peer.lookups > 0, 'looked up');
    clock.byMs = DAY_MS;
    const looked = w.peer.lookups;
    await until(() => w.peer.lookups > looked + 3, 'looked up again');
    expect(w.statusOf('a.txt')).toBe('accepted');
    expect(w.peer.pushes).toHaveLength(1);
  });

  it('makes nothing of what is shown before the time that it has to hold is over', async () => {
    const { w, clock } = await world({
      ...QUICK,
      confirm: { timeout: 60_000, maxInterval: 50, hold: 1_500 },
    });
    w.write('a.txt', 'one');
    await until(() => w.uplink.nextLook({ folder: 'inbox', path: 'a.txt' }) !== undefined, 'planned');
    const began = systemClock.monotonic();
    clock.byMs = DAY_MS;
    // Gets the loop up, which looks what is due.
    w.write('b.txt', 'two');
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
    expect(systemClock.monotonic() - began).toBeGreaterThan(1_000);
  });
});
