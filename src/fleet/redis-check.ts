import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Logger } from '../lib/logger.js';
import { Keys, MAX_WORKERS, OWNER, type Owner, WORKER, type WorkerReport } from './protocol.js';
import { type FleetConfig, RedisConnections } from './redis.js';
import { redisError } from './redis-errors.js';

/** How long a key that was written to try whether that works may stay, in ms. */
const TRIED_KEY_MS = 10_000;

/** The findings of a look at Redis. */
export interface RedisFindings {
  /** `Redis` or `Valkey`. */
  readonly program: string;
  readonly version: string;
  /** Whether the version is known to be too old. */
  readonly isOld: boolean;
  /** Must be `noeviction`: it refuses to write then, when its memory is full. */
  readonly maxmemoryPolicy: string | undefined;
  /** The owner that lives. */
  readonly owner: Owner | undefined;
  readonly workers: readonly WorkerReport[];
}

/**
 * Connects with Redis, writes and removes a key, and looks who is there.
 *
 * @throws PeersyncError if Redis is of no use; code, message and hint say why
 */
export async function checkRedis(config: FleetConfig, log: Logger): Promise<RedisFindings> {
  const redis = (await RedisConnections.of(config, log)).forOneUse();
  const errors: unknown[] = [];
  redis.on('error', (error: unknown) => errors.push(error));
  try {
    await redis.connect();
    const found = await look(redis, new Keys(config.prefix));
    // A database that is not there is an error of a connection that goes on.
    if (errors.length > 0) throw errors[0];
    return found;
  } catch (error) {
    // The connection fails with the reason, and the call with "Connection is closed".
    throw redisError(config.redis, errors[0] ?? (isClosed(error) ? undefined : error));
  } finally {
    redis.disconnect();
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && error.message === 'Connection is closed.';
}

async function look(redis: Redis, keys: Keys): Promise<RedisFindings> {
  const info = infoOf(await redis.info());
  const key = keys.tried(randomUUID());
  await redis.eval("return redis.call('SET', KEYS[1], '', 'PX', ARGV[1])", 1, key, TRIED_KEY_MS);
  await redis.del(key);
  const ids = await redis.srandmember(keys.workers, MAX_WORKERS);
  const records = ids.length === 0 ? [] : await redis.mget(ids.map((id) => keys.worker(id)));
  const isValkey = info.get('server_name') === 'valkey';
  const version = (isValkey ? info.get('valkey_version') : info.get('redis_version')) ?? '';
  return {
    program: isValkey ? 'Valkey' : 'Redis',
    version,
    isOld: !isValkey && isOlderThan62(version),
    maxmemoryPolicy: info.get('maxmemory_policy'),
    owner: parsed(OWNER, await redis.get(keys.owner)),
    workers: records.flatMap((record) => parsed(WORKER, record) ?? []),
  };
}

function infoOf(text: string): ReadonlyMap<string, string> {
  const lines = text.slice(0, 100_000).matchAll(/^(\w+):([^\r\n]{0,100})/gm);
  return new Map(Array.from(lines, ([, name = '', value = '']) => [name, value]));
}

/** `LMOVE`, `GETDEL` and others that are used came with Redis 6.2. */
function isOlderThan62(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < 6 || (major === 6 && minor < 2);
}

function parsed<T>(
  shape: { safeParse(value: unknown): { data?: T | undefined } },
  record: string | null,
): T | undefined {
  try {
    return record === null ? undefined : shape.safeParse(JSON.parse(record)).data;
  } catch {
    return undefined;
  }
}
