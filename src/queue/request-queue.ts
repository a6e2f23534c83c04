import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import type { Timer } from '../lib/clock.js';
import { HealthCheck } from '../lib/health.js';
import { Breaker, type CircuitStatus, type Ticket } from './breaker.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import {
  DEFAULT_POLICY,
  eachLane,
  isShared,
  LANES,
  type Lane,
  type LaneLimits,
  type Outcome,
  type QueueLimits,
  queueStopped,
  type RequestQueueOptions,
} from './options.js';

/** The wake timer waits this long at most, in ms: timers stand still while the machine is suspended. */
const LONGEST_TIMER_MS = 60_000;
/** How long one request may run, in ms, unless somebody says otherwise. */
const LONGEST_MS = 15 * 60_000;
/** Shared objects and tables stream, and may take so many times as long as anything else. */
const STREAMING = 12;
/** From this rate on there is no limit. */
const UNLIMITED_RATE = 10_000;
/**
 * Above this rate the starts of a lane come in groups, so many groups a second. p-queue waits with timers that fire a millisecond
 * late: with one start an interval a rate of 200 became 197, and 1,000 and 5,000 became 940; with groups 201, 1,000, 5,003.
 */
const GROUPS_PER_SECOND = 20;
/** p-queue counts by the wall clock. It is this much late with a start only if somebody set that clock back, in ms. */
const LATE_MS = 1_000;
/** The median latency is that of so many answers. */
const LATENCIES = 101;
/** From this many shared slots on two are kept for push: while one request is answered, the peer works on the other. */
const KEEP_TWO_FROM = 3;
/** The outcomes that an overloaded peer gives. */
const REFUSALS: ReadonlySet<Outcome['kind']> = new Set(['busy', 'failing', 'unreachable']);

/** A pause that a person asked for. In ms since the epoch. */
export interface Paused {
  readonly since: number;
  /** When it ends by itself. */
  readonly until?: number;
}

export interface LaneStatus {
  readonly started: number;
  /** Ended with an error; aborted ones are not counted. */
  readonly failed: number;
  readonly running: number;
  readonly waiting: number;
  /** Median of the last hundred answers, in ms. */
  readonly p50LatencyMs?: number | undefined;
}

/** All times are in ms since the epoch, by our clock. */
export interface QueueStatus {
  readonly circuit: CircuitStatus;
  /** Nothing but `interactive` starts before this: the peer asked to wait. */
  readonly pausedUntil?: number | undefined;
  /** A person paused the work with the peer: nothing but `interactive` starts, until then or until it is resumed. */
  readonly paused?: Paused | undefined;
  /** Shared slots: those in use, those the peer seems to bear, those configured. */
  readonly concurrency: { readonly running: number; readonly limit: number; readonly max: number };
  readonly lanes: Readonly<Record<Lane, LaneStatus>>;
}

/** How a promise is settled. */
interface Settle {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** One request: *waiting* in its lane until it starts or leaves, then *running* until its work ends. */
interface Request extends Settle {
  readonly lane: LaneQueue;
  /** What p-queue starts; settles when the work is over. */
  readonly perform: () => Promise<unknown>;
  /** Takes it out of p-queue while it waits; only where the caller has a signal, for each costs time. */
  readonly leaving: AbortController | undefined;
  /** Asks the work to end. */
  readonly ending: AbortController;
}

/** One lane with its figures. p-queue keeps its order, concurrency and rate. */
class LaneQueue {
  readonly health: HealthCheck;
  /** In the order of p-queue. */
  readonly waiting = new Set<Request>();
  readonly running = new Set<Request>();
  readonly latencies: number[] = [];
  queue: PQueue;
  started = 0;
  failed = 0;
  startedAt = Number.NEGATIVE_INFINITY;
  readonly #onNext: () => void;
  /** Resolves when what the p-queues before this one started has ended. */
  #before: Promise<unknown> = Promise.resolve();

  /** @param onNext called when p-queue may start another */
  constructor(
    readonly name: Lane,
    public limits: LaneLimits,
    longestMs: number,
    onNext: () => void,
  ) {
    this.#onNext = onNext;
    this.queue = this.#make();
    this.health = new HealthCheck(`request ${name}`, `no ${name} request ends within its time-outs`, {
      busy: () => this.running.size > 0,
      limitMs: name === 'mirror' ? longestMs * STREAMING : longestMs,
    });
  }

  /** Between two starts, or groups of starts. */
  get intervalMs(): number {
    return (1_000 * this.#group) / this.limits.requestsPerSecond;
  }

  add(request: Request): void {
    this.waiting.add(request);
    const { leaving, perform, reject, resolve } = request;
    this.queue.add(perform, leaving ? { signal: leaving.signal } : {}).then(resolve, reject);
  }

  /** From now on these hold. What runs goes on, and counts. */
  limit(limits: LaneLimits, now: number): void {
    const isSameRate = limits.requestsPerSecond === this.limits.requestsPerSecond;
    this.limits = limits;
    this.queue.pause();
    this.queue.concurrency = limits.concurrency;
    if (isSameRate) return;
    // The rate of a p-queue cannot be changed: another one goes on.
    this.queue.clear();
    this.#before = this.ended();
    this.queue = this.#make();
    // Counts as the last start, so that a new rate does not let two requests start together.
    if (now < this.startedAt + this.intervalMs) void this.queue.start().add(async () => {});
    this.queue.pause();
    for (const request of this.waiting) this.add(request);
  }

  /** Resolves when what was started up to now has ended. */
  async ended(): Promise<void> {
    await Promise.all([this.#before, this.queue.onPendingZero()]);
  }

  status(): LaneStatus {
    const { failed, latencies, running, started, waiting } = this;
    const p50LatencyMs = latencies.toSorted((a, b) => a - b)[latencies.length >> 1];
    return { started, failed, running: running.size, waiting: waiting.size, p50LatencyMs };
  }

  get #group(): number {
    return Math.max(1, Math.floor(this.limits.requestsPerSecond / GROUPS_PER_SECOND));
  }

  #make(): PQueue {
    const { concurrency, requestsPerSecond } = this.limits;
    const rate = { strict: true, intervalCap: this.#group, interval: this.intervalMs };
    const isLimited = requestsPerSecond < UNLIMITED_RATE;
    return new PQueue({ autoStart: false, concurrency, ...(isLimited ? rate : {}) }).on('next', this.#onNext);
  }
}

/**
 * Every request to the peer passes through this queue.
 *
 * A request enters by `run` and waits in its lane, a p-queue that keeps its order, concurrency and rate. A p-queue is paused whenever
 * one of these holds its lane back: the shared slots that the peer seems to bear, the circuit breaker, the pause that the
 * peer asked for (`Retry-After`), and the pause that a person asked for. The start and the end of each request update these.
 *
 * - *Serving*: as above.
 * - *Paused* by a person, entered by `pause`: running requests may end, and only `interactive` starts. `resume` or its
 *   `until` ends it.
 * - *Stopping*, entered by `stop`: waiting requests are rejected with QUEUE_STOPPED and nothing more starts. Running requests may
 *   end within the grace, and are then aborted.
 *
 * Only `confirm` and `push` share their slots; `interactive` passes pauses and the open circuit. Nobody has to keep a
 * backlog here: a producer awaits `ready` before each `run`.
 */
export class RequestQueue {
  /** That requests which may start do start, and that running ones end. */
  readonly health: readonly HealthCheck[];
  readonly #starts: HealthCheck;
  readonly #options: RequestQueueOptions;
  readonly #breaker: Breaker;
  readonly #limit: ConcurrencyLimit;
  readonly #lanes: Readonly<Record<Lane, LaneQueue>>;
  /** The same, in order of priority. */
  readonly #byPriority: readonly LaneQueue[];
  readonly #producers = eachLane(() => new Set<Settle>());
  #maxConcurrency: number;
  #lastShared: Lane | undefined;
  #paused: Paused | undefined;
  #isFilling = false;
  #isStopping = false;
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(options: RequestQueueOptions) {
    const {
      lanes,
      longestMs = LONGEST_MS,
      maxConcurrency,
      clock,
      log,
      peerName,
      random = Math.random,
    } = options;
    this.#options = options;
    const policy = { ...DEFAULT_POLICY, ...options.policy };
    this.#breaker = new Breaker({ policy, log, peerName, random }, clock.now());
    this.#limit = new ConcurrencyLimit(maxConcurrency, policy);
    this.#maxConcurrency = maxConcurrency;
    this.#lanes = eachLane((name) => new LaneQueue(name, lanes[name], longestMs, () => this.#update()));
    this.#byPriority = LANES.map((name) => this.#lanes[name]);
    this.#starts = new HealthCheck('queue', 'requests that may start wait in the queue', {
      busy: () => LANES.some((name) => this.mayStart(name)),
    });
    this.health = [this.#starts, ...this.#byPriority.map(({ health }) => health)];
  }

  /**
   * Runs `work` when its lane's turn comes; settles as it does.
   *
   * `work` gets a signal that aborts with the caller's, or at the end of the grace when the queue stops, and has to end soon after.
   *
   * @throws QUEUE_STOPPED when the queue stops first; the signal's reason when it aborts first
   */
  run<T>(
    name: Lane,
    work: (signal: AbortSignal) => Promise<T>,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<T> {
    if (this.#isStopping) return Promise.reject(queueStopped());
    if (signal?.aborted) return Promise.reject(signal.reason);
    const lane = this.#lanes[name];
    let onAbort = () => {};
    const promise = new Promise<unknown>((resolve, reject) => {
      const perform = () => this.#perform(request, () => work(request.ending.signal));
      const ending = new AbortController();
      const leaving = signal && new AbortController();
      const request: Request = { lane, perform, leaving, ending, resolve, reject };
      onAbort = () => this.#end(request, signal?.reason);
      lane.add(request);
    });
    if (signal) {
      // One signal may well end every request there is.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', onAbort);
      const onSettled = () => signal.removeEventListener('abort', onAbort);
      promise.then(onSettled, onSettled);
    }
    this.#update();
    return promise as Promise<T>;
  }

  /**
   * Resolves when a request of this lane would start at once, or as the next of its lane: not while the circuit or a pause
   * holds the lane back, nor while as many wait already as could start together.
   *
   * Meant for one producer a lane that awaits it before each `run`; then no more than that many ever wait.
   *
   * @throws QUEUE_STOPPED when the queue stops; the signal's reason when it aborts first
   */
  async ready(name: Lane, signal?: AbortSignal): Promise<void> {
    if (this.#isStopping) throw queueStopped();
    signal?.throwIfAborted();
    const producers = this.#producers[name];
    if (producers.size === 0 && this.hasRoom(name)) return;
    let onAbort = () => {};
    const released = new Promise<unknown>((resolve, reject) => {
      const producer = { resolve, reject };
      onAbort = () => {
        producers.delete(producer);
        reject(signal?.reason);
      };
      producers.add(producer);
    });
    signal?.addEventListener('abort', onAbort);
    await released.finally(() => signal?.removeEventListener('abort', onAbort));
  }

  /** Whether `ready` would let a producer of this lane go on at this moment. */
  hasRoom(name: Lane): boolean {
    return !this.#isStopping && this.#room(this.#lanes[name], this.#options.clock.now()) > 0;
  }

  /** Whether anything runs or waits in this lane. */
  isBusy(name: Lane): boolean {
    const { running, waiting } = this.#lanes[name];
    return running.size + waiting.size > 0;
  }

  /** Whether a request waits in this lane that nothing holds back at this moment. */
  mayStart(name: Lane): boolean {
    const now = this.#options.clock.now();
    const lane = this.#lanes[name];
    const isOnTime = now <= lane.startedAt + lane.intervalMs + LATE_MS;
    return !this.#isStopping && !(lane.queue.isRateLimited && isOnTime) && this.#mayRun(lane, now);
  }

  /** For how long the peer has been answering, in ms; 0 while it is in trouble. */
  get answeringForMs(): number {
    return this.#breaker.answeringForMs(this.#options.clock.now());
  }

  status(): QueueStatus {
    const now = this.#options.clock.now();
    return {
      circuit: this.#breaker.status(now),
      pausedUntil: this.#breaker.pausedUntil > now ? this.#breaker.pausedUntil : undefined,
      paused: this.#paused,
      concurrency: { running: this.#sharedInUse, limit: this.#limit.limit, max: this.#maxConcurrency },
      lanes: eachLane((name) => this.#lanes[name].status()),
    };
  }

  /** Lets the next probe start at once, for a person who mended something; a pause that the peer asked for stands. */
  tryNow(): void {
    this.#breaker.endWait(this.#options.clock.now());
    this.#update();
  }

  /** A person pauses the work: nothing but `interactive` starts any more. Called again, it replaces the pause before. */
  pause(paused: Paused): void {
    this.#paused = paused;
    this.#update();
  }

  /** Ends the pause. */
  resume(): void {
    if (this.#paused === undefined) return;
    this.#paused = undefined;
    this.#options.log.info({ event: 'resumed' }, 'the pause is over: the work with the peer goes on');
    this.#update();
  }

  /** From now on other limits hold. Running requests go on and count, also where they are more than a lower limit allows. */
  limit({ lanes, maxConcurrency }: QueueLimits): void {
    const now = this.#options.clock.now();
    for (const lane of this.#byPriority) lane.limit(lanes[lane.name], now);
    this.#maxConcurrency = maxConcurrency;
    this.#limit.max = maxConcurrency;
    this.#update();
  }

  /**
   * Ends all requests; resolves when every one is settled. Called again with a shorter grace, that one holds.
   *
   * @param graceMs how long running requests may go on before they are aborted
   */
  async stop(graceMs: number): Promise<void> {
    const reason = queueStopped();
    this.#isStopping = true;
    this.#timer?.cancel();
    for (const { name, queue, waiting } of this.#byPriority) {
      for (const { reject } of [...this.#producers[name], ...waiting]) reject(reason);
      waiting.clear();
      queue.clear();
    }
    const ended = Promise.all(this.#byPriority.map((lane) => lane.ended()));
    const over = new AbortController();
    if (graceMs > 0) await Promise.race([ended, this.#options.clock.sleep(graceMs, over.signal)]);
    over.abort();
    for (const { running } of this.#byPriority) for (const request of running) this.#end(request, reason);
    await ended;
  }

  /** Takes a request out that waits, or asks its work to end. */
  #end(request: Request, reason: unknown): void {
    const { ending, lane, leaving, reject } = request;
    if (!lane.waiting.delete(request)) {
      ending.abort(reason);
      return;
    }
    leaving?.abort(reason);
    reject(reason);
    this.#update();
  }

  /** p-queue starts this request. */
  async #perform<T>(request: Request, work: () => Promise<T>): Promise<T> {
    const { clock, classify } = this.#options;
    const { ending, lane } = request;
    const now = clock.now();
    lane.waiting.delete(request);
    lane.running.add(request);
    lane.started += 1;
    lane.startedAt = now;
    this.#starts.progress();
    if (isShared(lane.name)) this.#lastShared = lane.name;
    const ticket = this.#breaker.started(lane.name, now);
    // Before its work, which may look at the queue.
    this.#update();
    try {
      const value = await work();
      this.#ended(request, ticket, { kind: 'answered' });
      return value;
    } catch (error) {
      const outcome: Outcome = ending.signal.aborted ? { kind: 'aborted' } : classify(error);
      if (outcome.kind !== 'aborted') lane.failed += 1;
      this.#ended(request, ticket, outcome, error);
      throw error;
    }
  }

  #ended(request: Request, ticket: Ticket, outcome: Outcome, error?: unknown): void {
    const now = this.#options.clock.now();
    const { lane } = request;
    const wasFull = this.#sharedInUse >= this.#limit.limit;
    const [oldest] = lane.running;
    // Others that end say nothing of one that hangs.
    if (request === oldest) lane.health.progress();
    lane.running.delete(request);
    if (outcome.kind === 'answered') {
      lane.latencies.push(now - ticket.startedAt);
      if (lane.latencies.length > LATENCIES) lane.latencies.shift();
    }
    const end = { ticket, outcome, error, now };
    if (this.#breaker.ended(end)) this.#limit.restart();
    if (outcome.kind === 'answered' && isShared(lane.name))
      this.#limit.answered(lane.name, ticket.startedAt, now, wasFull);
    if (REFUSALS.has(outcome.kind) && lane.name !== 'interactive') this.#limit.refused(ticket.startedAt, now);
    // What may start now starts when p-queue says that the slot is free.
    this.#hold(now);
  }

  get #sharedInUse(): number {
    return this.#lanes.confirm.running.size + this.#lanes.push.running.size;
  }

  /** From when on nothing but its own limits holds a lane back; infinity until somebody or something decides that. */
  #admitsFrom(lane: Lane): number {
    if (lane === 'interactive') return Number.NEGATIVE_INFINITY;
    if (this.#paused !== undefined) return Number.POSITIVE_INFINITY;
    return Math.max(this.#breaker.admitsFrom(lane), this.#breaker.pausedUntil);
  }

  /** How many more requests may come to wait in a lane: as many as could start together, one while its rate is spent. */
  #room({ limits, name, queue, waiting }: LaneQueue, now: number): number {
    if (this.#admitsFrom(name) > now) return 0;
    const slots = isShared(name) ? Math.min(limits.concurrency, this.#limit.limit) : limits.concurrency;
    return (queue.isRateLimited ? 1 : slots) - waiting.size;
  }

  /**
   * How many requests of a lane may run now, those that do included. Of the shared slots the last ones are kept for push while any of it
   * waits: two, or one where there are fewer than three. Where there is one in all, push and confirm take turns.
   */
  #slots(lane: LaneQueue, now: number): number {
    if (this.#admitsFrom(lane.name) > now) return 0;
    const { concurrency } = lane.limits;
    if (!isShared(lane.name)) return concurrency;
    const { confirm, push } = this.#lanes;
    const { limit } = this.#limit;
    const other = lane === push ? confirm : push;
    const wants = (each: LaneQueue) =>
      each.waiting.size > 0 && !each.queue.isRateLimited && this.#admitsFrom(each.name) <= now;
    let kept = 0;
    if (limit === 1) kept = wants(other) && this.#lastShared === lane.name ? 1 : 0;
    else if (lane === confirm && wants(push))
      kept = Math.min(push.limits.concurrency, limit >= KEEP_TWO_FROM ? 2 : 1) - push.running.size;
    return Math.min(concurrency, limit - other.running.size - Math.max(0, kept));
  }

  #mayRun(lane: LaneQueue, now: number): boolean {
    return lane.waiting.size > 0 && this.#slots(lane, now) > lane.running.size;
  }

  /** Pauses the lanes that may not start anything more. */
  #hold(now: number): void {
    for (const lane of this.#byPriority)
      if (!lane.queue.isPaused && !this.#mayRun(lane, now)) lane.queue.pause();
  }

  /**
   * Holds back what may not start, starts what may, releases the producers whose lanes have room, and sets the wake timer. Called
   * whenever something changed; while it starts requests, each start only holds back.
   */
  #update(): void {
    if (this.#isStopping) return;
    const now = this.#options.clock.now();
    if (this.#paused?.until !== undefined && now >= this.#paused.until) this.resume();
    this.#hold(now);
    if (this.#isFilling) return;
    this.#isFilling = true;
    for (const lane of this.#byPriority) if (this.#mayRun(lane, now)) lane.queue.start();
    this.#isFilling = false;
    for (const lane of this.#byPriority) {
      const producers = this.#producers[lane.name];
      let room = producers.size === 0 ? 0 : this.#room(lane, now);
      for (const producer of producers) {
        if (room <= 0) break;
        room -= 1;
        producers.delete(producer);
        producer.resolve(undefined);
      }
    }
    this.#setTimer(now);
  }

  /** Sets the wake timer for the first moment at which time alone lets something start; an earlier one may stand. */
  #setTimer(now: number): void {
    const times = [this.#breaker.probeAt, this.#breaker.pausedUntil, this.#paused?.until ?? 0];
    const ahead = times.filter((time) => time > now);
    const next = Math.min(...ahead, now + LONGEST_TIMER_MS);
    if (ahead.length === 0 || this.#timerAt <= next) return;
    this.#timer?.cancel();
    this.#timerAt = next;
    this.#timer = this.#options.clock.after(next - now, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#update();
    });
  }
}
