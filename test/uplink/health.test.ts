import { describe, expect, it } from 'vitest';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { fails, takes, unreachable } from '../support/fake-peer.js';
import { busyIn, goesOn } from '../support/health.js';
import { QUICK, type UplinkWorld } from '../support/uplink-world.js';
import { deferred, until } from '../support/wait.js';
import { world } from '../support/world.js';

/** Makes one lane of the queue wait forever, or until `goes.on`. */
function heldUp(lane: 'push' | 'confirm', goes: { on: boolean }) {
  return ({ queue }: UplinkWorld): UplinkDeps['queue'] => ({
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

const busy = (w: UplinkWorld) => busyIn(w.uplink);

describe('the health checks of the uplink', () => {
  it.each([
    ['push', 'items that are due are not pushed'],
    ['confirm', 'items that are due are not looked up'],
  ] as const)(
    'are busy without progress when the %s loop waits while the queue has room',
    async (lane, what) => {
      const goes = { on: false };
      const w = await world({ uplinkQueue: heldUp(lane, goes) });
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
    const w = await world({ uplinkQueue: heldUp('push', { on: false }) });
    w.write('a.txt', 'hello');
    await w.until(() => busy(w).length > 0, 'busy');
    const stopped = w.uplink.stop();
    expect(busy(w)).toEqual([]);
    await stopped;
    expect(busy(w)).toEqual([]);
  });

  it('wait for a peer that is away, until the next probe is due', async () => {
    const w = await world();
    w.peer.onPush = fails(() => unreachable('no'));
    w.write('a.txt', 'hello');
    const waits = () => {
      const { nextProbeAt } = w.queue.status().circuit;
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
    w.peer.onPush = takes;
    await w.confirmed('a.txt');
  });

  it('are not busy while the program that reads documents does not start, and the status tells why', async () => {
    const w = await world();
    const reading = deferred();
    w.extractDocument = async () => {
      await reading.promise;
      return { kind: 'wordless', reader: 'PDF' };
    };
    w.write('a.pdf', 'a document', 'document');
    await w.until(() => busy(w).includes('documents that wait are not read'), 'it is read');
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
    expect(busy(w)).toEqual(['documents that wait are not read']);
    reading.resolve();
    await w.until(() => busy(w).length === 0, 'it was read');
  });

  it('wait for batches in flight, and are busy while one is read from the disk', async () => {
    const read = deferred();
    const w = await world({ push: { maxItems: 1 }, beforePack: () => read.promise });
    const release = w.peer.hold('push');
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
