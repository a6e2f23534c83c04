import { randomUUID } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { checkConfig } from '../../src/config/load.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { abilitiesOf } from '../../src/fleet/abilities.js';
import { buildName } from '../../src/fleet/build-name.js';
import { BEAT_MS, Keys, type Owner, type WorkerReport } from '../../src/fleet/protocol.js';
import { type FleetConfig, RedisConnections } from '../../src/fleet/redis.js';
import type { Timer } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards, type Life } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { RedisServer } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';

/** Time that goes from one beat to the next, and never on while a beat happens. */
export class BeatClock extends FakeClock {
  /** When the next beat begins; undefined while one happens. */
  #nextInMs: number | undefined;

  override after(ms: number, fn: () => void): Timer {
    // The first beat of an owner begins at once.
    if (ms === BEAT_MS || ms === 0) this.#nextInMs = ms;
    return super.after(ms, fn);
  }

  /** Lets the next beat begin, unless one happens. */
  async beat(): Promise<void> {
    const ms = this.#nextInMs;
    if (ms === undefined) return;
    this.#nextInMs = undefined;
    await this.advance(ms);
  }
}

/** Starts a Redis for one test, or for all tests of a file. */
export async function startRedis(life: Life = 'test'): Promise<RedisServer> {
  const server = new RedisServer(temporaryDirectory(life));
  await server.start();
  afterwards(life, () => server.kill());
  return server;
}

/** The section `fleet` of a configuration, with a prefix of its own. */
export function fleetAt(redis: string): FleetConfig {
  const prefix = `test-${randomUUID().slice(0, 8)}`;
  return { redis, prefix, share: ['extract'] };
}

export async function connectionsTo(config: FleetConfig): Promise<RedisConnections> {
  const connections = await RedisConnections.of(config, silentLogger);
  afterwards('test', () => connections.close());
  return connections;
}

/** A connection of the test. */
export function redisAt(server: RedisServer): Redis {
  const redis = new Redis({ path: server.socket });
  redis.on('error', () => {});
  afterwards('test', () => redis.disconnect());
  return redis;
}

/** A whole configuration with one folder. */
export async function configWith(fleet: FleetConfig, path: string) {
  const folder = { name: 'inbox', path, collection: 'inbox' };
  const config = await checkConfig({ folders: [folder] }, '/etc/peersync/config.json');
  return { ...config, fleet };
}

/** The answer of Redis to a command that it has done. */
export const OK = '+OK\r\n';

/** Returns a string as Redis answers it. */
export const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/**
 * Starts a Redis that only answers as the test says.
 *
 * @param answer returns the answer to a command as it is sent; undefined for none
 * @returns its URL
 */
export async function fakeRedis(answer: (command: string) => string | undefined): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    let unread = '';
    socket.on('data', (bytes) => {
      unread += bytes.toString('latin1');
      // An array of strings, of which the first one is the name of the command.
      for (let whole = commandOf(unread); whole !== undefined; whole = commandOf(unread)) {
        unread = unread.slice(whole.length);
        const text = answer(whole.name);
        if (text !== undefined) socket.write(text);
      }
    });
  });
  afterwards('test', () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns the first command and its length; undefined if it is not whole yet. */
function commandOf(bytes: string): { readonly name: string; readonly length: number } | undefined {
  const [head = '', count = 0] = /^\*(\d+)\r\n/.exec(bytes) ?? [];
  let at = head.length;
  let name: string | undefined;
  for (let i = 0; i < Number(count); i += 1) {
    const [size = '', length = 0] = /^\$(\d+)\r\n/.exec(bytes.slice(at)) ?? [];
    const end = at + size.length + Number(length);
    if (size === '' || bytes.length < end + 2) return undefined;
    name ??= bytes.slice(at + size.length, end).toLowerCase();
    at = end + 2;
  }
  return name === undefined ? undefined : { name, length: at };
}

const SLOTS = 3;

/** Writes the record of a worker that lives. */
export async function announceWorker(
  redis: Redis,
  { prefix }: FleetConfig,
  report: Partial<WorkerReport> = {},
): Promise<string> {
  const keys = new Keys(prefix);
  const id = randomUUID();
  const record: WorkerReport = {
    id,
    host: 'elsewhere',
    pid: 7,
    version: '1.0.0',
    build: buildName(),
    slots: SLOTS,
    active: 0,
    done: 0,
    failed: 0,
    pushSlots: 0,
    orders: [],
    seenAt: 0,
    ...report,
  };
  await redis.set(keys.worker(id), JSON.stringify(record));
  await redis.sadd(keys.workers, id);
  return keys.worker(id);
}

/** Writes the record of an owner that lives. */
export async function announceOwner(
  redis: Redis,
  { prefix }: FleetConfig,
  owner: Partial<Owner> = {},
): Promise<Owner> {
  const record: Owner = {
    epoch: randomUUID(),
    continues: [],
    instance: 'state',
    host: 'elsewhere',
    pid: 7,
    build: buildName(),
    folders: [],
    abilities: abilitiesOf(NO_PROGRAMS),
    ...owner,
  };
  await redis.set(new Keys(prefix).owner, JSON.stringify(record));
  return record;
}
