import { PriorityQueue } from 'p-queue';
import type { Lane } from './lanes.js';
import { Latencies } from './latencies.js';
import type { LaneLimits } from './limits.js';
import { Pacer } from './pacer.js';
import type { LaneStatus } from './status.js';

const FASTEST = 100_000;

function pacerOf({ requestsPerSecond }: LaneLimits, before?: Pacer): Pacer {
  return new Pacer(Math.min(requestsPerSecond, FASTEST), before);
}

/**
 * The tasks of one lane that wait, and the figures of those that ran.
 *
 * A task enters with `entering` and `tasks.enqueue`, leaves by `tasks.dequeue` (p-queue starts it) or `tasks.remove` (called
 * off). The lane *can start* one while any waits, fewer than `concurrency` run and its pacer allows.
 */
export class LaneState {
  readonly name: Lane;
  readonly tasks = new PriorityQueue();
  #limits: LaneLimits;
  #pacer: Pacer;
  readonly latencies = new Latencies();
  /** The ids of the tasks that run, the oldest first. */
  readonly underWay = new Set<string>();
  running = 0;
  started = 0;
  failed = 0;
  /** Since when a task waited without any of this lane being started, on the monotonic clock. */
  #waitsSince = 0;

  constructor(name: Lane, limits: LaneLimits) {
    this.name = name;
    this.#limits = limits;
    this.#pacer = pacerOf(limits);
  }

  get concurrency(): number {
    return this.#limits.concurrency;
  }

  /** From now on these hold; what runs goes on, and counts. To be checked before, see `checkLimits`. */
  limit(limits: LaneLimits): void {
    if (limits.requestsPerSecond !== this.#limits.requestsPerSecond)
      this.#pacer = pacerOf(limits, this.#pacer);
    this.#limits = limits;
  }

  get waiting(): number {
    return this.tasks.size;
  }

  /** Whether rate and concurrency of this lane allow a start now. */
  hasRoom(now: number): boolean {
    return this.running < this.concurrency && now >= this.freeAt;
  }

  /** When the rate allows the next start, on the monotonic clock. */
  get freeAt(): number {
    return this.#pacer.freeAt();
  }

  /** How long a task of this lane has been waiting since the lane was last served, in ms. */
  hungryFor(now: number): number {
    return this.waiting === 0 ? 0 : now - this.#waitsSince;
  }

  /** A task is about to wait. */
  entering(now: number): void {
    if (this.waiting === 0) this.#waitsSince = now;
  }

  taken(now: number): void {
    this.#pacer.take(now);
    this.#waitsSince = now;
    this.running += 1;
    this.started += 1;
  }
  status(): LaneStatus {
    const p50LatencyMs = this.latencies.median();
    const { started, failed, running, waiting } = this;
    return { started, failed, running, waiting, ...(p50LatencyMs === undefined ? {} : { p50LatencyMs }) };
  }
}
