import type { Redis } from 'ioredis';
import type { Clock } from '../lib/clock.js';
import type { Keys } from './protocol.js';

/**
 * A permit is usually used within this time, in ms. One that is older when it arrives is not used,
 * and the next is asked for with twice the time, which delays all later ones.
 */
const FRESH_MS = 50;
const LONGEST_FRESH_MS = 800;
/** How much too early a push may be, so that late timers do not lower the rate, in ms. */
const TOLERANCE_MS = 50;
/** The clock counts whole milliseconds. */
const ROUNDING_MS = 2;
/** The longest wait for a permit, in ms: as long as an order may wait. */
export const LONGEST_WAIT_MS = 15_000;
/** Rates from this one on are unlimited. In requests per second. */
const UNLIMITED_RATE = 10_000;

/**
 * Grants a permit if it is time, and sets the time of the next one. All times are by the clock of
 * Redis, in µs.
 *
 * If the time of the next one is lost (FLUSHALL, a restart without persistence), nobody knows which
 * permits were granted lately. The next one is granted when all of them are used, and out of the
 * window over which the rate is measured. The same holds if the clock of Redis was set back.
 *
 * KEYS: next push, and perhaps the fence of an order. ARGV: interval, tolerance, time to use the
 * permit beyond the usual one, pause after a loss. Returns 0 for a permit, the time to wait, or -1
 * if the fence is down.
 */
const TAKE = `
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 0 then return -1 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, tolerance, extra, pause = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local at = tonumber(redis.call('GET', KEYS[1]))
if not at or at > now + interval + extra + pause then
  at = now + pause
  redis.call('SET', KEYS[1], string.format('%.0f', at))
end
if now < at - tolerance then return math.ceil(at - tolerance - now) end
redis.call('SET', KEYS[1], string.format('%.0f', math.max(now, at) + interval + extra))
return 0`;

/** The reason why there is no permit. The request must not leave. */
export class NoPermit extends Error {}

/**
 * Returns the least average time between two pushes, in ms, with which no window has more than the
 * rate allows. The window is a second, or for a rate below 1 the time of one push.
 *
 * With an interval T, a tolerance t and use within v, a window W has up to `(W + t + v) / T + 1`
 * pushes. That is why T is longer than the rate says, by a tenth at most.
 */
export function intervalOf(requestsPerSecond: number): number {
  const most = Math.max(1, Math.floor(requestsPerSecond));
  return (windowOf(requestsPerSecond) + TOLERANCE_MS + FRESH_MS + ROUNDING_MS) / most;
}

function windowOf(requestsPerSecond: number): number {
  return (1_000 * Math.max(1, Math.floor(requestsPerSecond))) / requestsPerSecond;
}

/** Whether there is a limit at all. */
function isLimited(requestsPerSecond: number): boolean {
  return requestsPerSecond < UNLIMITED_RATE;
}

interface PermitsDeps {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly clock: Clock;
}

/**
 * The rate of all pushes of all machines: a leaky bucket (GCRA) in Redis. Each push takes a permit
 * right before its first byte leaves, and uses it at once.
 */
export class Permits {
  constructor(private readonly deps: PermitsDeps) {}

  /**
   * Resolves when a push may leave, which it does at once.
   *
   * @param order the order of the owner that a worker does; a permit for another one is refused
   * @throws NoPermit if the order is too old, or no permit came in time; Error if Redis does not
   *   answer
   */
  async take(requestsPerSecond: number, order?: string): Promise<void> {
    const { clock } = this.deps;
    const began = clock.now();
    for (let freshMs = FRESH_MS; ; ) {
      const askedAt = clock.now();
      const waitMs = await this.#ask(requestsPerSecond, freshMs, order);
      if (waitMs < 0) throw new NoPermit('the order is too old');
      if (waitMs > 0) await clock.sleep(waitMs);
      else if (!isLimited(requestsPerSecond) || clock.now() - askedAt < freshMs) return;
      else if (freshMs < LONGEST_FRESH_MS) freshMs *= 2;
      if (clock.now() - began > LONGEST_WAIT_MS) throw new NoPermit('no permit came in time');
    }
  }

  /** @returns the time to wait, in ms; 0 for a permit; a negative number if the fence is down */
  async #ask(requestsPerSecond: number, freshMs: number, order?: string): Promise<number> {
    const { keys, redis } = this.deps;
    const interval = isLimited(requestsPerSecond) ? intervalOf(requestsPerSecond) : 0;
    const pause = interval === 0 ? 0 : windowOf(requestsPerSecond) + LONGEST_FRESH_MS;
    const micros = [interval, TOLERANCE_MS, freshMs - FRESH_MS, pause].map((ms) =>
      Math.ceil(ms * 1_000),
    );
    const fence = order === undefined ? [] : [keys.fence(order)];
    const names = [keys.nextPush, ...fence];
    return Number(await redis.eval(TAKE, names.length, ...names, ...micros)) / 1_000;
  }

  /** Forgets the permits that were granted, so that the next one comes after all of them. */
  async forget(): Promise<void> {
    await this.deps.redis.del(this.deps.keys.nextPush);
  }
}

/**
 * The permits of the owner.
 *
 * - *Shared*: each comes from Redis.
 * - *Local*, the initial mode, entered when Redis does not answer: the owner keeps the same rate by
 *   itself. It begins when the workers cannot use a permit any more.
 *
 * The beat of the owner enters *shared* again.
 */
export class OwnerPermits {
  readonly #permits: Permits;
  readonly #clock: Clock;
  #isShared = false;
  /** The earliest local push. */
  #nextAt: number;
  #hasPushed = false;

  /** @param localFrom the earliest push without Redis, by the clock */
  constructor(deps: PermitsDeps, localFrom: number) {
    this.#permits = new Permits(deps);
    this.#clock = deps.clock;
    this.#nextAt = localFrom;
  }

  /** Whether permits come from Redis. */
  get isShared(): boolean {
    return this.#isShared;
  }

  /** Called when Redis answers. */
  async share(): Promise<void> {
    if (this.#isShared) return;
    if (this.#hasPushed) await this.#permits.forget();
    this.#hasPushed = false;
    this.#isShared = true;
  }

  /**
   * Resolves when a push may leave, which it does at once.
   *
   * @param awayFrom returns when the workers cannot get a permit any more, should Redis be away
   * @throws NoPermit if no permit came in time
   */
  async take(requestsPerSecond: number, awayFrom: () => number): Promise<void> {
    if (!isLimited(requestsPerSecond)) return;
    if (this.#isShared)
      try {
        return await this.#permits.take(requestsPerSecond);
      } catch (error) {
        if (error instanceof NoPermit) throw error;
        this.#leave(awayFrom(), requestsPerSecond);
      }
    const began = this.#clock.now();
    while (!this.#isShared && this.#clock.now() < this.#nextAt) {
      if (this.#clock.now() - began > LONGEST_WAIT_MS) throw new NoPermit('it is not time yet');
      await this.#clock.sleep(Math.min(1_000, this.#nextAt - this.#clock.now()));
    }
    if (this.#isShared) return await this.take(requestsPerSecond, awayFrom);
    this.#hasPushed = true;
    this.#nextAt = this.#clock.now() + intervalOf(requestsPerSecond);
  }

  /** @param from when the workers cannot get a permit any more */
  #leave(from: number, requestsPerSecond: number): void {
    if (!this.#isShared) return;
    this.#isShared = false;
    const used = Math.max(this.#clock.now(), from) + LONGEST_FRESH_MS;
    this.#nextAt = used + windowOf(requestsPerSecond);
  }
}
