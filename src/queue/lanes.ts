import PQueue from 'p-queue';
import { HealthCheck, type HealthOptions } from '../lib/health.js';
import type { Lane, LaneLimits } from './options.js';

export interface LaneStatus {
  readonly started: number;
  /** Requests that ended with an error. Aborted requests are not counted. */
  readonly failed: number;
  readonly running: number;
  readonly waiting: number;
  /** Median of the last hundred answers, in ms. */
  readonly p50LatencyMs?: number | undefined;
}

/**
 * A request. It is *waiting* in its lane until it starts or is aborted, then *running* until its
 * work ends.
 */
export interface Request {
  /** Called by p-queue to start the request. Settles the promise of `run` when the work ends. */
  readonly perform: () => Promise<void>;
  readonly reject: (reason: unknown) => void;
  /**
   * Removes the request from the queue, or aborts its work. Set only if the caller passed a signal,
   * because each controller costs time.
   */
  readonly ending: AbortController | undefined;
}

/**
 * One lane of the request queue, with its limits and statistics. p-queue keeps its order and
 * concurrency. RequestQueue decides when it may start requests.
 */
export class LaneQueue {
  readonly health: HealthCheck;
  /** In the order in which p-queue starts them. */
  readonly waiting = new Set<Request>();
  /** Oldest first. */
  readonly running = new Set<Request>();
  readonly latencies: number[] = [];
  readonly rate = new RateLimit();
  readonly queue = new PQueue({ autoStart: false });
  started = 0;
  failed = 0;

  /**
   * @param adaptive the adaptive concurrency limit, in lanes that have one
   * @param onChange called when a request was added or a slot became free
   */
  constructor(
    readonly name: Lane,
    readonly adaptive: ConcurrencyLimit | undefined,
    private readonly onChange: () => void,
    health: HealthOptions,
  ) {
    this.health = new HealthCheck(
      `request ${name}`,
      `no ${name} request starts or ends in time`,
      health,
    );
    this.queue.on('add', onChange).on('next', onChange);
  }

  /** Maximum number of requests that run at a time. */
  get slots(): number {
    return this.adaptive?.limit ?? this.queue.concurrency;
  }

  /**
   * Number of requests that may still be added: as many may wait as can start together, and only
   * one while the rate limit is exhausted.
   */
  room(now: number): number {
    return (this.rate.nextAt > now ? 1 : this.slots) - this.waiting.size;
  }

  add(request: Request): void {
    const { ending, perform, reject } = request;
    this.waiting.add(request);
    this.queue.add(perform, { signal: ending?.signal }).catch((reason: unknown) => {
      if (!this.waiting.delete(request)) return;
      reject(reason);
      this.onChange();
    });
  }

  /** Applies new limits. */
  limit({ concurrency, requestsPerSecond }: LaneLimits): void {
    this.adaptive?.setMax(concurrency);
    this.queue.concurrency = concurrency;
    this.rate.limit(requestsPerSecond);
  }

  status(): LaneStatus {
    const { failed, latencies, running, started, waiting } = this;
    const p50LatencyMs = latencies.toSorted((a, b) => a - b)[latencies.length >> 1];
    return { started, failed, running: running.size, waiting: waiting.size, p50LatencyMs };
  }
}

/** Rates from this one on are unlimited. In requests per second. */
const UNLIMITED_RATE = 10_000;
/**
 * Above this rate, requests start in groups: this many groups per second. Timers fire a millisecond
 * late, so one start per timer would turn a rate of 1,000 into 500.
 */
const GROUPS_PER_SECOND = 20;
/**
 * The clock counts whole milliseconds, so two times may be closer than it shows by this much, in
 * ms.
 */
const CLOCK_ROUNDING_MS = 1;

/**
 * Rate limiter of a lane: two sliding windows over the starts.
 *
 * A window of one second never has more starts than the rate allows. A window of a twentieth of a
 * second never has more than one group, which spreads the starts evenly. Idle time is not made up
 * for.
 *
 * All times come from one monotonic clock, so setting the wall clock changes nothing.
 */
class RateLimit {
  /** Times of the latest starts, oldest first: at least as many as one second allows. */
  readonly #starts: number[] = [];
  #perSecond = Number.POSITIVE_INFINITY;

  /** Sets the rate, in requests per second. Earlier starts still count. */
  limit(perSecond: number): void {
    this.#perSecond = perSecond;
  }

  /** Earliest start of the next request, in ms; in the past if it may start at once. */
  get nextAt(): number {
    if (!this.#isLimited) return Number.NEGATIVE_INFINITY;
    return Math.max(
      this.#endOfWindow(this.#groupStarts),
      this.#endOfWindow(this.#windowStarts) + CLOCK_ROUNDING_MS,
    );
  }

  started(now: number): void {
    if (!this.#isLimited) return;
    this.#starts.push(now);
    const excess = this.#starts.length - this.#windowStarts;
    // Removed in bulk: removing one at a time would move all others each time.
    if (excess > this.#windowStarts) this.#starts.splice(0, excess);
  }

  get #isLimited(): boolean {
    return this.#perSecond < UNLIMITED_RATE;
  }

  /** Starts per second. At a rate below 1, it is one start in a longer window. */
  get #windowStarts(): number {
    return Math.max(1, Math.floor(this.#perSecond));
  }

  get #groupStarts(): number {
    return Math.max(1, Math.floor(this.#perSecond / GROUPS_PER_SECOND));
  }

  /** Returns when a window with this many starts has room for another one. */
  #endOfWindow(starts: number): number {
    const first = this.#starts.at(-starts);
    return first === undefined
      ? Number.NEGATIVE_INFINITY
      : first + (1_000 * starts) / this.#perSecond;
  }
}

/** Smoothing factor of the latency: it follows about the last five answers. */
const SMOOTHING = 0.2;
/** Latency is slow above this multiple of its smoothed minimum … */
const SLOW_FACTOR = 3;
/** … plus this many ms, so that the noise of a nearby peer does not count. */
const SLOW_SLACK_MS = 100;
const SLOW_CUT = 0.7;
const REFUSAL_CUT = 0.5;
/**
 * Lowest limit for a slow peer: it works on the second request while the first is answered. Only
 * refusals reduce the limit to one.
 */
const MIN_WHEN_SLOW = 2;

/**
 * Adaptive concurrency limit: how many requests of a lane the peer can handle at a time, from 1 to
 * `max`.
 *
 * - *Rising*, at the start and after an outage (`restart`): from 1 up, by one with each answer.
 * - *Steady*, from the first cut on: by one each time that all slots have been answered.
 *
 * The limit rises only while all slots are in use. It is *cut* to 0.7 (not below two) when latency
 * is well above its smoothed minimum, and to 0.5 for a refusal. Requests that were running at a cut
 * cause no further cut, because they say nothing about the new limit.
 *
 * At two requests at a time or fewer, latency is the peer's own. Only there may the learned minimum
 * rise. Bodies that grow a hundredfold then cost one dip and not the speed of the day, and a slow
 * rise of latency is not taken for normal.
 */
export class ConcurrencyLimit {
  #limit = 1;
  #max = 1;
  #isRising = true;
  #cutAt = Number.NEGATIVE_INFINITY;
  /** Smoothed minimum of the latency, in ms. */
  #minimumMs: number | undefined;
  /** Smoothed latency since the last cut, in ms. */
  #recentMs: number | undefined;

  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** Sets the maximum, to which the limit may rise. */
  setMax(max: number): void {
    this.#max = max;
    this.#limit = Math.min(this.#limit, max);
  }

  /**
   * Called when a request that started at `startedAt` was answered. `isFull` says whether all slots
   * were in use.
   */
  answered(startedAt: number, now: number, isFull: boolean): void {
    if (this.#isSlow(now - startedAt)) this.#cut(SLOW_CUT, MIN_WHEN_SLOW, startedAt, now);
    else if (isFull)
      this.#limit = Math.min(this.#max, this.#limit + (this.#isRising ? 1 : 1 / this.#limit));
  }

  /** Called when a request that started at `startedAt` was refused, or not answered at all. */
  refused(startedAt: number, now: number): void {
    this.#cut(REFUSAL_CUT, 1, startedAt, now);
  }

  /** Called after an outage. The limit rises from one again. */
  restart(): void {
    this.#limit = 1;
    this.#isRising = true;
  }

  #isSlow(ms: number): boolean {
    const minimumMs = this.#minimumMs ?? ms;
    const isMinimum = ms < minimumMs || this.limit <= MIN_WHEN_SLOW;
    this.#minimumMs = isMinimum ? smoothed(minimumMs, ms) : minimumMs;
    this.#recentMs = smoothed(this.#recentMs ?? ms, ms);
    return this.#recentMs > this.#minimumMs * SLOW_FACTOR + SLOW_SLACK_MS;
  }

  #cut(factor: number, least: number, startedAt: number, now: number): void {
    if (startedAt < this.#cutAt) return;
    this.#limit = Math.min(this.#limit, Math.max(least, this.#limit * factor));
    this.#isRising = false;
    this.#cutAt = now;
    this.#recentMs = undefined;
  }
}

function smoothed(before: number, ms: number): number {
  return before + (ms - before) * SMOOTHING;
}
