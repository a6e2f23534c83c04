import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock as clock } from '../../src/lib/clock.js';
import { PeerError } from '../../src/peer/errors.js';
import { failing, fails } from '../support/fake-peer.js';
import { type FleetWorld, fleetWorld, occupyOwner } from '../support/fleet-world.js';
import { hasRedis } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

describe.skipIf(!hasRedis)('a batch that a worker pushes', () => {
  let fleet: FleetWorld;

  beforeEach(async () => {
    fleet = await fleetWorld();
  });

  it('is confirmed by its digest, and pushed once', async () => {
    const { own, peer, there, w } = fleet;
    const release = await occupyOwner(fleet);
    w.write('latin.txt', Buffer.from('na\xefve caf\xe9', 'latin1'), 'windows-1252');
    w.writeMany(30);
    await w.allConfirmed(31);
    release();
    await w.allConfirmed(32);
    expect(own.pushes.flat()).toEqual([w.url('first.txt')]);
    expect(there.pushes.flat().toSorted()).toEqual(
      [...peer.pushes.flat()].filter((url) => url !== w.url('first.txt')).toSorted(),
    );
    expect(new Set(there.pushes.flat()).size).toBe(31);
    expect(w.state.get('inbox', 'latin.txt')).toMatchObject({ evidence: { kind: 'digest' } });
  });

  it('is split if it fails, and the item at fault is quarantined', async () => {
    const { peer, there, w } = fleet;
    const release = await occupyOwner(fleet);
    peer.onPush = fails(failing, 'f3');
    w.writeMany(8);
    await until(() => there.pushes.some((urls) => urls.length === 1), 'it was split');
    release();
    expect(await w.quarantined('f3')).toMatchObject({ code: 'PEER_FAILED' });
    await w.allConfirmed(8);
  });

  it('delays all pushes if the peer asks the worker to wait', async () => {
    const { own, there, w } = fleet;
    const release = await occupyOwner(fleet);
    there.onPush = () => {
      throw new PeerError('PEER_BUSY', {
        url: 'http://127.0.0.1:1/',
        what: 'is busy',
        delivered: 'yes',
        status: 429,
        retryAfterMs: 600_000,
      });
    };
    w.write('a.txt', 'hello');
    await until(() => w.queue.status().retryAfterUntil !== undefined, 'pushes wait');
    const { retryAfterUntil = 0 } = w.queue.status();
    expect(retryAfterUntil - clock.now()).toBeGreaterThan(500_000);
    release();
    expect(w.statusOf('a.txt')).toBe('pending');
    expect(own.pushes.flat()).not.toContain(w.url('a.txt'));
  });

  it('goes to the owner if the peer does not let the worker in, and no other push waits', async () => {
    const { own, owner, there, w } = fleet;
    const release = await occupyOwner(fleet);
    let denied = 0;
    there.onPush = () => {
      denied += 1;
      throw new PeerError('PEER_AUTH', {
        url: 'http://127.0.0.1:1/',
        what: 'denies access',
        delivered: 'yes',
        status: 401,
      });
    };
    w.writeMany(5);
    await until(() => denied > 0, 'the worker was denied access');
    release();
    await w.allConfirmed(6);
    expect(own.pushes.flat().length).toBe(6);
    await until(() => noPushOf(owner) === 'denied', 'the worker says so');
    expect(w.queue.status().circuit.state).toBe('closed');
  });

  it('goes to the owner if its worker stops, and nothing is lost', async () => {
    const { own, there, w, worker } = fleet;
    const release = await occupyOwner(fleet);
    w.writeMany(20);
    await until(() => there.pushes.length > 0, 'the worker pushes');
    const stopped = worker.stop();
    release();
    await stopped;
    await w.allConfirmed(21);
    expect(own.pushes.length).toBeGreaterThan(0);
  });

  it('is pushed by the owner at its own rate while Redis is away', async () => {
    const { own, server, w } = fleet;
    await server.kill();
    w.writeMany(20);
    await w.allConfirmed(20);
    expect(own.pushes.flat().length).toBe(20);
    await server.start();
  });
});

it.skipIf(!hasRedis)(
  'a worker that sees another version of a file does not push its batch',
  async () => {
    const workerRoot = temporaryDirectory();
    mkdirSync(workerRoot, { recursive: true });
    const fleet = await fleetWorld({ workerRoot });
    const { peer, refused, there, w } = fleet;
    for (let i = 0; i < 20; i += 1) writeFileSync(join(workerRoot, `f${i}`), `content ${i}`);
    writeFileSync(join(workerRoot, 'f3'), 'older');
    const release = await occupyOwner(fleet);
    w.writeMany(20);
    await until(() => refused.count > 0, 'the worker has refused a batch');
    release();
    await w.allConfirmed(21);
    expect(there.pushes.flat()).not.toContain(w.url('f3'));
    expect(peer.documents.get(w.url('f3'))?.text).toBe('content 3');
  },
);

it.skipIf(!hasRedis)(
  'an owner pushes nothing while a worker may go on for an earlier run, which Redis may have forgotten',
  async () => {
    const { own, sender, w } = await fleetWorld({ skipsStart: false });
    const isOverAt = sender.latestArrival(0);
    const pushedAt: number[] = [];
    w.peer.onPush = () => {
      pushedAt.push(clock.now());
      return undefined;
    };
    w.write('a.txt', 'hello');
    await w.confirmed('a.txt');
    expect(own.pushes).toEqual([[w.url('a.txt')]]);
    expect(pushedAt[0]).toBeGreaterThanOrEqual(isOverAt);
  },
);

it.skipIf(!hasRedis)(
  'a worker on whose mount files have other inodes and times pushes them',
  async () => {
    const workerRoot = temporaryDirectory();
    mkdirSync(workerRoot, { recursive: true });
    for (let i = 0; i < 20; i += 1) writeFileSync(join(workerRoot, `f${i}`), `content ${i}`);
    const { there, w, ...fleet } = await fleetWorld({ workerRoot });
    const release = await occupyOwner({ there, w, ...fleet });
    w.writeMany(20);
    await w.allConfirmed(20);
    release();
    expect(there.pushes.flat().length).toBe(20);
  },
);

it.skipIf(!hasRedis).each([
  ['another peer', 'peer', { peerUrl: 'http://127.0.0.1:2/' }],
  ['another URL for the folder', 'urls', { workerUrl: 'https://other.example/' }],
])('a worker with %s pushes nothing, and says so', async (_, reason, options) => {
  const fleet = await fleetWorld(options);
  const { owner, there, w } = fleet;
  const release = await occupyOwner(fleet);
  w.writeMany(20);
  await until(() => noPushOf(owner) === reason, 'the worker says that it does not push');
  expect(owner.pushSlots).toBe(0);
  release();
  await w.allConfirmed(21);
  expect(there.pushes).toEqual([]);
});

/** Why the worker pushes nothing, as the owner knows it. */
function noPushOf(owner: FleetWorld['owner']): string | undefined {
  return owner.status().workers[0]?.noPush;
}
