import { describe, expect, it } from 'vitest';
import { NoPermit, OwnerPermits, Permits } from '../../src/fleet/permits.js';
import { Keys } from '../../src/fleet/protocol.js';
import { RedisConnections } from '../../src/fleet/redis.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { mostWithin } from '../support/rate.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const RATE = 40;
const keys = new Keys('p');

/** A Redis, and as many machines with permits as are asked for. */
async function setting() {
  const server = new RedisServer(temporaryDirectory());
  afterwards('test', () => server.kill());
  await server.start();
  const config = { redis: server.url, prefix: 'p', share: ['push' as const] };
  const connections = await RedisConnections.of(config, silentLogger);
  const connect = async () => {
    const redis = connections.forCommands();
    afterwards('test', () => redis.disconnect());
    await until(() => redis.status === 'ready', 'it is connected');
    return redis;
  };
  return { server, redis: await connect(), connect };
}

describe.skipIf(!hasRedis)('a permit', () => {
  it('is granted so that no second has more than the rate, whatever the number of machines, also when Redis loses everything', async () => {
    const { connect, redis } = await setting();
    const used: number[] = [];
    const end = performance.now() + 8_000;
    const machine = async () => {
      const permits = new Permits({ redis: await connect(), keys, clock: systemClock });
      while (performance.now() < end) {
        await permits.take(RATE);
        used.push(performance.now());
      }
    };
    const machines = [machine(), machine(), machine(), machine()];
    await until(() => used.length > RATE, 'permits were granted');
    for (let i = 0; i < 20; i += 1) {
      await redis.flushall();
      await systemClock.sleep(1_000 / 20);
    }
    await Promise.all(machines);
    expect(mostWithin(used, 1_000)).toBeLessThanOrEqual(RATE);
    // Permits came before the losses and after them.
    expect(used.length).toBeGreaterThan(1.2 * RATE);
  });

  it('is refused to an order that is too old, also while it waits', async () => {
    const { redis } = await setting();
    const permits = new Permits({ redis, keys, clock: systemClock });
    await expect(permits.take(RATE, 'old')).rejects.toThrow(NoPermit);
    await redis.set(keys.fence('new'), '1', 'PX', 60_000);
    await permits.take(0.5, 'new');
    // The next one is due in two seconds.
    const slow = permits.take(0.5, 'new');
    await redis.del(keys.fence('new'));
    await expect(slow).rejects.toThrow(NoPermit);
  });

  it('of a rate below one a second comes once in its time', async () => {
    const { redis } = await setting();
    const permits = new Permits({ redis, keys, clock: systemClock });
    const used: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      await permits.take(0.8);
      used.push(performance.now());
    }
    expect(mostWithin(used, 1_250)).toBe(1);
  });
});

describe.skipIf(!hasRedis)('the owner without Redis', () => {
  it('pushes at the same rate by itself, and not before the permits of workers are over', async () => {
    const { redis, server } = await setting();
    const clock = systemClock;
    const permits = new OwnerPermits({ redis, keys, clock }, clock.now());
    await permits.share();
    await permits.take(RATE, () => 0);
    await server.kill();
    const fencedUntil = clock.now() + 1_000;
    const used: number[] = [];
    for (let i = 0; i < 30; i += 1) {
      await permits.take(RATE, () => fencedUntil);
      used.push(clock.now());
    }
    expect(permits.isShared).toBe(false);
    expect(used[0]).toBeGreaterThanOrEqual(fencedUntil + 1_000);
    expect(mostWithin(used, 500)).toBeLessThanOrEqual(RATE / 2);
  });

  it('waits no longer for a push of its own when Redis answers', async () => {
    const { redis } = await setting();
    const clock = systemClock;
    const permits = new OwnerPermits({ redis, keys, clock }, clock.now() + 60_000);
    const taken = permits.take(RATE, () => 0);
    await permits.share();
    await expect(taken).resolves.toBeUndefined();
  });

  it('begins anew when Redis is back, so that both rates together are not more', async () => {
    const { redis } = await setting();
    const clock = systemClock;
    const used: number[] = [];
    const owner = new OwnerPermits({ redis, keys, clock }, clock.now());
    const worker = new Permits({ redis, keys, clock });
    await worker.take(RATE);
    const pushes = async (take: () => Promise<void>) => {
      while (used.length < 4 * RATE) {
        await take();
        used.push(performance.now());
      }
    };
    const pushing = pushes(() => owner.take(RATE, () => 0));
    await until(() => used.length > RATE, 'the owner pushes alone');
    const sharedAt = performance.now();
    await owner.share();
    await Promise.all([pushing, pushes(() => worker.take(RATE))]);
    const after = used.filter((at) => at > sharedAt + 200);
    expect(Math.min(...after) - sharedAt).toBeGreaterThan(1_000);
    expect(mostWithin(used, 1_000)).toBeLessThanOrEqual(RATE);
  });
});
