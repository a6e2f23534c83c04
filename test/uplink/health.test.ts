import { afterEach, describe, expect, it } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { busyIn, goesOn } from '../support/health.js';
import { until } from '../support/wait.js';
import { QUICK, unreachable, World } from '../support/world.js';

const worlds: World[] = [];
function world(): World {
  const w = new World();
  worlds.push(w);
  return w;
}
afterEach(async () => {
  for (const w of worlds.splice(0)) await w.stop();
});

const busy = (w: World) => busyIn(w.uplink);

const NOT_PUSHED = 'items that are due are not pushed';
const NOT_LOOKED_UP = 'items that are due are not looked up';

/** A queue whose `ready` never lets a lane go on, or only when it is told to. */
function deafFor(lane: 'push' | 'confirm', listen: { again: boolean }) {
  return (queue: RequestQueue): UplinkDeps['queue'] => ({
    run: (...args) => queue.run(...args),
    hasRoom: (which) => queue.hasRoom(which),
    isBusy: (which) => queue.isBusy(which),
    get answeringForMs() {
      return queue.answeringForMs;
    },
    ready: async (which, signal) => {
      if (which !== lane) return queue.ready(which, signal);
      await new Promise<void>((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        void until(() => listen.again || signal?.aborted === true, 'somebody listens').then(resolve, reject);
      });
    },
  });
}

describe('the health checks of the uplink', () => {
  it('are not busy when everything is confirmed', async () => {
    const w = world();
    await w.start();
    for (let i = 0; i < 30; i += 1) w.write(`f${i}`, `content ${i}`);
    await until(() => w.state.counts().confirmed === 30, 'all confirmed');
    await until(() => busy(w).length === 0, 'nothing busy');
  });

  it('are busy without progress when the push loop waits though items are due and the queue has room', async () => {
    const w = world();
    const listen = { again: false };
    w.seenQueue = deafFor('push', listen);
    await w.start();
    w.write('a.txt', 'hello');
    await until(() => busy(w).includes(NOT_PUSHED), 'busy');
    goesOn(w.uplink.health, 'push');
    expect(goesOn(w.uplink.health, 'push')).toBe(false);
    listen.again = true;
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
    expect(goesOn(w.uplink.health, 'push')).toBe(true);
    expect(busy(w)).toEqual([]);
  });

  it('are busy without progress when the confirm loop waits though look-ups are due and the queue has room', async () => {
    const w = world();
    const listen = { again: false };
    w.seenQueue = deafFor('confirm', listen);
    await w.start();
    w.write('a.txt', 'hello');
    await until(() => busy(w).includes(NOT_LOOKED_UP), 'busy');
    goesOn(w.uplink.health, 'confirm');
    expect(goesOn(w.uplink.health, 'confirm')).toBe(false);
    listen.again = true;
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
    expect(goesOn(w.uplink.health, 'confirm')).toBe(true);
    expect(busy(w)).toEqual([]);
  });

  it('wait for a peer that is away, until the next probe is due', async () => {
    const w = world();
    w.peer.onPush = () => Promise.reject(unreachable('no'));
    let queue: RequestQueue | undefined;
    w.seenQueue = (real) => {
      queue = real;
      return real;
    };
    await w.start();
    w.write('a.txt', 'hello');
    const waits = () => {
      const { nextProbeAt } = queue?.status().circuit ?? {};
      return nextProbeAt !== undefined && nextProbeAt > Date.now() + 5;
    };
    for (let i = 0; i < 10; i += 1) {
      let said: string[] = [];
      // Counts where the time had not come when it was said, either.
      const wasSaid = () => {
        said = busy(w);
        return waits();
      };
      await until(wasSaid, 'the circuit is open');
      expect(said).toEqual([]);
      await until(() => !waits(), 'the probe is due');
    }
    w.peer.onPush = () => undefined;
    await until(() => w.statusOf('a.txt') === 'confirmed', 'confirmed');
  });

  it('wait for batches under way', async () => {
    const w = world();
    let answer: () => void = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    w.peer.onPush = async () => {
      await answered;
      return undefined;
    };
    await w.start({ ...QUICK, push: { ...QUICK.push, maxItems: 1 } });
    for (let i = 0; i < 20; i += 1) w.write(`f${i}`, `content ${i}`);
    await until(() => w.peer.pushes.length > 0 && busy(w).length === 0, 'as many under way as may be');
    for (let i = 0; i < 10; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(busy(w)).toEqual([]);
    }
    expect(w.state.counts().pending).toBe(20);
    answer();
    await until(() => w.state.counts().confirmed === 20, 'all confirmed');
  });

  it('wait for items whose time has not come, and end with the uplink', async () => {
    const w = world();
    const listen = { again: false };
    w.seenQueue = deafFor('push', listen);
    await w.start();
    expect(busy(w)).toEqual([]);
    w.write('a.txt', 'hello');
    await until(() => busy(w).length > 0, 'busy');
    const stopped = w.uplink.stop();
    expect(busy(w)).toEqual([]);
    await stopped;
    expect(busy(w)).toEqual([]);
  });

  it('are busy for as long as a batch is being read from the disk', async () => {
    const w = world();
    let read: () => void = () => {};
    const blocked = new Promise<void>((resolve) => {
      read = resolve;
    });
    w.packs = () => blocked;
    await w.start({ ...QUICK, push: { ...QUICK.push, maxItems: 1 } });
    for (let i = 0; i < 20; i += 1) w.write(`f${i}`, `content ${i}`);
    // What is due beside them waits for them, though the queue has room.
    await until(() => w.uplink.status().inFlight > QUICK.push.concurrency, 'as many as may be are under way');
    expect(busy(w)).toEqual(['a batch is not read from the disk']);
    read();
    await until(() => w.state.counts().confirmed === 20, 'confirmed');
    expect(busy(w)).toEqual([]);
  });
});
