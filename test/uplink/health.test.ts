import { describe, expect, it } from 'vitest';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { busyIn, goesOn } from '../support/health.js';
import { deferred, until } from '../support/wait.js';
import { QUICK, unreachable, type World, world } from '../support/world.js';

const ONE_BY_ONE = { ...QUICK, push: { ...QUICK.push, maxItems: 1 } };

/** Makes one lane of the queue wait forever, or until `goes.on`. */
function heldUp(lane: 'push' | 'confirm', goes: { on: boolean }) {
  return (queue: RequestQueue): UplinkDeps['queue'] => ({
    run: (...args) => queue.run(...args),
    hasRoom: (which) => queue.hasRoom(which),
    isBusy: (which) => queue.isBusy(which),
    get answeringForMs() {
      return queue.answeringForMs;
    },
    ready: async (which, signal) => {
      if (which !== lane) return queue.ready(which, signal);
      await until(() => goes.on || signal?.aborted === true, 'it goes on');
      signal?.throwIfAborted();
    },
  });
}

const busy = (w: World) => busyIn(w.uplink);

describe('the health checks of the uplink', () => {
  it.each([
    ['push', 'items that are due are not pushed'],
    ['confirm', 'items that are due are not looked up'],
  ] as const)(
    'are busy without progress when the %s loop waits while the queue has room',
    async (lane, what) => {
      const goes = { on: false };
      const w = await world(QUICK, (it) => {
        it.seenQueue = heldUp(lane, goes);
      });
      expect(busy(w)).toEqual([]);
      w.write('a.txt', 'hello');
      await w.until(() => busy(w).includes(what), 'busy');
      goesOn(w.uplink.health, lane);
      expect(goesOn(w.uplink.health, lane)).toBe(false);
      goes.on = true;
      await w.confirmed('a.txt');
      expect(goesOn(w.uplink.health, lane)).toBe(true);
      await w.until(() => busy(w).length === 0, 'nothing busy');
    },
  );

  it('end with the uplink', async () => {
    const w = await world(QUICK, (it) => {
      it.seenQueue = heldUp('push', { on: false });
    });
    w.write('a.txt', 'hello');
    await w.until(() => busy(w).length > 0, 'busy');
    const stopped = w.uplink.stop();
    expect(busy(w)).toEqual([]);
    await stopped;
    expect(busy(w)).toEqual([]);
  });

  it('wait for a peer that is away, until the next probe is due', async () => {
    let queue: RequestQueue | undefined;
    const w = await world(QUICK, (it) => {
      it.seenQueue = (real) => {
        queue = real;
        return real;
      };
    });
    w.peer.failsFor('', () => unreachable('no'));
    w.write('a.txt', 'hello');
    const waits = () => {
      const { nextProbeAt } = queue?.status().circuit ?? {};
      return nextProbeAt !== undefined && nextProbeAt > Date.now() + 5;
    };
    for (let i = 0; i < 10; i += 1) {
      let isBusy: string[] = [];
      // The answer counts only if the probe was still not due afterwards.
      const wasAsked = () => {
        isBusy = busy(w);
        return waits();
      };
      await w.until(wasAsked, 'the circuit is open');
      expect(isBusy).toEqual([]);
      await w.until(() => !waits(), 'the probe is due');
    }
    w.peer.onPush = () => undefined;
    await w.confirmed('a.txt');
  });

  it('are not busy while the program that reads documents does not start, and the status tells why', async () => {
    const w = await world();
    const reading = deferred();
    w.packDocument = async () => {
      await reading.promise;
      return { kind: 'wordless', reader: 'PDF' };
    };
    w.write('a.pdf', 'a document', 'document');
    await w.until(() => busy(w).includes('a batch is not read from the disk'), 'it is read');
    const failure = {
      code: 'DOCUMENTS_UNREADABLE',
      message: 'It does not start.',
      hint: '',
      since: 0,
    };
    w.readersFailure = () => failure;
    expect(busy(w)).toEqual([]);
    expect(w.uplink.status().readersFailure).toBe(failure);
    w.readersFailure = undefined;
    expect(busy(w)).toEqual(['a batch is not read from the disk']);
    reading.resolve();
    await w.until(() => busy(w).length === 0, 'it was read');
  });

  it('wait for batches in flight, and are busy while one is read from the disk', async () => {
    const read = deferred();
    const w = await world(ONE_BY_ONE, (it) => {
      it.packs = () => read.promise;
    });
    const { release } = w.peer.hold();
    w.writeMany(20);
    // Further due items wait for these, though the queue has room.
    const isFull = () => w.uplink.status().inFlight > QUICK.push.concurrency;
    await w.until(isFull, 'as many as may be are under way');
    expect(busy(w)).toEqual(['a batch is not read from the disk']);
    read.resolve();
    await w.until(() => w.peer.pushes.length > 0 && busy(w).length === 0, 'they are under way');
    expect(w.state.counts().pending).toBe(20);
    release();
    await w.allConfirmed(20);
    expect(busy(w)).toEqual([]);
  });
});
