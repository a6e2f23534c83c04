import { Redis, type RedisOptions } from 'ioredis';
import { readCa } from '../config/ca.js';
import type { Config } from '../config/config.js';
import { resolveSecret } from '../config/secret.js';
import { parseRedisUrl } from '../config/url.js';
import { systemClock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { type RedisError, redisError } from './redis-errors.js';

export type FleetConfig = NonNullable<Config['fleet']>;

/** Time limit of a connection and of a command that does not wait for anything, in ms. */
const COMMAND_TIMEOUT_MS = 4_000;
/**
 * A connection on which an answer is awaited for so long is opened anew, in ms. The longest command
 * waits for 10 s. Without this limit, a connection to a machine that was cut off may hang for
 * minutes after that is back.
 */
const SILENCE_MS = 15_000;
/**
 * How long a connection may take to close, in ms. ioredis keeps the process alive for so long, also
 * if the connection is closed already.
 */
const CLOSE_MS = 200;
/** The first and the longest delay before another attempt to connect, in ms. */
const RECONNECT_MS = 200;
const LONGEST_RECONNECT_MS = 5_000;

/**
 * A Redis that loads its data accepts connections. ioredis would wait for minutes until it is
 * ready, without a word. Without that, each command fails at once, and says why.
 */
const SAYS_WHEN_LOADING = { enableReadyCheck: false };

/** The connections of one owner or worker to Redis. `close` ends all of them. */
export class RedisConnections {
  readonly #opened: Connection[] = [];
  #commands: Redis | undefined;
  /** Why the last attempt to connect failed; undefined after one that did not. */
  #connectError: Error | undefined;

  private constructor(
    private readonly options: RedisOptions,
    private readonly address: string,
  ) {}

  /** @throws PeersyncError if the password or the CA file cannot be read */
  static async of(
    { ca, password, redis, username }: FleetConfig,
    log: Logger,
  ): Promise<RedisConnections> {
    const address = parseRedisUrl(redis);
    if (address === undefined) throw new Error(`no address of a Redis: ${redis}`);
    const { tls, ...place } = 'path' in address ? { ...address, tls: false } : address;
    const options: RedisOptions = {
      ...place,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password: await resolveSecret(password, process.env, log) }),
      ...(tls && { tls: ca === undefined ? {} : { ca: await readCa(ca, 'fleet.ca') } }),
      connectTimeout: COMMAND_TIMEOUT_MS,
      disconnectTimeout: CLOSE_MS,
      socketTimeout: SILENCE_MS,
      keepAlive: 10_000,
      retryStrategy: (attempt) => Math.min(RECONNECT_MS * 2 ** attempt, LONGEST_RECONNECT_MS),
    };
    return new RedisConnections(options, redis);
  }

  /** Returns the connection on which every command fails soon if Redis does not answer. */
  forCommands(): Redis {
    this.#commands ??= this.#open({
      commandTimeout: COMMAND_TIMEOUT_MS,
      ...SAYS_WHEN_LOADING,
      enableOfflineQueue: false,
      maxRetriesPerRequest: null,
    });
    return this.#commands;
  }

  /** Opens a connection for commands that may wait: for something to happen, and for Redis. */
  forWaiting(): Redis {
    return this.#open({ maxRetriesPerRequest: null });
  }

  /**
   * Waits for an attempt to connect that is under way, for `COMMAND_TIMEOUT_MS` at most. One that
   * the other side ends without an error only closes.
   */
  async ready(): Promise<void> {
    const redis = this.forCommands();
    if (redis.status !== 'connecting' && redis.status !== 'connect') return;
    await new Promise<void>((resolve) => {
      const events = ['ready', 'error', 'close', 'end'];
      const settle = () => {
        limit.cancel();
        for (const event of events) redis.off(event, settle);
        resolve();
      };
      const limit = systemClock.after(COMMAND_TIMEOUT_MS, settle);
      for (const event of events) redis.once(event, settle);
    });
  }

  /** Explains why a command failed: a sentence, and what to do. */
  explain(error: unknown): Pick<RedisError, 'code' | 'hint' | 'message'> {
    // A command that had no connection does not say why there is none.
    const isReady = this.#commands?.status === 'ready';
    const why = isReady ? error : (this.#connectError ?? error);
    const { code, hint, message } = redisError(this.address, why);
    return { code, message, hint };
  }

  /**
   * Opens a connection that does not connect by itself, and ends with the first failure. Its user
   * listens for `error`.
   */
  forOneUse(): Redis {
    return this.#open({
      commandTimeout: COMMAND_TIMEOUT_MS,
      ...SAYS_WHEN_LOADING,
      enableOfflineQueue: false,
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
  }

  /** Ends all connections at once. Commands that wait for an answer fail. */
  close(): void {
    for (const redis of this.#opened) redis.disconnect();
  }

  #open(options: RedisOptions): Redis {
    const track = (redis: Connection) => {
      this.#opened.push(redis);
      // The commands fail, and their callers tell why.
      redis.on('error', (error: Error) => {
        this.#connectError = error;
      });
      redis.on('ready', () => {
        this.#connectError = undefined;
      });
    };
    const redis = new TrackedRedis({ ...this.options, ...options, replyMapping: 'legacy' }, track);
    track(redis);
    return redis;
  }
}

type Connection = Pick<Redis, 'disconnect' | 'on'>;

/** A connection whose copies are tracked: BullMQ makes copies for commands that block. */
class TrackedRedis extends Redis {
  constructor(
    options: RedisOptions & { readonly replyMapping: 'legacy' },
    private readonly track: (redis: Connection) => void,
  ) {
    super(options);
  }

  override duplicate<Override extends Partial<RedisOptions> | undefined>(override?: Override) {
    const copy = super.duplicate(override);
    this.track(copy);
    return copy;
  }
}

/** Why Redis cannot be used: a sentence, and what to do. */
export type RedisTrouble = Pick<RedisError, 'message' | 'hint'>;
