import PQueue from 'p-queue';
import type { Clock, Timer } from '../lib/clock.js';
import { isShared, type Lane, type LaneLimits } from './options.js';

/** From this rate on there is no limit. */
const UNLIMITED_RATE = 10_000;
/**
 * Above this rate the starts of a lane come in groups, so many groups a second. p-queue waits with timers that fire a millisecond
 * late: with one start an interval a rate of 200 became 197, and 1,000 and 5,000 became 940; with groups 201, 1,000, 5,003.
 */
const GROUPS_PER_SECOND = 20;
/** p-queue is this much late with a start only if somebody set the clock back, in ms. */
const LATE_MS = 1000;
const LATENCIES = 101;
/** From this many shared slots on two are kept for push: while one request is answered, the peer works on the other. */
const KEEP_TWO_FROM = 3;

export interface LaneStatus {
  readonly started: number;
  /** Ended with an error; aborted ones are not counted. */
  readonly failed: number;
  readonly running: number;
  readonly waiting: number;
  /** Median of the last hundred answers, in ms. */
  readonly p50LatencyMs?: number;
}

/** How the work of a request ended. */
export type End = { readonly ok: true } | { readonly ok: false; readonly error: unknown };

/**
 * One request on its way through the queue.
 *
 * - *Waiting* in its lane. `reject` settles it.
 * - *Running*, from `work` on: `settle`, once the work is over. After `abort` the work has `abortMs` to end, then the request is
 *   given up: the caller has the reason, and the work keeps its slot until it ends.
 * - *Settled*: whatever comes later does nothing.
 */
export class QueuedRequest<out T = unknown> {
  readonly result: Promise<T>;
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #abortMs: number;
  /** Does the work; never rejects. */
  work: () => Promise<End> = async () => ({ ok: true });
  reject: (reason: unknown) => void = () => {};
  #settle = () => {};
  #timer: Timer | undefined;

  constructor(work: (signal: AbortSignal) => Promise<T>, clock: Clock, abortMs: number) {
    this.#clock = clock;
    this.#abortMs = abortMs;
    this.result = new Promise((resolve, reject) => {
      this.reject = reject;
      this.work = async () => {
        try {
          const value = await work(this.#controller.signal);
          this.#settle = () => resolve(value);
          return { ok: true };
        } catch (error) {
          this.#settle = () => reject(error);
          return { ok: false, error };
        }
      };
    });
  }

  get isAborted(): boolean {
    return this.#controller.signal.aborted;
  }

  settle(): void {
    this.#timer?.cancel();
    this.#settle();
  }

  /** Aborts running work. */
  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.#timer = this.#clock.after(this.#abortMs, () => this.reject(reason));
    this.#controller.abort(reason);
  }
}

/**
 * The p-queue of one lane, with the figures of what ran in it.
 *
 * p-queue keeps the order, the concurrency and the rate. It is *paused* except while the shared slots, the circuit and the
 * pauses let the lane start something: `offer` then lets p-queue start one request, now or as soon as the rate allows.
 */
export class LaneQueue {
  readonly name: Lane;
  readonly isShared: boolean;
  readonly #onStart: (request: QueuedRequest) => Promise<void>;
  readonly #onNext: () => void;
  #limits: LaneLimits;
  #queue: PQueue;
  /** In the order of p-queue, each with what takes it out of p-queue where its caller may abort it. */
  readonly waiting = new Map<QueuedRequest, AbortController | undefined>();
  /** Those that have a slot, the oldest first. */
  readonly running = new Set<QueuedRequest>();
  started = 0;
  failed = 0;
  readonly #latencies: number[] = [];
  /** Since when a request waited without any of this lane being started. */
  #waitsSince = 0;
  #startedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param onStart called when a request starts; resolves when its work is over
   * @param onNext called when a slot is free again
   */
  constructor(
    name: Lane,
    limits: LaneLimits,
    onStart: (request: QueuedRequest) => Promise<void>,
    onNext: () => void,
  ) {
    this.name = name;
    this.isShared = isShared(name);
    this.#onStart = onStart;
    this.#onNext = onNext;
    this.#limits = limits;
    this.#queue = this.#make();
    this.#queue.pause();
  }

  get concurrency(): number {
    return this.#limits.concurrency;
  }

  /** Whether the rate holds back what waits. */
  get isRateLimited(): boolean {
    return this.#queue.isRateLimited;
  }

  /** Whether anything waits that the concurrency lets start. */
  get hasNext(): boolean {
    return this.waiting.size > 0 && this.running.size < this.concurrency;
  }

  /** When `offer` has to be called again where p-queue has started nothing by then. */
  get lateAt(): number {
    const isOffered = this.hasNext && !this.#queue.isPaused;
    return isOffered ? this.#startedAt + intervalOf(this.#limits) + LATE_MS : Number.POSITIVE_INFINITY;
  }

  /** How long requests have been waiting since the lane was last served, in ms. */
  waitingMs(now: number): number {
    return this.waiting.size === 0 ? 0 : now - this.#waitsSince;
  }

  /** @param isRemovable whether `remove` may follow */
  add(request: QueuedRequest, isRemovable: boolean, now: number): void {
    if (this.waiting.size === 0) this.#waitsSince = now;
    this.waiting.set(request, isRemovable ? new AbortController() : undefined);
    this.#enqueue(request);
  }

  /** @returns whether it was still waiting */
  remove(request: QueuedRequest): boolean {
    const leaving = this.waiting.get(request);
    if (!this.waiting.delete(request)) return false;
    this.pause();
    leaving?.abort();
    return true;
  }

  /** Lets p-queue start one request. */
  offer(now: number): void {
    this.#queue.start();
    // p-queue counts by the wall clock. Where that was set back, it would wait until the same time comes again.
    if (now < this.lateAt || this.#queue.pending >= this.concurrency) return;
    this.#renew(now);
    this.#queue.start();
  }

  pause(): void {
    this.#queue.pause();
  }

  /** p-queue started this request. No other starts before the next `offer`. */
  begin(request: QueuedRequest, now: number): void {
    this.#queue.pause();
    this.waiting.delete(request);
    this.running.add(request);
    this.started += 1;
    this.#startedAt = now;
    this.#waitsSince = now;
  }

  answered(latencyMs: number): void {
    this.#latencies.push(latencyMs);
    if (this.#latencies.length > LATENCIES) this.#latencies.shift();
  }

  /** From now on these hold. What runs goes on, and counts. */
  limit(limits: LaneLimits, now: number): void {
    const isNewRate = limits.requestsPerSecond !== this.#limits.requestsPerSecond;
    this.#limits = limits;
    this.pause();
    if (isNewRate) this.#renew(now);
    else this.#queue.concurrency = limits.concurrency;
  }

  /** Drops what waits; p-queue forgets it without a word. */
  clear(): void {
    this.waiting.clear();
    this.#queue.clear();
  }

  status(): LaneStatus {
    const { started, failed, running, waiting } = this;
    const p50LatencyMs = this.#latencies.toSorted((a, b) => a - b)[this.#latencies.length >> 1];
    return {
      ...{ started, failed, running: running.size, waiting: waiting.size },
      ...(p50LatencyMs === undefined ? {} : { p50LatencyMs }),
    };
  }

  #make(): PQueue {
    const queue = new PQueue({ concurrency: this.concurrency, ...rateOf(this.#limits) });
    queue.on('next', this.#onNext);
    return queue;
  }

  /** Goes on with another p-queue: the rate of one cannot be changed. */
  #renew(now: number): void {
    this.#queue.clear();
    this.#queue = this.#make();
    // Counts as the last start, so that a new rate does not let two requests start together.
    if (now < this.#startedAt + intervalOf(this.#limits)) void this.#queue.add(async () => {});
    this.#queue.pause();
    for (const request of this.waiting.keys()) this.#enqueue(request);
  }

  #enqueue(request: QueuedRequest): void {
    const signal = this.waiting.get(request)?.signal;
    const start = () => this.#onStart(request);
    if (signal === undefined) void this.#queue.add(start);
    else this.#queue.add(start, { signal }).catch(() => {});
  }
}

function intervalOf({ requestsPerSecond }: LaneLimits): number {
  return (1000 * groupOf(requestsPerSecond)) / requestsPerSecond;
}

function groupOf(requestsPerSecond: number): number {
  return Math.max(1, Math.floor(requestsPerSecond / GROUPS_PER_SECOND));
}

function rateOf(limits: LaneLimits) {
  const { requestsPerSecond } = limits;
  if (requestsPerSecond >= UNLIMITED_RATE) return {};
  return { strict: true, intervalCap: groupOf(requestsPerSecond), interval: intervalOf(limits) };
}

export interface SharedSlots {
  /** Shared slots there are, and those in use. */
  readonly limit: number;
  readonly running: number;
  /** The lane that was served last. */
  readonly last: Lane | undefined;
  readonly patienceMs: number;
  readonly now: number;
}

/**
 * The lanes that may take the next shared slot, first the one that it is offered to first: the lanes in order of priority, but
 *
 * - a lane that has waited longer than `patienceMs` goes first, so that none starves;
 * - the last free slots go to push until two of it run, or one where there are fewer than three slots; where there is one
 *   slot in all, push and the others take turns.
 *
 * @param lanes those where a request may start as far as the lane is concerned, in order of priority
 */
export function turnsOf(lanes: readonly LaneQueue[], slots: SharedSlots): readonly LaneQueue[] {
  const { limit, running, last, patienceMs, now } = slots;
  const free = limit - running;
  if (free <= 0) return [];
  if (lanes.length < 2) return lanes;
  const first: LaneQueue[] = [];
  const longest = Math.max(...lanes.map((lane) => lane.waitingMs(now)));
  for (const lane of lanes) if (lane.waitingMs(now) === longest && longest > patienceMs) first.push(lane);
  const push = lanes.find(({ name }) => name === 'push');
  const kept = (limit >= KEEP_TWO_FROM ? 2 : 1) - (push?.running.size ?? 0);
  const hadItsTurn = limit === 1 && last === 'push';
  if (push !== undefined && free <= kept && !hadItsTurn) first.push(push);
  return first.length === 0 ? lanes : [...new Set([...first, ...lanes])];
}
