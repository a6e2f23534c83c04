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

it.skipIf(!hasRedis)('a worker that sees another version of a file pushes nothing', async () => {
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
  expect(there.pushes).toEqual([]);
  expect(peer.documents.get(w.url('f3'))?.text).toBe('content 3');
});
