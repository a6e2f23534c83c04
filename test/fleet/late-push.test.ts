import { beforeEach, describe, expect, it } from 'vitest';
import { PUSH_LEASE_MS } from '../../src/fleet/protocol.js';
import { systemClock as clock } from '../../src/lib/clock.js';
import { afterwards } from '../support/afterwards.js';
import { type FleetWorld, fleetWorld, occupyOwner } from '../support/fleet-world.js';
import { hasRedis } from '../support/redis-server.js';
import { deferred, until } from '../support/wait.js';

describe.skipIf(!hasRedis)('a push that a worker has begun', () => {
  let fleet: FleetWorld;

  beforeEach(async () => {
    fleet = await fleetWorld();
  });

  it('is not completed by a worker that has lost its owner in the middle of it', async () => {
    const { owner, there, w } = fleet;
    const release = await occupyOwner(fleet);
    const { promise: isLost, resolve: goOn } = deferred();
    afterwards('test', goOn);
    let isSending = false;
    there.onPiece = async () => {
      isSending = true;
      await isLost;
    };
    w.write('a.txt', 'hello');
    await until(() => isSending, 'the worker is in the middle of a body');
    const record = JSON.parse((await owner.redis.get(owner.keys.owner)) ?? '');
    const another = JSON.stringify({ ...record, epoch: 'another' });
    for (const end = clock.now() + 6_000; clock.now() < end; await clock.sleep(50))
      await owner.redis.set(owner.keys.owner, another, 'PX', 60_000);
    there.onPiece = () => {};
    goOn();
    release();
    await w.confirmed('a.txt');
    expect(there.pushes.flat().filter((url) => url === w.url('a.txt')).length).toBeLessThan(2);
    expect(there.aborted).toBe(1);
  });

  it('is broken off while the peer has it, when its worker has not seen Redis for too long', async () => {
    const { peer, server, there, w } = fleet;
    const release = await occupyOwner(fleet);
    const { promise: isAnswered, resolve: answer } = deferred();
    afterwards('test', answer);
    let isThere = false;
    peer.onPush = async (urls) => {
      if (!urls.includes(w.url('a.txt'))) return undefined;
      isThere = true;
      await isAnswered;
      return undefined;
    };
    w.write('a.txt', 'hello');
    await until(() => isThere, 'the peer has the request of the worker');
    const lostAt = clock.now();
    await server.kill();
    await until(() => there.brokenOff > 0, 'the worker breaks the request off');
    expect(clock.now() - lostAt).toBeLessThanOrEqual(PUSH_LEASE_MS + 5_000);
    release();
  });

  it('leads to another push if it is completed after it was given up, and its version is old', async () => {
    const { late, peer, sender, there, w } = fleet;
    const release = await occupyOwner(fleet);
    // The peer has the request, and does not answer.
    const { promise: isAnswered, resolve: answer } = deferred();
    afterwards('test', answer);
    let isThere = false;
    peer.onPush = async (urls) => {
      if (!urls.includes(w.url('a.txt')) || isThere) return undefined;
      isThere = true;
      await isAnswered;
      return undefined;
    };
    w.write('a.txt', 'the old version');
    await until(() => isThere, 'the peer has the request of the worker');
    expect(there.pushes.length).toBe(1);
    // As if the worker had not been seen for too long.
    sender.loseAll();
    release();
    w.write('a.txt', 'the new version');
    await w.confirmed('a.txt');
    expect(peer.documents.get(w.url('a.txt'))?.text).toBe('the new version');
    answer();
    await until(() => late.length > 0, 'the late answer came');
    await until(
      () => peer.documents.get(w.url('a.txt'))?.text === 'the new version',
      'the new version is back',
    );
    await w.confirmed('a.txt');
    expect(late).toMatchObject([
      [{ folder: 'inbox', path: 'a.txt', version: { url: w.url('a.txt') } }],
    ]);
  });
});
