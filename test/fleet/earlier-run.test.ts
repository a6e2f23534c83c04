import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { FleetOwner } from '../../src/fleet/owner.js';
import { Keys } from '../../src/fleet/protocol.js';
import { SharedReaders } from '../../src/fleet/shared-readers.js';
import { FleetWorker } from '../../src/fleet/worker.js';
import { fileStat } from '../../src/lib/file.js';
import { silentLogger } from '../../src/lib/logger.js';
import { type DocumentOrder, type Extracted, pack, STALE } from '../../src/uplink/documents.js';
import { afterwards } from '../support/afterwards.js';
import { loggerTo } from '../support/logger.js';
import { hasRedis, type RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { sha256 } from '../support/tree.js';
import { until } from '../support/wait.js';
import { BeatClock, configWith, fleetAt, redisAt, startRedis } from './fleet.js';

const textOf = (text: string): Extracted => ({
  kind: 'extracted',
  words: 1,
  page: { bytes: Buffer.from(text), extracted: { reader: 'pdf', words: 1, ms: 1 } },
});
const DOC = { name: 'catdoc', program: '/bin/catdoc', args: ['{file}'], output: 'text' } as const;
const WITH_DOC: Programs = { ...NO_PROGRAMS, commands: { '.doc': DOC } };
const OTHER_ARGUMENTS: Programs = {
  ...NO_PROGRAMS,
  commands: { '.doc': { ...DOC, args: ['-w', '{file}'] } },
};

/** A way to a Redis that can be cut, as if the process that uses it were killed. */
async function wayTo({ socket: target }: RedisServer) {
  const path = join(temporaryDirectory(), 'way.sock');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const redis = connect(target);
    for (const [one, other] of [
      [socket, redis],
      [redis, socket],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const cut = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  afterwards('test', cut);
  return { url: `unix://${path}`, cut };
}

describe.skipIf(!hasRedis)('another run of the owner', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis('file');
  });
  afterAll(() => server.kill());

  /** A worker whose readers are the test, and a file. */
  const setUp = async (programs = NO_PROGRAMS) => {
    const folder = join(temporaryDirectory(), 'inbox');
    mkdirSync(folder);
    const fleet = fleetAt(server.url);
    const redis = redisAt(server);
    const readings: { readonly path: string; readonly end: (result: Extracted) => void }[] = [];
    const logged: string[] = [];
    const reads = { here: [] as string[], restarts: 0 };
    const endAll = () => {
      for (const { end } of readings) end(STALE);
    };
    const clock = new BeatClock();
    const worker = await FleetWorker.open({
      config: await configWith(fleet, folder),
      clock,
      log: loggerTo(logged),
      programs: { current: programs, refresh: async () => {}, isCurrent: async () => true },
      readers: {
        extractDocument: async ({ file }) =>
          await new Promise((end) => readings.push({ path: file.slice(folder.length + 1), end })),
        restart: async () => {
          reads.restarts += 1;
          endAll();
        },
        close: async () => endAll(),
      },
      pack: async (order) => pack(order),
      peerOf: () => Promise.reject(new Error('no peer is needed')),
      slots: 4,
    });
    afterwards('test', () => worker.stop());
    worker.start();
    /** Lets the worker look until something is so. */
    const beats = async (condition: () => boolean, what: string) => {
      await until(async () => {
        await clock.beat();
        return condition();
      }, what);
    };
    /** The number of runs of the owner that the worker has seen. */
    const runsSeen = () => logged.filter((line) => line.startsWith('info: helps ')).length;

    /** Opens a run of the owner, whose machine reads one document at a time. */
    const openOwner = async (url = server.url, present = programs) => {
      const owner: FleetOwner = await FleetOwner.open({ ...fleet, redis: url }, '/state', {
        clock: new BeatClock(),
        log: silentLogger,
        folders: () => ['inbox'].map((name) => ({ name, path: folder })),
        programs: { current: present },
        peerUrl: 'http://127.0.0.1:1/',
        onChange: () => readers.startWaiting(),
      });
      afterwards('test', () => owner.close());
      const { extract: jobs } = owner;
      if (jobs === undefined) throw new Error('the reading of documents is not shared');
      const readers = new SharedReaders({
        owner,
        jobs,
        log: silentLogger,
        here: async ({ item }) => {
          reads.here.push(item?.path ?? '');
          return await new Promise<Extracted>(() => {});
        },
        slotsHere: () => 1,
        slotsElsewhere: () => owner.slots,
      });
      const read = (path: string, parts: Partial<DocumentOrder> = {}) =>
        readers.extractDocument({
          file: join(folder, path),
          item: { folder: 'inbox', path },
          version: versionOf(path),
          rules: {
            encoding: 'base64',
            takesBinary: true,
            readsTextAsHtml: false,
            convertHere: [],
            showsWords: false,
          },
          wanted: 'text',
          programs: present,
          ...parts,
        });
      return { owner, read };
    };
    const drop = (path: string, content = path) => writeFileSync(join(folder, path), content);
    const versionOf = (path: string, content = path) => ({
      ...fileStat(statSync(join(folder, path))),
      sha256: sha256(Buffer.from(content)),
      encoding: 'document' as const,
    });
    /** Has a worker read documents for a first run of the owner, which is killed then. */
    const killWhileRead = async (...paths: string[]) => {
      const way = await wayTo(server);
      const first = await openOwner(way.url);
      drop('busy.pdf');
      for (const path of paths) drop(path);
      await until(async () => {
        await first.owner.refresh();
        await clock.beat();
        return first.owner.slots > 0;
      }, 'the owner counts on the worker');
      void first.read('busy.pdf');
      for (const path of paths) void first.read(path);
      await until(() => readings.length === paths.length, 'the worker reads');
      expect(reads.here).toEqual(['busy.pdf']);
      reads.here.length = 0;
      return way;
    };
    const completed = async () => await redis.zcard(`${fleet.prefix}:extract:completed`);
    return {
      beats,
      completed,
      drop,
      fleet,
      killWhileRead,
      openOwner,
      readings,
      reads,
      redis,
      runsSeen,
      versionOf,
    };
  };

  it('gets what a worker reads since before the owner was killed, and nothing is read twice', async () => {
    const { beats, killWhileRead, openOwner, readings, reads, runsSeen } = await setUp();
    (await killWhileRead('a.pdf')).cut();
    const { owner, read } = await openOwner();
    const result = read('a.pdf');
    await owner.refresh();
    await beats(() => runsSeen() === 2, 'the worker sees the new run');
    readings[0]?.end(textOf('the text'));
    expect(await result).toEqual(textOf('the text'));
    expect(reads).toEqual({ here: [], restarts: 0 });
    expect(readings.length).toBe(1);
  });

  it('gets what a worker has read while no owner was there', async () => {
    const { completed, killWhileRead, openOwner, readings, reads } = await setUp();
    (await killWhileRead('a.pdf')).cut();
    readings[0]?.end(textOf('the text'));
    await until(async () => (await completed()) === 1, 'the worker has read it');
    const { owner, read } = await openOwner();
    void owner.refresh();
    expect(await read('a.pdf')).toEqual(textOf('the text'));
    expect(reads.here).toEqual([]);
    // It is taken once: another reading of the same document is a new one.
    void read('a.pdf');
    await until(() => reads.here.length === 1, 'it is read again');
  });

  it('gets what a worker reads since before the owner was stopped', async () => {
    const { killWhileRead, openOwner, readings, reads, redis, fleet } = await setUp();
    const way = await killWhileRead('a.pdf');
    const { owner: stopping } = await openOwner(way.url);
    await stopping.refresh();
    await stopping.close();
    way.cut();
    expect(await redis.get(new Keys(fleet.prefix).owner)).toBeNull();
    const { owner, read } = await openOwner();
    const result = read('a.pdf');
    await owner.refresh();
    readings[0]?.end(textOf('the text'));
    expect(await result).toEqual(textOf('the text'));
    expect(reads).toEqual({ here: [], restarts: 0 });
  });

  it('reads a document again that is another version now, or from which it wants something else', async () => {
    const { drop, killWhileRead, openOwner, readings, reads, versionOf } = await setUp();
    (await killWhileRead('a.pdf', 'b.pdf')).cut();
    drop('a.pdf', 'other');
    const { owner, read } = await openOwner();
    void owner.refresh();
    void read('a.pdf', { version: versionOf('a.pdf', 'other') });
    await until(() => reads.here.length === 1, 'it is read');
    const words = read('b.pdf', { wanted: 'words' });
    await until(() => readings.length === 3, 'it is read, by the worker');
    for (const { end } of readings.slice(0, 2)) end(textOf('of the version before'));
    readings[2]?.end({ kind: 'extracted', words: 7 });
    expect(await words).toEqual({ kind: 'extracted', words: 7 });
    expect(reads.here).toEqual(['a.pdf']);
  });

  it('reads everything again if other programs read documents now', async () => {
    const { beats, killWhileRead, openOwner, reads, runsSeen } = await setUp();
    (await killWhileRead('a.pdf')).cut();
    const { owner, read } = await openOwner(server.url, WITH_DOC);
    void owner.refresh();
    void read('a.pdf');
    await until(() => reads.here.length === 1, 'it is read');
    await beats(() => runsSeen() === 2 && reads.restarts === 1, 'the worker ends what it reads');
  });

  it.each([
    ['other arguments', OTHER_ARGUMENTS],
    ['another version', { ...WITH_DOC, versions: { '/bin/catdoc': '2 2' } }],
  ])('reads a document again if a program has %s now', async (_, programs) => {
    const { completed, killWhileRead, openOwner, readings, reads } = await setUp(WITH_DOC);
    (await killWhileRead('a.doc')).cut();
    readings[0]?.end(textOf('by the program before'));
    await until(async () => (await completed()) === 1, 'the worker has read it');
    const { owner, read } = await openOwner(server.url, programs);
    void owner.refresh();
    void read('a.doc');
    await until(() => reads.here.length === 1, 'it is read');
  });

  it('reads a document again that a worker has refused, because an earlier run may know that', async () => {
    const { completed, killWhileRead, openOwner, readings, reads } = await setUp();
    (await killWhileRead('a.pdf', 'b.pdf')).cut();
    readings[0]?.end({
      kind: 'refused',
      failure: { code: 'DOCUMENT_ENCRYPTED', message: 'It has a password.', hint: 'Remove it.' },
    });
    readings[1]?.end(textOf('the text'));
    await until(async () => (await completed()) === 2, 'the worker has read both');
    const { owner, read } = await openOwner();
    void owner.refresh();
    void read('a.pdf');
    await until(() => reads.here.length === 1, 'it is read');
    expect(await read('b.pdf')).toEqual(textOf('the text'));
    expect(reads.here).toEqual(['a.pdf']);
  });

  it('continues what was begun two runs before, and never the jobs of strangers', async () => {
    const { beats, fleet, killWhileRead, openOwner, readings, reads, redis, runsSeen } =
      await setUp();
    (await killWhileRead('a.pdf')).cut();
    const way = await wayTo(server);
    const { owner: second } = await openOwner(way.url);
    await second.refresh();
    way.cut();
    await beats(() => runsSeen() === 2, 'the worker sees the second run');
    const active = `${fleet.prefix}:extract:active`;
    const [job = ''] = await redis.lrange(active, 0, -1);
    const { data = '' } = await redis.hgetall(`${fleet.prefix}:extract:${job}`);
    const strange = { name: 'job', data, opts: '{}', timestamp: '1' };
    await redis.hset(`${fleet.prefix}:extract:stranger-1`, strange);
    await redis.rpush(active, 'stranger-1', 'damaged-1');
    const { owner, read } = await openOwner();
    await owner.refresh();
    const result = read('a.pdf');
    await beats(() => runsSeen() === 3, 'the worker sees the third run');
    readings[0]?.end(textOf('the text'));
    expect(await result).toEqual(textOf('the text'));
    expect(reads).toEqual({ here: [], restarts: 0 });
    expect(readings.length).toBe(1);
  });
});
