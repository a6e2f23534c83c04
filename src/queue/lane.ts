import { PriorityQueue } from 'p-queue';
import { queueError } from './errors.js';
import { Latencies } from './latencies.js';
import { Pacer } from './pacer.js';

/**
 * The lanes of the door, first the one that goes first.
 *
 * - `interactive`: a person waits for it. Goes at once: past the others, a pause, and an open circuit.
 * - `confirm`: lookups of what the peer shows.
 * - `push`: documents on their way to the peer; one shared slot is always theirs.
 * - `mirror`: downloads. They may take long and wait for our own disk, so they have slots of their own, and their latency says
 *   nothing of the peer.
 * - `audit`: lookups of what was confirmed long ago.
 */
export const LANES = ['interactive', 'confirm', 'push', 'mirror', 'audit'] as const;
export type Lane = (typeof LANES)[number];

/** The lanes that share their slots; the others have as many as their concurrency says. */
export function isShared(lane: Lane): boolean {
  return lane !== 'interactive' && lane !== 'mirror';
}

export interface LaneLimits {
  /** Starts in any second, at most; more than 0, may be a fraction. From 100,000 on there is no difference. */
  readonly requestsPerSecond: number;
  /** Tasks of this lane at a time, at most; 1 or more. */
  readonly concurrency: number;
}

const FASTEST = 100_000;

/**
 * The tasks of one lane that wait, and the figures of those that ran.
 *
 * A task enters with `entering` and `tasks.enqueue`, leaves by `tasks.dequeue` (p-queue starts it) or `tasks.remove` (called
 * off). The lane *can start* one while any waits, fewer than `concurrency` run and its pacer allows.
 */
export class LaneState {
  readonly name: Lane;
  readonly concurrency: number;
  readonly tasks = new PriorityQueue();
  readonly #pacer: Pacer;
  readonly latencies = new Latencies();
  /** The ids of the tasks that run, the oldest first. */
  readonly underWay = new Set<string>();
  running = 0;
  started = 0;
  failed = 0;
  /** Since when a task waited without any of this lane being started, on the monotonic clock. */
  #waitsSince = 0;

  constructor(name: Lane, limits: LaneLimits) {
    const { requestsPerSecond, concurrency } = limits;
    if (!(requestsPerSecond > 0)) {
      throw queueError('QUEUE_OPTION', `${name}.requestsPerSecond`, 'a number above 0', requestsPerSecond);
    }
    if (!(Number.isInteger(concurrency) && concurrency >= 1)) {
      throw queueError('QUEUE_OPTION', `${name}.concurrency`, 'a whole number from 1 up', concurrency);
    }
    this.name = name;
    this.concurrency = concurrency;
    this.#pacer = new Pacer(Math.min(requestsPerSecond, FASTEST));
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
}
