import { connect, createServer, type Socket } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { Keys } from '../../src/fleet/protocol.js';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import type { ConfigParts } from '../support/config.js';
import { mostWithin } from '../support/rate.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { Site } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const RATE = 20;
const HOOK = `--import=file://${resolve(import.meta.dirname, '../support/other-port.mjs')}`;

/** A site whose daemon shares pushes, and its workers. */
async function fleetSite(push: ConfigParts['push'] = {}) {
  const server = new RedisServer(temporaryDirectory());
  afterwards('test', () => server.kill());
  await server.start();
  const site = await Site.begin();
  const fleet = { redis: server.url, share: ['push'] };
  site.configure({ fleet, push: { concurrency: 8, ...push } });
  const redis = new Redis(server.socket);
  afterwards('test', () => redis.disconnect());
  const reports = async () => {
    const keys = await redis.keys('peersync:worker:*');
    const records = keys.length === 0 ? [] : await redis.mget(keys);
    return records.flatMap((record): { idle?: unknown; done: number; orders: string[] }[] =>
      record === null ? [] : [JSON.parse(record)],
    );
  };
  /** Starts the daemon and workers, and waits until the daemon knows of these. */
  const start = async (...ways: (Way | undefined)[]) => {
    site.drop('inbox/seen.txt', 'so that workers see the folder');
    await site.start();
    let probes = 0;
    const workers = ways.map(
      (way) => new Running(['worker', '--config', site.config], { env: way?.env ?? {} }),
    );
    await until(
      async () =>
        (await reports()).filter(({ idle }) => idle === undefined).length === workers.length,
      'all workers take jobs',
    );
    await until(async () => {
      probes += 1;
      for (let i = 0; i < 6; i += 1) site.drop(`inbox/probe ${probes}/${i}.txt`);
      await sleep(500);
      return (await reports()).every(({ done }) => done > 0);
    }, 'the daemon gives batches to all workers');
    await site.allConfirmed();
    return workers;
  };
  /**
   * Returns the times of the permits for pushes that are granted from now on, in ms by the clock of
   * Redis. The peer is no measure of them: on a busy machine, pushes that left one after the other
   * arrive together.
   */
  const permits = async () => {
    const times: number[] = [];
    const monitor = await redis.monitor();
    afterwards('test', () => monitor.disconnect());
    monitor.on('monitor', (time: string, [command, key]: readonly string[]) => {
      if (/^set$/i.test(command ?? '') && key === new Keys('peersync').nextPush)
        times.push(Number(time) * 1_000);
    });
    return times;
  };
  return { permits, reports, site, start };
}

describe.skipIf(!hasRedis)('workers that push', () => {
  it('send together with the daemon no more than the rate in any second', async () => {
    const { permits, reports, site, start } = await fleetSite({
      requestsPerSecond: RATE,
      maxItems: 2,
    });
    await start(undefined, undefined, undefined);
    const doneByWorkers = async () => (await reports()).reduce((sum, { done }) => sum + done, 0);
    const [pushes, done] = [site.proxy.pushes.length, await doneByWorkers()];
    const granted = await permits();
    for (let i = 0; i < 300; i += 1) site.drop(`inbox/many/${i}.txt`, `file ${i}`);
    await site.allConfirmed();
    const pushed = site.proxy.pushes.length - pushes;
    expect(pushed).toBeGreaterThanOrEqual(150);
    // Each push has a permit of its own.
    expect(granted.length).toBeGreaterThanOrEqual(pushed);
    expect(mostWithin(granted, 1_000)).toBeLessThanOrEqual(RATE);
    await until(async () => (await doneByWorkers()) > done, 'the workers say that they helped');
    const urls = site.proxy.pushes.flatMap(({ urls }) => urls);
    expect(urls.length).toBe(new Set(urls).size);
  });

  it('are killed after the peer had their pushes, and nothing is lost or pushed twice', async () => {
    const { site, start } = await fleetSite({ maxItems: 5 });
    const way = await Way.to(site.proxy.url);
    const [worker] = await start(way);
    way.isMute = true;
    for (let i = 0; i < 60; i += 1) site.drop(`inbox/many/${i}.txt`);
    await until(() => way.hasMuted, 'the peer has answered the worker');
    await worker?.kill('SIGKILL');
    await site.allConfirmed();
    await site.expectAllInPeer();
    const urls = site.proxy.pushes.flatMap(({ urls }) => urls);
    expect(urls.length).toBe(new Set(urls).size);
  });

  it('are killed, and what they sent arrives after newer versions were confirmed, which are shown again', async () => {
    const { site, start } = await fleetSite({ maxItems: 1 });
    const way = await Way.to(site.proxy.url);
    const [worker] = await start(way);
    way.isKeeping = true;
    const files: string[] = [];
    let moreAt = 0;
    await until(() => {
      // The daemon pushes most of them itself.
      if (!way.hasKeptOne && performance.now() > moreAt) {
        for (let i = 0; i < 10; i += 1) {
          const file = `inbox/late ${files.length}.txt`;
          site.drop(file, `old words of ${file}`);
          files.push(file);
        }
        moreAt = performance.now() + 500;
      }
      return way.hasKeptOne;
    }, 'a request of the worker is on its way');
    await worker?.kill('SIGKILL');
    for (const file of files) site.drop(file, `new words of ${file}`);
    await site.allConfirmed();
    await site.expectAllInPeer();
    way.deliver();
    const isWhole = () =>
      site.expectAllInPeer().then(
        () => true,
        () => false,
      );
    await until(async () => !(await isWhole()), 'the old version has arrived');
    // The daemon looks 30 s after the push again, and if that was earlier, 3 minutes after it.
    await until(isWhole, 'the new version is shown again', 300_000);
    await site.allConfirmed();
  }, 600_000);

  it('are stopped in the middle of a push, and do not complete it when they go on', async () => {
    const { reports, site, start } = await fleetSite({ maxItems: 1 });
    const way = await Way.to(site.proxy.url);
    const [worker] = await start(way);
    way.stopsAfter = 1_000_000;
    const files: string[] = [];
    const dropBig = () => {
      const file = `inbox/big ${files.length}.txt`;
      // 13 MB, so that the buffers of the kernel do not hold all of it.
      site.drop(file, `old words of ${file} `.repeat(500_000));
      files.push(file);
    };
    for (let i = 0; i < 6; i += 1) dropBig();
    let moreAt = performance.now() + 3_000;
    await until(() => {
      // The daemon pushes some of them itself, and on a busy machine perhaps all.
      if (!way.isStopped && performance.now() > moreAt) {
        dropBig();
        moreAt += 3_000;
      }
      return way.isStopped;
    }, 'the worker is in the middle of a body');
    worker?.child.kill('SIGSTOP');
    for (const file of files) site.drop(file, `new words of ${file}`);
    await site.allConfirmed();
    const before = site.proxy.pushes.length;
    worker?.child.kill('SIGCONT');
    way.goOn();
    await until(
      async () => (await reports()).some(({ orders }) => orders.length === 0),
      'the worker has ended its orders',
    );
    await until(() => way.open === 0, 'its connections are closed');
    await site.allConfirmed();
    await site.expectAllInPeer();
    expect(site.proxy.pushes.slice(before)).toEqual([]);
  });
});

/** Whether these are the bytes of a whole request with a body. */
function isWholeRequest(bytes: Buffer): boolean {
  const text = bytes.toString('latin1');
  const length = /^content-length: (\d+)\r$/im.exec(text)?.[1];
  return length !== undefined && text.length >= text.indexOf('\r\n\r\n') + 4 + Number(length);
}

/**
 * A way to the peer that may stop in the middle of a body, give no answers, or keep requests for
 * later, as the buffers of a network may.
 */
class Way {
  isKeeping = false;
  /** Whether it has kept a whole request. */
  hasKeptOne = false;
  readonly #kept = new Map<Socket, Buffer[]>();
  isMute = false;
  hasMuted = false;
  stopsAfter = Number.POSITIVE_INFINITY;
  isStopped = false;
  open = 0;
  readonly #stopped = new Set<Socket>();
  #port = 0;

  private constructor(private readonly target: URL) {}

  static async to(target: string): Promise<Way> {
    const way = new Way(new URL(target));
    const server = createServer((socket) => way.#serve(socket, way.#connect()));
    const { hostname } = way.target;
    await new Promise<void>((resolve) => server.listen(0, hostname, resolve));
    const address = server.address();
    if (address !== null && typeof address === 'object') way.#port = address.port;
    afterwards('test', () => void server.close());
    return way;
  }

  /** Environment of a program that goes this way. It has the address of the peer as all others. */
  get env(): NodeJS.ProcessEnv {
    return { NODE_OPTIONS: HOOK, OTHER_PORT: `${this.target.port}:${this.#port}` };
  }

  goOn(): void {
    this.stopsAfter = Number.POSITIVE_INFINITY;
    for (const socket of this.#stopped) socket.resume();
  }

  /** Lets the kept requests arrive. */
  deliver(): void {
    this.isKeeping = false;
    for (const chunks of this.#kept.values()) {
      const peer = this.#connect();
      afterwards('test', () => void peer.destroy());
      peer.write(Buffer.concat(chunks));
    }
  }

  #connect(): Socket {
    return connect(Number(this.target.port), this.target.hostname);
  }

  #serve(socket: Socket, peer: Socket): void {
    let received = 0;
    this.open += 1;
    socket.on('data', (chunk) => {
      if (this.isKeeping) {
        const chunks = [...(this.#kept.get(socket) ?? []), chunk];
        this.#kept.set(socket, chunks);
        this.hasKeptOne ||= isWholeRequest(Buffer.concat(chunks));
        return;
      }
      received += chunk.length;
      peer.write(chunk);
      if (received < this.stopsAfter) return;
      this.isStopped = true;
      this.#stopped.add(socket);
      socket.pause();
    });
    socket.on('close', () => {
      this.open -= 1;
      peer.destroy();
    });
    socket.on('error', () => peer.destroy());
    peer.on('data', (chunk) => {
      if (this.isMute) this.hasMuted = true;
      else socket.write(chunk);
    });
    peer.on('close', () => socket.destroy());
    peer.on('error', () => socket.destroy());
  }
}
