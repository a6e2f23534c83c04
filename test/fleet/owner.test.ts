import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import type { JobQueue } from '../../src/fleet/job-queue.js';
import { FleetOwner } from '../../src/fleet/owner.js';
import { Keys } from '../../src/fleet/protocol.js';
import type { FleetConfig } from '../../src/fleet/redis.js';
import { wallAheadMs } from '../../src/lib/clock.js';
import { afterwards } from '../support/afterwards.js';
import { loggerTo } from '../support/logger.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import {
  announceWorker,
  BeatClock,
  bulk,
  fakeRedis,
  fleetAt,
  OK,
  redisAt,
  startRedis,
} from './fleet.js';

function jobsOf({ extract }: FleetOwner): JobQueue {
  if (extract === undefined) throw new Error('the reading of documents is not shared');
  return extract;
}

describe.skipIf(!hasRedis)('the owner of a fleet', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis('file');
  });
  afterAll(() => server.kill());

  const open = async (
    fleet: FleetConfig,
    stateDir = '/var/lib/peersync',
    programs: Programs = NO_PROGRAMS,
  ) => {
    const clock = new BeatClock();
    const logged: string[] = [];
    const changes: number[] = [];
    const owner: FleetOwner = await FleetOwner.open(fleet, stateDir, {
      clock,
      log: loggerTo(logged),
      folders: () => [],
      programs: { current: programs },
      peerUrl: 'http://127.0.0.1:1/',
      onChange: () => changes.push(owner.slots),
    });
    afterwards('test', () => owner.close());
    owner.start();
    /** Lets beats happen until something is so. */
    const beats = async (condition: () => boolean | Promise<boolean>, what: string) => {
      await until(async () => {
        if (await condition()) return true;
        await clock.beat();
        return false;
      }, what);
    };
    /** Lets a beat happen, and waits for its end. */
    const beat = async () => {
      await owner.refresh();
    };
    return { beat, beats, changes, clock, logged, owner };
  };
  const owned = async (redis: Redis, { prefix }: FleetConfig) =>
    JSON.parse((await redis.get(new Keys(prefix).owner)) ?? '{}') as { epoch?: string };

  it('takes the lease, and counts the workers that take jobs and have the same build', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    await announceWorker(redis, fleet);
    await announceWorker(redis, fleet, { build: 'another one' });
    await announceWorker(redis, fleet, { idle: { reason: 'folders', folders: ['inbox'] } });
    await redis.sadd(new Keys(fleet.prefix).workers, 'gone');
    const { beats, changes, logged, owner } = await open(fleet);
    expect(owner.slots).toBe(0);
    await beats(() => owner.slots === 3, 'the slots of one worker');
    expect(changes).toEqual([3]);
    expect(owner.status()).toMatchObject({ redis: 'there', failure: undefined });
    expect(owner.status().workers).toHaveLength(3);
    expect(await redis.smembers(new Keys(fleet.prefix).workers)).toHaveLength(3);
    expect(await owned(redis, fleet)).toMatchObject({ epoch: owner.epoch });
    expect(logged).toEqual([]);
  });

  it('takes the lease, and looks at its workers, although a program hangs', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    await announceWorker(redis, fleet);
    const directory = temporaryDirectory();
    const [asked, answers] = [join(directory, 'asked'), join(directory, 'answers')];
    afterwards('test', () => writeFileSync(answers, ''));
    const program = join(directory, 'catdoc');
    const script = `#!/bin/sh\ntouch '${asked}'\nuntil [ -e '${answers}' ] || [ ! -e "$0" ]; do sleep 0.05; done\n`;
    writeFileSync(program, script, { mode: 0o755 });
    const command = { name: 'catdoc', program, args: ['{file}'], output: 'text' } as const;
    const programs = { ...NO_PROGRAMS, commands: { '.doc': command } };
    const { clock, owner } = await open(fleet, '/state', programs);
    await clock.beat();
    await until(() => existsSync(asked), 'the program is asked');
    await clock.advance(3_000);
    await until(() => owner.slots === 3, 'the slots of the worker');
    expect(await owned(redis, fleet)).toMatchObject({ epoch: owner.epoch });
  });

  it('looks at a bounded number of workers, and forgets those that are none', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    const { workers } = new Keys(fleet.prefix);
    await redis.sadd(workers, ...Array.from({ length: 2_500 }, (_, i) => `none-${i}`));
    const { owner } = await open(fleet);
    await owner.refresh();
    const left = await redis.scard(workers);
    expect(left).toBeGreaterThan(0);
    expect(left % 500).toBe(0);
    await announceWorker(redis, fleet);
    for (let i = 0; i < 4; i += 1) await owner.refresh();
    expect(owner.slots).toBe(3);
    expect(await redis.scard(workers)).toBe(1);
  });

  it('gives up the lease when it stops, and only its own', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    const { owner } = await open(fleet);
    await owner.refresh();
    await owner.close();
    expect(await owned(redis, fleet)).toEqual({});
    const { owner: later } = await open(fleet);
    await later.refresh();
    await redis.set(new Keys(fleet.prefix).owner, JSON.stringify({ epoch: 'other' }));
    await later.close();
    expect(await owned(redis, fleet)).toEqual({ epoch: 'other' });
  });

  it('loses its jobs when no worker takes any, and counts on them again when one does', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    const worker = await announceWorker(redis, fleet);
    const { beat, owner } = await open(fleet);
    await beat();
    const end = jobsOf(owner).run({});
    await beat();
    expect(jobsOf(owner).size).toBe(1);
    await redis.del(worker);
    await beat();
    expect(await end).toEqual({ kind: 'lost' });
    expect(owner.slots).toBe(0);
    await announceWorker(redis, fleet);
    await beat();
    expect(owner.slots).toBe(3);
  });

  it('loses the jobs of documents when the workers that are left only push', async () => {
    const fleet = { ...fleetAt(server.url), share: ['extract' as const, 'push' as const] };
    const redis = redisAt(server);
    const worker = await announceWorker(redis, fleet);
    await announceWorker(redis, fleet, { slots: 0, pushSlots: 2 });
    const { beat, owner } = await open(fleet);
    await beat();
    const end = jobsOf(owner).run({});
    void owner.push?.jobs.run({});
    await beat();
    expect(jobsOf(owner).size).toBe(1);
    await redis.del(worker);
    await beat();
    expect(jobsOf(owner).size).toBe(0);
    expect(await end).toEqual({ kind: 'lost' });
    expect(owner.push?.jobs.size).toBe(1);
  });

  it('loses its jobs soon when Redis is emptied', async () => {
    const own = await startRedis();
    const fleet = fleetAt(own.url);
    const redis = redisAt(own);
    await announceWorker(redis, fleet);
    const { beat, logged, owner } = await open(fleet);
    await beat();
    const end = jobsOf(owner).run({});
    await until(async () => (await jobsOf(owner).backlog(0)).waiting === 1, 'the job waits');
    await redis.flushall();
    await announceWorker(redis, fleet);
    await beat();
    expect(await end).toEqual({ kind: 'lost' });
    expect(owner.slots).toBe(3);
    expect(logged).toEqual([]);
  });

  it('goes on without workers when Redis dies, loses its jobs within 30 s, and uses workers again', async () => {
    const own = await startRedis();
    const fleet = fleetAt(own.url);
    await announceWorker(redisAt(own), fleet);
    const { beat, beats, clock, logged, owner } = await open(fleet);
    await beat();
    let isLost = false;
    void jobsOf(owner)
      .run({})
      .then(() => {
        isLost = true;
      });
    await until(async () => (await jobsOf(owner).backlog(0)).waiting === 1, 'the job waits');
    const diedAt = clock.now();
    await own.kill();
    await beats(() => isLost, 'the job is lost');
    expect(clock.now() - diedAt).toBeLessThanOrEqual(30_000);
    expect(owner.slots).toBe(0);
    expect(new Set(logged).size).toBe(logged.length);
    for (const line of logged) expect(line).toContain('This machine goes on without workers.');
    await own.start();
    await announceWorker(redisAt(own), fleet);
    await beats(() => owner.slots === 3, 'workers are used again');
    expect(logged.at(-1)).toBe('info: Redis answers: workers are used again');
  });

  it('loses its jobs within 30 s while a part of each beat fails', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    await announceWorker(redis, fleet);
    const { beat, beats, clock, owner } = await open(fleet);
    await beat();
    let isLost = false;
    void jobsOf(owner)
      .run({})
      .then(({ kind }) => {
        isLost = kind === 'lost';
      });
    await until(async () => (await jobsOf(owner).backlog(0)).waiting === 1, 'the job waits');
    await redis.set(new Keys(fleet.prefix).workers, 'no set');
    const brokenAt = clock.now();
    await beats(() => isLost || clock.now() - brokenAt > 60_000, 'the job is lost');
    expect(isLost).toBe(true);
    expect(clock.now() - brokenAt).toBeLessThanOrEqual(30_000);
  });

  it('counts the documents and the batches that wait, from the oldest of both', async () => {
    const fleet = { ...fleetAt(server.url), share: ['extract' as const, 'push' as const] };
    await announceWorker(redisAt(server), fleet);
    const { beat, clock, owner } = await open(fleet);
    await beat();
    expect(owner.status()).toMatchObject({ waiting: 0 });
    const before = Date.now();
    clock.set(before - clock.now());
    void owner.push?.jobs.run({});
    await until(async () => (await owner.push?.jobs.waiting()) === 1, 'a batch waits');
    const between = Date.now() + 1;
    await until(() => Date.now() > between, 'time passes');
    void jobsOf(owner).run({});
    await until(async () => (await jobsOf(owner).waiting()) === 1, 'a document waits');
    await beat();
    const { oldestSince = 0, waiting } = owner.status();
    expect(waiting).toBe(2);
    expect(oldestSince + wallAheadMs(clock)).toBeGreaterThanOrEqual(before);
    expect(oldestSince + wallAheadMs(clock)).toBeLessThan(between);
  });

  it('has no queue of documents if only pushes are shared', async () => {
    const fleet = { ...fleetAt(server.url), share: ['push' as const] };
    const redis = redisAt(server);
    await announceWorker(redis, fleet, { pushSlots: 2 });
    const { beat, owner } = await open(fleet);
    await beat();
    expect([owner.extract, owner.slots, owner.pushSlots]).toEqual([undefined, 0, 2]);
    expect(await redis.keys(`${fleet.prefix}:extract:*`)).toEqual([]);
    // Another run continues nothing: workers end the documents that they read.
    const { owner: another } = await open(fleet);
    await another.refresh();
    expect(await owned(redis, fleet)).toMatchObject({ epoch: another.epoch, continues: [] });
  });

  it('removes the jobs of its last life, and takes over at once', async () => {
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    await announceWorker(redis, fleet);
    const { owner: killed } = await open(fleet);
    await killed.refresh();
    void jobsOf(killed).run({});
    await until(async () => (await jobsOf(killed).backlog(0)).waiting === 1, 'a job waits');
    const { logged, owner } = await open(fleet);
    await owner.refresh();
    expect(logged).toEqual([]);
    expect(owner.slots).toBe(3);
    expect((await jobsOf(owner).backlog(0)).waiting).toBe(0);
    // The one that was overtaken does not take the lease back.
    await killed.refresh();
    expect(killed.status().failure).toMatchObject({ kind: 'owned' });
    expect(await owned(redis, fleet)).toMatchObject({ epoch: owner.epoch });
  });

  it('stands back from an owner of another state, and takes over when that has ended', async () => {
    const fleet = fleetAt(server.url);
    await announceWorker(redisAt(server), fleet);
    const first = await open(fleet, '/one');
    await first.owner.refresh();
    const { beat, logged, owner } = await open(fleet, '/two');
    await owner.refresh();
    expect(owner.slots).toBe(0);
    expect(owner.status()).toMatchObject({ redis: 'there', failure: { kind: 'owned' } });
    expect(logged).toEqual([
      expect.stringMatching(
        /^warn: Another peersync \(on .+, process \d+\) uses the same `fleet.prefix` in this Redis\. .+Give each its own prefix/,
      ),
    ]);
    await first.owner.close();
    await beat();
    expect(owner.slots).toBe(3);
  });

  it('stands back from a record that it cannot read', async () => {
    const fleet = fleetAt(server.url);
    await redisAt(server).set(new Keys(fleet.prefix).owner, '{"from":"the future"}');
    const { owner } = await open(fleet);
    await owner.refresh();
    expect(owner.status().failure?.message).toContain('of another version');
  });

  describe('says in a sentence why Redis cannot be used, and what to do', () => {
    const troubleWith = async (fleet: FleetConfig) => {
      const { logged, owner } = await open(fleet);
      await owner.refresh();
      expect(logged).toHaveLength(1);
      expect(owner.status()).toMatchObject({ redis: 'away', failure: { kind: 'redis' } });
      return logged[0];
    };

    it('if nothing listens there', async () => {
      expect(await troubleWith(fleetAt('unix:///nowhere/redis.sock'))).toBe(
        'warn: No Redis listens at unix:///nowhere/redis.sock. This machine goes on without workers. Start it, or correct `fleet.redis`.',
      );
      expect(await troubleWith(fleetAt('redis://127.0.0.1:1'))).toContain('No Redis listens at');
    });

    it('if the name of its host is not known', async () => {
      expect(await troubleWith(fleetAt('redis://nowhere.invalid'))).toContain(
        'The name of the host in redis://nowhere.invalid cannot be resolved.',
      );
    });

    it('if the password is wrong', async () => {
      const redis = redisAt(server);
      await redis.config('SET', 'requirepass', 'secret');
      expect(await troubleWith(fleetAt(server.url))).toContain('wants a password');
      await redis.config('SET', 'requirepass', '');
    });

    it('if its memory is full', async () => {
      const redis = redisAt(server);
      await redis.config('SET', 'maxmemory', '1');
      expect(await troubleWith(fleetAt(server.url))).toContain('The memory of Redis at');
      await redis.config('SET', 'maxmemory', '0');
    });

    it('if it hangs', async () => {
      const own = new RedisServer(temporaryDirectory());
      afterwards('test', () => own.kill());
      await own.start();
      own.signal('SIGSTOP');
      expect(await troubleWith(fleetAt(own.url))).toContain('does not answer.');
    });
  });

  it('says that Redis loads its data, keeps no document waiting for it, and uses it when it is ready', async () => {
    const settings = [
      '--key-load-delay',
      '20000',
      '--loading-process-events-interval-bytes',
      '1024',
    ];
    const own = new RedisServer(temporaryDirectory(), { settings });
    afterwards('test', () => own.kill());
    await own.start();
    const before = redisAt(own);
    const keys = Array.from({ length: 200 }, (_, i) => [`key ${i}`, 'x'.repeat(1_000)]);
    await before.mset(...keys.flat());
    await before.save();
    await own.kill();
    before.disconnect();
    await own.start();
    const { beats, logged, owner } = await open(fleetAt(own.url));
    await owner.refresh();
    await owner.looked;
    expect(owner.status()).toMatchObject({ redis: 'loading', failure: { kind: 'loading' } });
    expect(logged).toEqual([
      `warn: Redis at ${own.url} is loading its data; peersync waits for it. This machine goes on without workers. There is nothing to do: it is used as soon as it is ready.`,
    ]);
    await beats(() => owner.status().redis === 'there', 'it is ready');
    expect(owner.status().failure).toBeUndefined();
  });

  it('keeps no document waiting for a Redis that takes seconds for each command', async () => {
    let asked = 0;
    const redis = await fakeRedis((name) => {
      if (name === 'info') return bulk('redis_version:7.0.0');
      if (name === 'hello' || name === 'client') return OK;
      asked += 1;
      return undefined;
    });
    const { clock, owner } = await open(fleetAt(redis));
    let hasLooked = false;
    void owner.looked.then(() => {
      hasLooked = true;
    });
    await clock.beat();
    await until(() => asked > 0, 'the first look is under way');
    expect(hasLooked).toBe(false);
    await clock.advance(10_000);
    expect(hasLooked).toBe(true);
  });

  it('stops at once while Redis is away', async () => {
    const { owner } = await open(fleetAt('unix:///nowhere/redis.sock'));
    const end = jobsOf(owner).run({});
    await owner.close();
    expect(await end).toEqual({ kind: 'lost' });
  });
});
