import { type Processor, Worker } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type JobEnd, JobQueue } from '../../src/fleet/job-queue.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { hasRedis, type RedisServer } from '../support/redis-server.js';
import { deferred, until } from '../support/wait.js';
import { connectionsTo, fleetAt, redisAt, startRedis } from './fleet.js';

if (!hasRedis) console.warn('redis-server is not installed: the tests of the fleet are skipped');

/** How soon a lock is lost, and how often somebody looks for lost ones, in ms. */
const LOCK_MS = 200;

describe.skipIf(!hasRedis)('the queue of the owner', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis('file');
  });
  afterAll(() => server.kill());

  const open = async (at = server, { name = 'extract', clock = systemClock } = {}) => {
    const fleet = fleetAt(at.url);
    const connections = await connectionsTo(fleet);
    const deps = { clock, log: silentLogger };
    const queue = new JobQueue(name, 'epoch', fleet.prefix, connections, deps);
    afterwards('test', () => queue.close());
    await connections.ready();
    return { fleet, queue, redis: redisAt(at) };
  };
  const work = (prefix: string, processor: Processor) => {
    const connection = redisAt(server).duplicate({ maxRetriesPerRequest: null });
    connection.on('error', () => {});
    afterwards('test', () => connection.disconnect());
    const worker = new Worker('extract', processor, {
      prefix,
      connection,
      concurrency: 10,
      lockDuration: LOCK_MS,
      stalledInterval: LOCK_MS,
      skipLockRenewal: true,
      skipVersionCheck: true,
    });
    worker.on('error', () => {});
    afterwards('test', () => worker.close(true));
    return worker;
  };

  it('gives up a batch of which nothing was said for two minutes, and a document only later', async () => {
    let passed = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + passed };
    const [push, extract] = await Promise.all([
      open(server, { name: 'push', clock }),
      open(server, { clock }),
    ]);
    const ends: string[] = [];
    void push.queue.run({}).then(({ kind }) => ends.push(`push ${kind}`));
    void extract.queue.run({}).then(({ kind }) => ends.push(`extract ${kind}`));
    await until(async () => (await push.queue.waiting()) > 0, 'the batch waits');
    await until(async () => (await extract.queue.waiting()) > 0, 'the document waits');
    passed = 60_000;
    await push.queue.check();
    expect(ends).toEqual([]);
    passed = 125_000;
    await until(async () => {
      await push.queue.check();
      await extract.queue.check();
      return ends.length > 0;
    }, 'the batch is given up');
    expect(ends).toEqual(['push lost']);
  });

  it('ends a job with what a worker returned, and tells its progress', async () => {
    const { fleet, queue } = await open();
    work(fleet.prefix, async (job) => {
      await job.updateProgress({ page: 1, pages: 2 });
      return { twice: job.data.number * 2, epoch: job.data.epoch };
    });
    const progress: unknown[] = [];
    const end = await queue.run({ number: 21 }, (each) => progress.push(each));
    expect(end).toEqual({ kind: 'done', value: { twice: 42, epoch: 'epoch' } });
    expect(progress).toEqual([{ page: 1, pages: 2 }]);
    expect(queue.size).toBe(0);
  });

  it('ends a job that a worker could not do as failed', async () => {
    const { fleet, queue } = await open();
    work(fleet.prefix, () => Promise.reject(new Error('no')));
    expect(await queue.run({})).toEqual({ kind: 'failed' });
  });

  it('ends a job as failed when two workers did not come back from it', async () => {
    const { fleet, queue } = await open();
    let started = 0;
    for (let i = 0; i < 3; i += 1)
      work(fleet.prefix, () => {
        started += 1;
        return new Promise(() => {});
      });
    expect(await queue.run({})).toEqual({ kind: 'failed' });
    expect(started).toBe(2);
  });

  it('keeps a finished push only for as long as its event may be missed', async () => {
    for (const [name, seconds] of [
      ['push', 60],
      ['extract', 600],
    ] as const) {
      const { fleet, queue, redis } = await open(server, { name });
      void queue.run({});
      const key = `${fleet.prefix}:${name}:epoch-1`;
      await until(async () => (await redis.exists(key)) === 1, 'the job waits');
      const options = JSON.parse((await redis.hget(key, 'opts')) ?? '{}') as object;
      const kept = { age: seconds, count: 1_000 };
      expect(options).toMatchObject({ removeOnComplete: kept, removeOnFail: kept });
    }
  });

  it('finds out by a check that Redis has forgotten a job', async () => {
    const { queue, redis } = await open();
    let end: JobEnd | undefined;
    void queue.run({}).then((ended) => {
      end = ended;
    });
    await until(async () => (await queue.backlog(0)).waiting === 1, 'the job waits');
    await queue.check();
    expect(end).toBeUndefined();
    await redis.flushall();
    await until(async () => {
      await queue.check();
      return end !== undefined;
    }, 'the job has ended');
    expect(end).toEqual({ kind: 'lost' });
  });

  it('finds out by a check how a job ended whose event was missed', async () => {
    const { fleet, queue, redis } = await open();
    const events = `${fleet.prefix}:extract:events`;
    const far = Date.now() * 2;
    // The clock of Redis was ahead, and is set back: all later events seem to be old.
    const first = deferred();
    work(fleet.prefix, async (job) => {
      if (job.data.number === 1) await first.promise;
      return job.data.number;
    });
    const ended: JobEnd[] = [];
    const progress: unknown[] = [];
    void queue.run({ number: 1 }, (each) => progress.push(each)).then((end) => ended.push(end));
    await until(async () => (await queue.backlog(0)).waiting === 0, 'the job is active');
    await redis.xadd(events, `${far}-1`, 'event', 'progress', 'jobId', 'epoch-1', 'data', '1');
    await until(() => progress.length === 1, 'the event has come');
    await redis.del(events);
    first.resolve();
    await until(async () => (await redis.zcard(`${fleet.prefix}:extract:completed`)) === 1, 'done');
    expect(ended).toEqual([]);
    await queue.check();
    expect(ended).toEqual([{ kind: 'done', value: 1 }]);
  });

  it('goes on with the events after one that is damaged', async () => {
    const { fleet, queue, redis } = await open();
    const damaged = ['event', 'progress', 'jobId', 'x', 'data', '{'];
    await redis.xadd(`${fleet.prefix}:extract:events`, '*', ...damaged);
    work(fleet.prefix, async () => 7);
    const ended: JobEnd[] = [];
    await until(async () => {
      void queue.run({}).then((end) => ended.push(end));
      await systemClock.sleep(100);
      return ended.length > 0;
    }, 'a job has ended without a check');
    expect(ended[0]).toEqual({ kind: 'done', value: 7 });
  });

  it('loses a job whose record is damaged, and checks the others', async () => {
    const { fleet, queue, redis } = await open();
    const ends: string[] = [];
    void queue.run({}).then(({ kind }) => ends.push(`first ${kind}`));
    void queue.run({}).then(({ kind }) => ends.push(`second ${kind}`));
    await until(async () => (await queue.backlog(0)).waiting === 2, 'the jobs wait');
    await redis.set(`${fleet.prefix}:extract:epoch-1`, 'no hash');
    await until(async () => {
      await queue.check();
      return ends.length > 0;
    }, 'a job has ended');
    expect(ends).toEqual(['first lost']);
    expect(queue.size).toBe(1);
  });

  it('finds jobs of earlier epochs that are done or under way, leaves out damaged ones, and resumes them', async () => {
    const { fleet, queue, redis } = await open();
    const { promise: mayEnd, resolve: goOn } = deferred();
    work(fleet.prefix, async ({ data: { number } }) => {
      if (number === 2) await mayEnd;
      return number;
    });
    await queue.run({ number: 1 });
    void queue.run({ number: 2 });
    await until(async () => (await queue.backlog(0)).waiting === 0, 'both were taken');
    const key = `${fleet.prefix}:extract`;
    await redis.set(`${key}:epoch-7`, 'no hash');
    await redis.rpush(`${key}:active`, 'epoch-7', ...Array.from({ length: 5 }, () => 'other-1'));
    expect(await queue.earlier(['other epoch'])).toEqual([]);
    const found = await queue.earlier(['other epoch', 'epoch']);
    expect(found.map(({ data, id }) => [id, data])).toEqual([
      ['epoch-1', { number: 1, epoch: 'epoch' }],
      ['epoch-2', { number: 2, epoch: 'epoch' }],
    ]);
    const connections = await connectionsTo(fleet);
    const deps = { clock: systemClock, log: silentLogger };
    const next = new JobQueue('extract', 'next', fleet.prefix, connections, deps);
    afterwards('test', () => next.close());
    await connections.ready();
    expect(await next.resume('epoch-1')).toEqual({ kind: 'done', value: 1 });
    const second = next.resume('epoch-2');
    goOn();
    expect(await second).toEqual({ kind: 'done', value: 2 });
    expect(await next.resume('epoch-99')).toEqual({ kind: 'lost' });
  });

  it('looks at a bounded number of earlier jobs', async () => {
    const { fleet, queue, redis } = await open();
    const key = `${fleet.prefix}:extract`;
    const ids = Array.from({ length: 2_500 }, (_, i) => `epoch-${i}`);
    const commands = redis.multi();
    for (const id of ids)
      commands.hset(`${key}:${id}`, { name: 'job', data: '{}', opts: '{}', timestamp: '1' });
    await commands.rpush(`${key}:active`, ...ids).exec();
    expect((await queue.earlier(['epoch'])).length).toBe(1_000);
  });

  it('loses all jobs at once, and takes back those that no worker has', async () => {
    const { queue } = await open();
    const ends = Promise.all([queue.run({}), queue.run({})]);
    await until(async () => (await queue.backlog(0)).waiting === 2, 'the jobs wait');
    queue.loseAll();
    expect(await ends).toEqual([{ kind: 'lost' }, { kind: 'lost' }]);
    await until(async () => (await queue.backlog(0)).waiting === 0, 'no job waits');
  });

  it('loses a job at once that Redis does not take', async () => {
    const own = await startRedis();
    const { queue } = await open(own);
    await own.kill();
    const wait = () =>
      queue.backlog(0).then(
        () => false,
        () => true,
      );
    await until(wait, 'the connection is lost');
    expect(await queue.run({})).toEqual({ kind: 'lost' });
  });

  it('keeps in Redis no more than the jobs that are out and some that ended', async () => {
    const { fleet, queue, redis } = await open();
    work(fleet.prefix, async () => 'x');
    await Promise.all(Array.from({ length: 1_500 }, () => queue.run({})));
    const jobs = await redis.keys(`${fleet.prefix}:extract:epoch-*`);
    expect(jobs.length).toBeLessThanOrEqual(1_000);
  });
});
