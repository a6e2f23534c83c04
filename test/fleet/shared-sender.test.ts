import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { JobQueue } from '../../src/fleet/job-queue.js';
import { NoPermit } from '../../src/fleet/permits.js';
import { FENCE_MS, Keys, ORDER_LOST_MS, type WorkerReport } from '../../src/fleet/protocol.js';
import { EARLIER_LEASE_MS, SharedSender } from '../../src/fleet/shared-sender.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { PushOptions } from '../../src/peer/push.js';
import type { UplinkPeer } from '../../src/uplink/deps.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';

const SHA256 = 'a'.repeat(64);
const VERSION = { size: 1, mtimeMs: 1, ctimeMs: 1, ino: 1, sha256: SHA256, encoding: 'utf-8' };
const PERMIT_WAIT_MS = 500;

/** A sender whose Redis, and whose worker `w`, are the test. */
async function setUp() {
  const clock = new FakeClock();
  const redisState = { isAway: false };
  const commands = {
    set: () => commands,
    rpush: () => commands,
    pexpire: () => commands,
    exec: async () => [],
  };
  const redis = {
    eval: async () => {
      if (redisState.isAway) throw new Error('Redis is away');
      return 0;
    },
    time: async () => [Math.floor(clock.now() / 1_000), 0],
    multi: () => commands,
    del: async () => 0,
    lrem: async () => 0,
  } as unknown as Redis;
  const waiting = { blpop: () => new Promise(() => {}), disconnect: () => {} };
  const content = { kind: 'content', size: 1, digest: SHA256, type: 'text/plain' };
  const value = { kind: 'read', worker: 'w', batch: 'b', files: [content] };
  const jobs = { run: async () => ({ kind: 'done', value }) } as unknown as JobQueue;
  const sender = new SharedSender({
    redis,
    waiting: waiting as unknown as Redis,
    keys: new Keys('p'),
    epoch: 'epoch',
    jobs,
    clock,
    log: silentLogger,
    peerUrl: 'http://127.0.0.1:1/',
    requestsPerSecond: () => 20,
    slots: () => 10,
    onLate: () => {},
  });
  afterwards('test', () => sender.close());
  const beat = async (...orders: string[]) =>
    await sender.beat([{ id: 'w', orders } as unknown as WorkerReport]);
  await beat();
  await clock.advance(EARLIER_LEASE_MS);
  await beat();

  /** Gives the worker an order. @returns how it ended, and what breaks it off */
  const order = async () => {
    const item = { folder: 'inbox', path: 'a' };
    const file = { file: '/a', linksWithin: undefined, item, version: VERSION as never };
    const batch = await sender.read({ dialect: 'standard', files: [file] });
    const stop = new AbortController();
    const ends: unknown[] = [];
    const target = { n: 0, url: 'https://x.example/a', collection: 'c' };
    batch?.push([target], { signal: stop.signal }).catch((error: { code?: string }) => {
      ends.push(error.code);
    });
    await clock.advance(0);
    return { ends, stop };
  };
  /** Pushes from this machine. @returns when it left */
  const pushOwn = async () => {
    let leftAt: number | undefined;
    const peer = sender.limited({
      push: async (_: unknown, { admit }: PushOptions) => {
        await admit?.(0);
        leftAt = clock.now();
      },
    } as unknown as UplinkPeer);
    while (leftAt === undefined) {
      let isOver = false;
      void peer
        .push([])
        .catch((error: unknown) => expect(error).toBeInstanceOf(NoPermit))
        .finally(() => {
          isOver = true;
        });
      while (!isOver) await clock.advance(PERMIT_WAIT_MS);
    }
    return leftAt;
  };
  return { beat, clock, order, pushOwn, redisState, sender };
}

describe('an order to push', () => {
  it('is lost when its worker was not seen with it for long enough, and not before', async () => {
    const { beat, clock, order, sender } = await setUp();
    const { ends } = await order();
    await clock.advance(10_000);
    await beat('epoch-1');
    await clock.advance(ORDER_LOST_MS);
    await beat('another order');
    sender.check();
    await clock.advance(0);
    expect(ends).toEqual([]);
    await clock.advance(1);
    sender.check();
    await clock.advance(0);
    expect(ends).toEqual(['FLEET_ORDER_LOST']);
  });

  it.each([
    ['are under way', []],
    ['are lost, the later one first', [1, 0]],
  ])(
    'keeps the owner from pushing without Redis until the last fence, while two %s',
    async (_, lost) => {
      const { clock, order, pushOwn, redisState } = await setUp();
      const first = await order();
      await clock.advance(10_000);
      const lastFenceAt = clock.now() + FENCE_MS;
      const orders = [first, await order()];
      for (const n of lost) orders[n]?.stop.abort();
      redisState.isAway = true;
      expect(await pushOwn()).toBeGreaterThanOrEqual(lastFenceAt);
    },
  );
});
