import PQueue from 'p-queue';
import { HealthCheck, type HealthOptions } from '../lib/health.js';
import type { ConcurrencyLimit } from './concurrency-limit.js';
import type { Lane, LaneLimits } from './options.js';
import { RateLimit } from './rate-limit.js';

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
