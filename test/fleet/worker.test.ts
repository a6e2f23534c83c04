import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import {
  Abilities,
  abilitiesDigest,
  abilitiesOf,
  programsDigest,
} from '../../src/fleet/abilities.js';
import { JobQueue } from '../../src/fleet/job-queue.js';
import { Keys, type Owner, peerDigest, readRecord, WORKER } from '../../src/fleet/protocol.js';
import { FleetWorker } from '../../src/fleet/worker.js';
import { systemClock } from '../../src/lib/clock.js';
import { fileStat } from '../../src/lib/file.js';
import { silentLogger } from '../../src/lib/logger.js';
import {
  type DocumentOrder,
  type Extracted,
  type PackOrder,
  pack,
  STALE,
} from '../../src/uplink/documents.js';
import { afterwards } from '../support/afterwards.js';
import { loggerTo } from '../support/logger.js';
import { hasRedis, type RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { deferred, until } from '../support/wait.js';
import {
  announceOwner,
  BeatClock,
  configWith,
  connectionsTo,
  fleetAt,
  redisAt,
  startRedis,
} from './fleet.js';

interface Reading {
  readonly order: DocumentOrder;
  readonly end: (result: Extracted) => void;
}

describe.skipIf(!hasRedis)('a worker', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis('file');
  });
  afterAll(() => server.kill());

  /** A worker whose readers are the test, with a folder. */
  const open = async ({ at = server, slots = 2, share = fleetAt('').share } = {}) => {
    const root = temporaryDirectory();
    const folder = join(root, 'inbox');
    mkdirSync(folder);
    const fleet = { ...fleetAt(at.url), share };
    const redis = redisAt(at);
    const clock = new BeatClock();
    const logged: string[] = [];
    const readings: Reading[] = [];
    const endAll = () => {
      for (const { end } of readings.splice(0)) end(STALE);
    };
    const readers = {
      restarts: 0,
      extractDocument: async (order: DocumentOrder) =>
        await new Promise<Extracted>((end) => readings.push({ order, end })),
      async restart() {
        readers.restarts += 1;
        endAll();
      },
      async close() {
        endAll();
      },
    };
    const disk = { pack: async (order: PackOrder) => pack(order) };
    const programs = {
      current: NO_PROGRAMS,
      installed: NO_PROGRAMS,
      isUpdated: false,
      async refresh() {
        programs.current = programs.installed;
        programs.isUpdated = false;
      },
      answers: Promise.resolve(),
      async isCurrent() {
        await programs.answers;
        return !programs.isUpdated;
      },
    };
    const config = await configWith(fleet, folder);
    const worker = await FleetWorker.open({
      config,
      clock,
      log: loggerTo(logged),
      programs,
      readers,
      pack: (order) => disk.pack(order),
      peerOf: async () => ({
        push: async () => {
          throw new Error('nothing is pushed');
        },
      }),
      slots,
    });
    afterwards('test', () => worker.stop());
    const report = async () =>
      readRecord(WORKER, (await redis.get(new Keys(fleet.prefix).worker(worker.id))) ?? '');
    /** Lets beats happen until something is so. */
    const beats = async (condition: () => boolean | Promise<boolean>, what: string) => {
      await until(async () => {
        if (await condition()) return true;
        await clock.beat();
        return false;
      }, what);
    };
    /** The queue of an owner. */
    const ownerOf = async ({ epoch }: Owner, name = 'extract') => {
      const connections = await connectionsTo(fleet);
      const deps = { clock: systemClock, log: silentLogger };
      const queue = new JobQueue(name, epoch, fleet.prefix, connections, deps);
      afterwards('test', () => queue.close());
      return queue;
    };
    /** Announces an owner, and starts the worker. @returns the queue of the owner */
    const atWork = async () => {
      const owner = await announceOwner(redis, fleet);
      worker.start();
      await beats(isWorking, 'it works');
      return await ownerOf(owner);
    };
    /** Writes a file. @returns the job to read it */
    const drop = (name: string, content = name) => {
      writeFileSync(join(folder, name), content);
      const sha256 = createHash('sha256').update(content).digest('hex');
      const version = { ...fileStat(statSync(join(folder, name))), sha256, encoding: 'document' };
      return {
        folder: 'inbox',
        path: name,
        version,
        wanted: 'text',
        readsTextAsHtml: false,
        programs: programsDigest(NO_PROGRAMS),
        abilities: abilitiesDigest(abilitiesOf(NO_PROGRAMS)),
      };
    };
    const isIdleFor = (reason: string) => async () => (await report())?.idle?.reason === reason;
    const isWorking = async () => {
      const found = await report();
      return found !== undefined && found.idle === undefined;
    };
    return {
      atWork,
      beats,
      clock,
      disk,
      drop,
      fleet,
      folder,
      isIdleFor,
      isWorking,
      logged,
      programs,
      ownerOf,
      readers,
      readings,
      redis,
      report,
      worker,
    };
  };
  const textOf = (text: string): Extracted => ({
    kind: 'extracted',
    words: 1,
    page: { bytes: Buffer.from(text), extracted: { reader: 'pdf', words: 1, ms: 1 } },
  });

  it('reads the file of a job, and gives its text back by Redis', async () => {
    const { atWork, beats, drop, fleet, folder, readings, redis, report } = await open();
    const queue = await atWork();
    const ended = queue.run(drop('a.pdf'));
    await until(() => readings.length === 1, 'it reads');
    const [reading] = readings;
    expect(reading?.order).toMatchObject({ file: join(folder, 'a.pdf'), wanted: 'text' });
    reading?.end(textOf('the text'));
    const end = await ended;
    expect(end).toMatchObject({ kind: 'done', value: { kind: 'read', result: { words: 1 } } });
    const { text } = (end as { value: { text: string } }).value;
    const packed = await redis.getBuffer(new Keys(fleet.prefix).text(text));
    expect(gunzipSync(packed ?? '').toString()).toBe('the text');
    await beats(async () => (await report())?.done === 1, 'it counts the job');
  });

  it('reads a file that has other times and another inode there, and never one of another size', async () => {
    const { atWork, beats, drop, readings, report } = await open();
    const queue = await atWork();
    const job = drop('a.pdf');
    void queue.run({ ...job, version: { ...job.version, ino: 1, ctimeMs: 1 } });
    await until(() => readings.length === 1, 'it reads');
    const { sha256 } = job.version;
    expect(readings[0]?.order.version).toEqual({ ...job.version, sha256 });
    const other = await queue.run({ ...job, version: { ...job.version, size: 1 } });
    expect(other).toEqual({ kind: 'done', value: { kind: 'read', result: { kind: 'stale' } } });
    await beats(async () => (await report())?.failed === 1, 'the report counts it');
  });

  it('never leaves its folder', async () => {
    const { atWork, drop, readings } = await open();
    const queue = await atWork();
    const job = drop('a.pdf');
    for (const path of ['../a.pdf', '/etc/passwd', 'x/../../a', 'a\0b', ''])
      expect(await queue.run({ ...job, path })).toEqual({ kind: 'failed' });
    expect(readings).toEqual([]);
  });

  it('takes no jobs while it does not see a folder in which the owner sees files', async () => {
    const { beats, drop, fleet, isIdleFor, isWorking, logged, ownerOf, readings, redis, worker } =
      await open();
    await announceOwner(redis, fleet, { folders: ['inbox', 'other'] });
    worker.start();
    await beats(isIdleFor('folders'), 'it is idle');
    expect(logged.at(-1)).toContain('it sees nothing in inbox, other.');
    const owner = await announceOwner(redis, fleet, { folders: ['inbox'] });
    const job = drop('a.pdf');
    await beats(isWorking, 'it works');
    void (await ownerOf(owner)).run(job);
    await until(() => readings.length === 1, 'it reads');
  });

  it('takes jobs although a folder is empty, if the owner sees nothing there either', async () => {
    const { beats, fleet, isWorking, redis, worker } = await open();
    await announceOwner(redis, fleet, { folders: [] });
    worker.start();
    await beats(isWorking, 'it works');
  });

  it('takes no jobs of an owner with another build, with other programs, or that it does not understand', async () => {
    const { beats, fleet, isIdleFor, isWorking, logged, redis, worker } = await open();
    await announceOwner(redis, fleet, { build: 'another' });
    worker.start();
    await beats(isIdleFor('build'), 'another build');
    await announceOwner(redis, fleet, { abilities: ['OCR in deu'] });
    await beats(isIdleFor('programs'), 'other programs');
    expect(logged.at(-1)).toContain('(owner: OCR in deu, worker: no OCR (missing))');
    await redis.set(new Keys(fleet.prefix).owner, '{}');
    await beats(isIdleFor('build'), 'an unknown one');
    await announceOwner(redis, fleet);
    await beats(isWorking, 'it works');
  });

  it('takes jobs when the programs that it lacked are installed', async () => {
    const { beats, fleet, isIdleFor, isWorking, programs, redis, worker } = await open();
    const doc = {
      name: 'catdoc',
      program: '/bin/catdoc',
      args: ['{file}'],
      output: 'text',
    } as const;
    const installed = { ...NO_PROGRAMS, commands: { '.doc': doc } };
    await announceOwner(redis, fleet, {
      abilities: [...(await new Abilities(systemClock).of(installed))],
    });
    worker.start();
    await beats(isIdleFor('programs'), 'it is idle');
    programs.installed = installed;
    await beats(isWorking, 'it works');
  });

  it('refuses a job of an owner that has found other programs since, and asks who the owner is', async () => {
    const { beats, drop, fleet, isWorking, logged, ownerOf, readings, redis, worker } =
      await open();
    const owner = await announceOwner(redis, fleet);
    worker.start();
    await beats(isWorking, 'it works');
    const queue = await ownerOf(owner);
    const back = { kind: 'done', value: { kind: 'notHere', why: 'idle' } };
    const abilities = [...abilitiesOf(NO_PROGRAMS), 'catdoc 0.96'];
    const job = { ...drop('a.pdf'), abilities: abilitiesDigest(abilities) };
    const answer = async () => {
      let end: unknown;
      void queue.run(job).then((found) => {
        end = found;
      });
      await until(() => end !== undefined || readings.length > 0, 'the job is refused, or read');
      return end;
    };
    expect(await answer()).toEqual(back);
    await announceOwner(redis, fleet, { ...owner, abilities });
    expect(await answer()).toEqual(back);
    expect(logged.at(-1)).toContain('(owner: catdoc 0.96)');
  });

  it.each([
    ['before a beat', 'text first'],
    ['after a beat has found it again', 'beat first'],
  ])(
    'returns no text of a program that was updated while it read, %s, and takes no jobs then',
    async (_, order) => {
      const { atWork, beats, drop, isIdleFor, programs, readings } = await open();
      const queue = await atWork();
      const ended = queue.run(drop('a.pdf'));
      await until(() => readings.length === 1, 'it reads');
      programs.isUpdated = true;
      programs.installed = { ...NO_PROGRAMS, noOcr: 'off' };
      if (order === 'beat first') await beats(isIdleFor('programs'), 'it is idle');
      readings[0]?.end(textOf('the text'));
      expect(await ended).toEqual({ kind: 'done', value: { kind: 'notHere', why: 'idle' } });
      await beats(isIdleFor('programs'), 'it is idle');
    },
  );

  it('says that it lives while its programs do not answer, and takes no jobs', async () => {
    const { atWork, clock, drop, isIdleFor, isWorking, ...others } = await open();
    const { programs, readings, report } = others;
    const queue = await atWork();
    let end: unknown;
    void queue.run(drop('a.pdf')).then((found) => {
      end = found;
    });
    await until(() => readings.length === 1, 'it reads');
    const { promise, resolve: answer } = deferred();
    afterwards('test', answer);
    programs.answers = promise;
    const goesOn = async (condition: () => boolean | Promise<boolean>, what: string) => {
      await until(async () => {
        await clock.advance(1_000);
        return await condition();
      }, what);
    };
    await goesOn(isIdleFor('programs'), 'it is idle');
    const abilities = ['worker: its programs do not answer'];
    expect((await report())?.idle).toEqual({ reason: 'programs', abilities });
    readings[0]?.end(textOf('the text'));
    await goesOn(() => end !== undefined, 'the job ends');
    expect(end).toEqual({ kind: 'done', value: { kind: 'notHere', why: 'idle' } });
    answer();
    await goesOn(isWorking, 'it works again');
  });

  it('takes jobs of an owner with other programs if it reads no documents, and no document', async () => {
    const { beats, drop, fleet, isWorking, ownerOf, redis, report, worker } = await open({
      share: ['push'],
    });
    const owner = await announceOwner(redis, fleet, { abilities: ['.doc by catdoc'] });
    const queue = await ownerOf(owner);
    void queue.run(drop('a.pdf'));
    await until(async () => (await queue.waiting()) === 1, 'the document waits');
    worker.start();
    await beats(isWorking, 'it works');
    await beats(async () => ((await report())?.pushSlots ?? 0) > 0, 'it takes batches');
    expect(await report()).toMatchObject({ slots: 0, active: 0 });
    expect(await queue.waiting()).toBe(1);
  });

  it('takes no batches while one of a folder that hangs is not read, and names the folder', async () => {
    const { beats, disk, drop, fleet, isIdleFor, isWorking, ownerOf, redis, report, worker } =
      await open({ share: ['push'] });
    const owner = await announceOwner(redis, fleet, { folders: ['inbox'] });
    const { folder, path, version } = drop('a.txt');
    const { promise: goesOn, resolve: goOn } = deferred();
    afterwards('test', goOn);
    let isReading = false;
    disk.pack = async (order) => {
      isReading = true;
      await goesOn;
      return pack(order);
    };
    worker.start();
    await beats(isWorking, 'it works');
    const file = { folder, path, version: { ...version, encoding: 'utf-8' } };
    void (await ownerOf(owner, 'push')).run({ dialect: 'standard', files: [file] });
    await until(() => isReading, 'it reads');
    expect((await report())?.idle).toBeUndefined();
    await beats(isIdleFor('folders'), 'it is idle');
    expect(await report()).toMatchObject({ idle: { folders: ['inbox'] } });
    await beats(async () => (await report())?.pushSlots === 0, 'it takes no batches');
    goOn();
    await beats(isWorking, 'it works again');
  });

  it('takes no batches of an owner that has another peer, and says so', async () => {
    const { beats, fleet, isWorking, logged, redis, report, worker } = await open({
      share: ['push'],
    });
    await announceOwner(redis, fleet, { peer: peerDigest('http://other.example/') });
    worker.start();
    await beats(isWorking, 'it works');
    await beats(async () => (await report())?.noPush === 'peer', 'it says so');
    expect(await report()).toMatchObject({ pushSlots: 0 });
    expect(logged.filter((line) => line.includes('another `peer.url`'))).toHaveLength(1);
    await announceOwner(redis, fleet, { peer: peerDigest('embedded') });
    await beats(async () => ((await report())?.pushSlots ?? 0) > 0, 'it takes batches');
    expect((await report())?.noPush).toBeUndefined();
    await announceOwner(redis, fleet, { peer: peerDigest('http://other.example/') });
    await beats(async () => (await report())?.noPush === 'peer', 'it says so again');
    await announceOwner(redis, fleet);
    await beats(async () => (await report())?.noPush === undefined, 'pushes are not shared');
  });

  it('does a job that it took when it became idle for another', async () => {
    const { beats, drop, fleet, folder, isIdleFor, isWorking, ownerOf, readings, redis, worker } =
      await open();
    const owner = await announceOwner(redis, fleet, { folders: ['inbox'] });
    const job = drop('a.pdf');
    worker.start();
    await beats(isWorking, 'it works');
    const queue = await ownerOf(owner);
    const ended = queue.run(job);
    await until(() => readings.length === 1, 'it reads');
    rmSync(join(folder, 'a.pdf'));
    await beats(isIdleFor('folders'), 'it is idle');
    readings[0]?.end(textOf('read before'));
    expect(await ended).toMatchObject({ value: { kind: 'read' } });
    // What comes now stays in the queue, or comes back.
    let later: unknown;
    void queue.run(job).then((end) => {
      later = end;
    });
    drop('a.pdf');
    await beats(() => readings.length === 2 || later !== undefined, 'the job was taken');
    if (later !== undefined)
      expect(later).toEqual({ kind: 'done', value: { kind: 'notHere', why: 'idle' } });
  });

  it('knows a new owner at its first job, and ends what it read for the old one', async () => {
    const { beats, drop, fleet, isWorking, ownerOf, readers, readings, redis, worker } =
      await open();
    const old = await announceOwner(redis, fleet);
    worker.start();
    await beats(isWorking, 'it works');
    const oldQueue = await ownerOf(old);
    const oldEnd = oldQueue.run(drop('a.pdf'));
    await until(() => readings.length === 1, 'it reads');
    const owner = await announceOwner(redis, fleet);
    const ended = (await ownerOf(owner)).run(drop('b.pdf'));
    expect(await oldEnd).toEqual({ kind: 'done', value: { kind: 'notHere', why: 'epoch' } });
    expect(readers.restarts).toBe(1);
    await until(() => readings.length === 1, 'it reads');
    readings[0]?.end(textOf('b'));
    expect(await ended).toMatchObject({ value: { kind: 'read' } });
    // The old owner would get nothing.
    expect(await oldQueue.run(drop('a.pdf'))).toMatchObject({
      value: { why: 'epoch' },
    });
  });

  it('gives its jobs back at once when it stops, and leaves the rest in the queue', async () => {
    const { atWork, drop, readings, report, worker } = await open();
    const queue = await atWork();
    const ends = [queue.run(drop('a.pdf')), queue.run(drop('b.pdf'))];
    await until(() => readings.length === 2, 'it reads two');
    void queue.run(drop('c.pdf'));
    await until(async () => (await queue.backlog(0)).waiting === 1, 'one waits');
    const stopped = worker.stop();
    const back = { kind: 'done', value: { kind: 'notHere', why: 'stopping' } };
    expect(await Promise.all(ends)).toEqual([back, back]);
    await stopped;
    expect((await queue.backlog(0)).waiting).toBe(1);
    expect(await report()).toMatchObject({ idle: { reason: 'stopping' } });
  });

  it('says why Redis cannot be used, goes on when it can, and stops without it', async () => {
    const own = await startRedis();
    const { beats, fleet, logged, redis, worker } = await open({ at: own });
    await own.kill();
    worker.start();
    await beats(() => logged.length > 0, 'it says so');
    expect(logged[0]).toMatch(/^warn: (No Redis listens at|The connection to Redis at) unix:/);
    await own.start();
    await announceOwner(redis, fleet);
    await beats(() => logged.includes('info: Redis answers again'), 'it says so');
    expect(logged.slice(-3)).toEqual([
      'info: helps elsewhere, process 7',
      'info: takes jobs',
      'info: Redis answers again',
    ]);
    await own.kill();
    await worker.stop();
  });

  it('returns a text that is too large for Redis to the owner', async () => {
    const { beats, drop, fleet, isWorking, ownerOf, readings, redis, worker } = await open();
    const owner = await announceOwner(redis, fleet);
    worker.start();
    await beats(isWorking, 'it works');
    const ended = (await ownerOf(owner)).run(drop('a.pdf'));
    await until(() => readings.length === 1, 'it reads');
    let seed = 'x';
    let noise = '';
    while (noise.length < 3 * 2 ** 20) {
      seed = createHash('sha256').update(seed).digest('base64');
      noise += seed;
    }
    readings[0]?.end(textOf(noise));
    expect(await ended).toEqual({ kind: 'done', value: { kind: 'notHere', why: 'too large' } });
  });
});
