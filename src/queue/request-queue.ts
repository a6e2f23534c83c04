import { EventEmitter, once, setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import type { Timer } from '../lib/clock.js';
import { HealthCheck, type HealthOptions } from '../lib/health.js';
import { Breaker, type CircuitStatus, type Ticket } from './breaker.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import {
  DEFAULT_POLICY,
  eachLane,
  LANES,
  type Lane,
  type LaneLimits,
  type Outcome,
  type QueueLimits,
  queueStopped,
  type RequestQueueOptions,
} from './options.js';
import { RateLimit } from './rate-limit.js';

/**
 * The wake timer waits this long at most, in ms: timers stand still while the machine is suspended.
 */
const LONGEST_TIMER_MS = 60_000;
/** How long one request may run, in ms, unless somebody says otherwise. */
const LONGEST_MS = 15 * 60_000;
/** Shared objects and tables stream, and may take so many times as long as anything else. */
const STREAMING = 12;
/** The median latency is that of so many answers. */
const LATENCIES = 101;

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
  /**
   * A person paused the work with the peer: nothing but `interactive` starts, until then or until
   * it is resumed.
   */
  readonly paused?: Paused | undefined;
  /**
   * Pushes and look-ups at a time: those that run, those the peer seems to bear, those configured.
   */
  readonly concurrency: { readonly running: number; readonly limit: number; readonly max: number };
  readonly lanes: Readonly<Record<Lane, LaneStatus>>;
}

/**
 * One request: *waiting* in its lane until it starts or is aborted, then *running* until its work
 * ends.
 */
interface Request {
  /** What p-queue starts; settles what `run` returned when the work ends. */
  readonly perform: () => Promise<void>;
  readonly reject: (reason: unknown) => void;
  /**
   * Takes it out of the queue, or asks its work to end; only where the caller may do that, for each
   * costs time.
   */
  readonly ending: AbortController | undefined;
}

/** One lane with its figures. p-queue keeps its order and concurrency. */
class LaneQueue {
  readonly health: HealthCheck;
  /** In the order of p-queue. */
  readonly waiting = new Set<Request>();
  /** In the order of their starts. */
  readonly running = new Set<Request>();
  readonly latencies: number[] = [];
  readonly rate = new RateLimit();
  readonly queue = new PQueue({ autoStart: false });
  started = 0;
  failed = 0;

  /**
   * @param adaptive what the peer bears, in a lane that adapts
   * @param onChange called when a request came to wait, or a slot became free
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

  /** How many requests may run at a time. */
  get slots(): number {
    return this.adaptive?.limit ?? this.queue.concurrency;
  }

  /**
   * How many more may come to wait: as many as could start together, one while the rate is spent.
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

  /** From now on these hold. */
  limit({ concurrency, requestsPerSecond }: LaneLimits): void {
    this.adaptive?.riseTo(concurrency);
    this.queue.concurrency = concurrency;
    this.rate.limit(requestsPerSecond);
  }

  status(): LaneStatus {
    const { failed, latencies, running, started, waiting } = this;
    const p50LatencyMs = latencies.toSorted((a, b) => a - b)[latencies.length >> 1];
    return { started, failed, running: running.size, waiting: waiting.size, p50LatencyMs };
  }
}

/**
 * Every request to the peer passes through this queue.
 *
 * A request enters by `run` and waits in its lane, a p-queue that keeps its order and concurrency.
 * A p-queue is paused while one of these holds its lane back: the rate, the concurrency that the
 * peer seems to bear, the circuit breaker (which also knows the wait that the peer asked for), and
 * the pause that a person asked for. The start and the end of each request update these.
 *
 * - *Serving*: as above.
 * - *Paused* by a person, entered by `pause`: running requests may end, and only `interactive`
 *   starts. `resume` or its `until` ends it.
 * - *Stopping*, entered by `stop`: waiting requests are rejected with QUEUE_STOPPED and nothing
 *   more starts. Running requests may end within the grace, and are then aborted.
 *
 * `interactive` passes pauses and the open circuit. Nobody has to keep a backlog here: a producer
 * awaits `ready` before each `run`.
 */
export class RequestQueue {
  /** Of each lane: that requests which may start do start, and that running ones end. */
  readonly health: readonly HealthCheck[];
  readonly #options: RequestQueueOptions;
  readonly #breaker: Breaker;
  readonly #lanes: Readonly<Record<Lane, LaneQueue>>;
  /** The same, in order of priority. */
  readonly #byPriority: readonly LaneQueue[];
  /**
   * Emits the name of a lane when a producer of it may go on, and `ended` when a request has ended.
   */
  readonly #events = new EventEmitter().setMaxListeners(0);
  /** Ends the requests that have none of their own. */
  readonly #ending = new AbortController();
  #paused: Paused | undefined;
  #isStopping = false;
  #timer: Timer | undefined;

  constructor(options: RequestQueueOptions) {
    const { longestMs = LONGEST_MS, clock, log, peerName } = options;
    this.#options = options;
    const policy = { ...DEFAULT_POLICY, ...options.policy };
    this.#breaker = new Breaker(policy, log, peerName, clock.now());
    this.#lanes = eachLane((name) => {
      const adaptive = name === 'confirm' || name === 'push' ? new ConcurrencyLimit() : undefined;
      const busy = () => this.mayStart(name) || this.#lanes[name].running.size > 0;
      const limitMs = name === 'mirror' ? longestMs * STREAMING : longestMs;
      return new LaneQueue(name, adaptive, () => this.#update(), { busy, limitMs });
    });
    this.#byPriority = LANES.map((name) => this.#lanes[name]);
    this.health = this.#byPriority.map(({ health }) => health);
    setMaxListeners(0, this.#ending.signal);
    this.limit(options);
  }

  /**
   * Runs `work` when its lane's turn comes; settles as it does.
   *
   * `work` gets a signal that aborts with the caller's, or at the end of the grace when the queue
   * stops, and has to end soon after.
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
    const ending = signal && new AbortController();
    const settled = new Promise<T>((resolve, reject) => {
      const perform = () => this.#perform(lane, request, work).then(resolve, reject);
      const request: Request = { perform, reject, ending };
      lane.add(request);
    });
    if (signal === undefined) return settled;
    const onAbort = () => ending?.abort(signal.reason);
    // One signal may well end every request there is.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', onAbort);
    return settled.finally(() => signal.removeEventListener('abort', onAbort));
  }

  /**
   * Resolves when a request of this lane would start at once, or as the next of its lane: not while
   * the circuit or a pause holds the lane back, nor while as many wait already as could start
   * together.
   *
   * Meant for one producer a lane that awaits it before each `run`; then no more than that many
   * ever wait.
   *
   * @throws QUEUE_STOPPED when the queue stops; the signal's reason when it aborts first
   */
  async ready(name: Lane, signal?: AbortSignal): Promise<void> {
    while (!this.hasRoom(name)) {
      if (this.#isStopping) throw queueStopped();
      signal?.throwIfAborted();
      await once(this.#events, name, { signal }).catch(() => {});
    }
  }

  /** Whether `ready` would let a producer of this lane go on at this moment. */
  hasRoom(name: Lane): boolean {
    const now = this.#options.clock.now();
    return !this.#isStopping && this.#admits(name, now) && this.#lanes[name].room(now) > 0;
  }

  /** Whether anything runs or waits in this lane. */
  isBusy(name: Lane): boolean {
    const { running, waiting } = this.#lanes[name];
    return running.size + waiting.size > 0;
  }

  /** Whether a request waits in this lane that nothing holds back at this moment. */
  mayStart(name: Lane): boolean {
    return !this.#isStopping && this.#mayRun(this.#lanes[name], this.#options.clock.now());
  }

  /**
   * For how long the peer has been answering, in ms; 0 while it is in trouble with pushes or
   * look-ups.
   */
  get answeringForMs(): number {
    return this.#breaker.answeringForMs(this.#options.clock.now());
  }

  status(): QueueStatus {
    const now = this.#options.clock.now();
    const { confirm, push } = this.#lanes;
    const { pausedUntil } = this.#breaker;
    return {
      circuit: this.#breaker.status(now),
      pausedUntil: pausedUntil > now ? pausedUntil : undefined,
      paused: this.#paused,
      concurrency: {
        running: confirm.running.size + push.running.size,
        limit: confirm.slots + push.slots,
        max: confirm.queue.concurrency + push.queue.concurrency,
      },
      lanes: eachLane((name) => this.#lanes[name].status()),
    };
  }

  /**
   * Lets the next probe start at once, for a person who mended something; a wait that the peer
   * asked for stands.
   */
  tryNow(): void {
    this.#breaker.endWait(this.#options.clock.now());
    this.#update();
  }

  /**
   * A person pauses the work: nothing but `interactive` starts any more. Called again, it replaces
   * the pause before.
   */
  pause(paused: Paused): void {
    this.#paused = paused;
    this.#update();
  }

  /** Ends the pause. */
  resume(): void {
    if (this.#paused === undefined) return;
    this.#paused = undefined;
    this.#options.log.info(
      { event: 'resumed' },
      'the pause is over: the work with the peer goes on',
    );
    this.#update();
  }

  /**
   * From now on other limits hold. Running requests go on and count, also where they are more than
   * a lower limit allows.
   */
  limit({ lanes }: QueueLimits): void {
    for (const lane of this.#byPriority) lane.limit(lanes[lane.name]);
    this.#update();
  }

  /**
   * Ends all requests; resolves when every one is settled. Called again with a shorter grace, that
   * one holds.
   *
   * @param graceMs how long running requests may go on before they are aborted
   */
  async stop(graceMs: number): Promise<void> {
    const reason = queueStopped();
    this.#isStopping = true;
    this.#timer?.cancel();
    for (const { name, queue, waiting } of this.#byPriority) {
      queue.clear();
      for (const { reject } of waiting) reject(reason);
      waiting.clear();
      this.#events.emit(name);
    }
    const running = () => this.#byPriority.flatMap((lane) => [...lane.running]);
    const abort = () => {
      for (const { ending } of running()) ending?.abort(reason);
      this.#ending.abort(reason);
    };
    const timer = this.#options.clock.after(graceMs, abort);
    if (graceMs === 0) abort();
    while (running().length > 0) await once(this.#events, 'ended');
    timer.cancel();
  }

  /** p-queue starts this request. */
  async #perform<T>(
    lane: LaneQueue,
    request: Request,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { signal } = request.ending ?? this.#ending;
    const now = this.#options.clock.now();
    const ticket = this.#breaker.started(lane.name, now);
    lane.rate.started(now);
    lane.waiting.delete(request);
    lane.running.add(request);
    lane.started += 1;
    if (lane.running.size === 1) lane.health.progress();
    // Before its work, which may look at the queue.
    this.#update();
    try {
      const value = await work(signal);
      this.#ended(lane, request, ticket, { kind: 'answered' });
      return value;
    } catch (error) {
      const outcome = signal.aborted ? { kind: 'aborted' as const } : this.#options.classify(error);
      if (outcome.kind !== 'aborted') lane.failed += 1;
      this.#ended(lane, request, ticket, outcome, error);
      throw error;
    }
  }

  #ended(
    lane: LaneQueue,
    request: Request,
    ticket: Ticket,
    outcome: Outcome,
    error?: unknown,
  ): void {
    const now = this.#options.clock.now();
    const { adaptive, latencies, running, slots } = lane;
    const isFull = running.size >= slots;
    const [oldest] = running;
    // Others that end say nothing of one that hangs.
    if (request === oldest) lane.health.progress();
    running.delete(request);
    if (this.#breaker.ended(ticket, outcome, now, error))
      for (const each of this.#byPriority) each.adaptive?.restart();
    if (outcome.kind === 'answered') {
      latencies.push(now - ticket.startedAt);
      if (latencies.length > LATENCIES) latencies.shift();
      adaptive?.answered(ticket.startedAt, now, isFull);
    } else if (outcome.kind !== 'aborted') adaptive?.refused(ticket.startedAt, now);
    this.#update();
    this.#events.emit('ended');
  }

  /** Whether neither the circuit nor a pause holds this lane back. */
  #admits(lane: Lane, now: number): boolean {
    if (lane === 'interactive') return true;
    return this.#paused === undefined && this.#breaker.admitsFrom(lane) <= now;
  }

  #mayRun(lane: LaneQueue, now: number): boolean {
    return this.#waitsForRate(lane, now) && lane.rate.nextAt <= now;
  }

  /** Whether a request waits in this lane that nothing but its rate may hold back. */
  #waitsForRate({ name, running, slots, waiting }: LaneQueue, now: number): boolean {
    return waiting.size > 0 && slots > running.size && this.#admits(name, now);
  }

  /**
   * Holds back what may not start, starts what may, lets the producers go on whose lanes have room,
   * and sets the wake timer for the first moment at which time alone lets something start. Called
   * whenever something changed.
   */
  #update(): void {
    if (this.#isStopping) return;
    const { clock } = this.#options;
    const now = clock.now();
    const { until = Number.POSITIVE_INFINITY } = this.#paused ?? {};
    if (now >= until) this.resume();
    for (const lane of this.#byPriority) {
      if (this.#mayRun(lane, now)) lane.queue.start();
      else lane.queue.pause();
    }
    for (const lane of this.#byPriority) {
      const { name } = lane;
      if (lane.room(now) > 0 && this.#events.listenerCount(name) > 0 && this.#admits(name, now))
        this.#events.emit(name);
    }
    this.#timer?.cancel();
    const byRate = this.#byPriority.filter((lane) => this.#waitsForRate(lane, now));
    const ahead = [this.#breaker.probeAt, until, ...byRate.map(({ rate }) => rate.nextAt)].filter(
      (time) => time > now && time < Number.POSITIVE_INFINITY,
    );
    if (ahead.length > 0) {
      // A timer is in whole milliseconds, and one that fires too early would be for nothing.
      const ms = Math.ceil(Math.min(...ahead, now + LONGEST_TIMER_MS) - now);
      this.#timer = clock.after(ms, () => this.#update());
    }
  }
}
