import { EventEmitter, once, setMaxListeners } from 'node:events';
import type { Timer } from '../lib/clock.js';
import type { HealthCheck } from '../lib/health.js';
import { Breaker, type CircuitStatus, type Ticket } from './breaker.js';
import { ConcurrencyLimit, LaneQueue, type LaneStatus, type Request } from './lanes.js';
import {
  DEFAULT_POLICY,
  eachLane,
  LANES,
  type Lane,
  type Outcome,
  type QueueLimits,
  queueStopped,
  type RequestQueueOptions,
} from './options.js';

/** Longest delay of the wake timer, in ms. Timers stand still while the machine is suspended. */
const MAX_TIMER_MS = 60_000;
/** Default time that one request may run, in ms. */
const DEFAULT_LONGEST_MS = 15 * 60_000;
/** Factor for `mirror` requests, which stream shared objects and tables and may take longer. */
const MIRROR_FACTOR = 12;
/** Number of answers of which the median latency is taken. */
const LATENCY_SAMPLES = 101;

/** A pause that a person asked for. Times are in ms since the epoch. */
export interface Paused {
  readonly since: number;
  /** When the pause ends on its own. */
  readonly until?: number;
}

/** All times are in ms since the epoch, by our clock. */
export interface QueueStatus {
  readonly circuit: CircuitStatus;
  /** The peer asked to wait: only `interactive` requests start before this time. */
  readonly retryAfterUntil?: number | undefined;
  /**
   * A person paused the work: only `interactive` requests start until the pause ends or is resumed.
   */
  readonly paused?: Paused | undefined;
  /**
   * Pushes and look-ups at a time: running now, the current adaptive limit, and the configured
   * maximum.
   */
  readonly concurrency: { readonly running: number; readonly limit: number; readonly max: number };
  readonly lanes: Readonly<Record<Lane, LaneStatus>>;
}

/**
 * The queue of all requests to the peer.
 *
 * A request enters by `run` and waits in its lane (LaneQueue). A lane starts nothing while one of
 * these holds it back: its rate limit, its adaptive concurrency limit, the circuit breaker, or a
 * person's pause. The breaker also has the waits that the peer asks for by Retry-After. The start
 * and the end of each request update all four.
 *
 * - *Serving*, the initial mode: as above.
 * - *Paused*, entered by `pause`: running requests finish, and only `interactive` requests start.
 *   It ends by `resume` or at its `until`.
 * - *Stopping*, entered by `stop`: waiting requests are rejected with QUEUE_STOPPED, and no more
 *   start. Running requests may finish within the grace period and are then aborted.
 *
 * `interactive` requests ignore pauses and the circuit breaker. Producers keep no backlog here:
 * they await `ready` before each `run`.
 */
export class RequestQueue {
  /** One health check per lane: requests that may start do start, and running requests end. */
  readonly health: readonly HealthCheck[];
  readonly #options: RequestQueueOptions;
  readonly #breaker: Breaker;
  readonly #lanes: Readonly<Record<Lane, LaneQueue>>;
  /** The same lanes in order of priority. */
  readonly #byPriority: readonly LaneQueue[];
  /** Wakes the producers that wait for room, by lane. */
  readonly #producers = eachLane(() => new Set<() => void>());
  /** Emits `ended` when a request has ended. */
  readonly #events = new EventEmitter().setMaxListeners(0);
  /** Aborts the requests that have no controller of their own. */
  readonly #ending = new AbortController();
  #paused: Paused | undefined;
  #isStopping = false;
  #timer: Timer | undefined;

  constructor(options: RequestQueueOptions) {
    const { longestMs = DEFAULT_LONGEST_MS, clock, log, peerName } = options;
    this.#options = options;
    const policy = { ...DEFAULT_POLICY, ...options.policy };
    this.#breaker = new Breaker(policy, log, peerName, clock.now());
    this.#lanes = eachLane((name) => {
      const adaptive = name === 'confirm' || name === 'push' ? new ConcurrencyLimit() : undefined;
      const busy = () => this.mayStart(name) || this.#lanes[name].running.size > 0;
      const limitMs = name === 'mirror' ? longestMs * MIRROR_FACTOR : longestMs;
      return new LaneQueue(name, adaptive, () => this.#update(), { busy, limitMs });
    });
    this.#byPriority = LANES.map((name) => this.#lanes[name]);
    this.health = this.#byPriority.map(({ health }) => health);
    setMaxListeners(0, this.#ending.signal);
    this.limit(options);
  }

  /**
   * Runs `work` when it is its turn in the lane; settles as `work` does.
   *
   * `work` receives a signal. It aborts with the caller's signal, or at the end of the grace period
   * when the queue stops. `work` must end soon after.
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
    // One signal may abort every request in the queue.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', onAbort);
    return settled.finally(() => signal.removeEventListener('abort', onAbort));
  }

  /**
   * Resolves when a request of this lane would start at once or as the next one. It waits while the
   * circuit or a pause holds the lane back, and while as many requests wait as can start together.
   *
   * Meant for one producer per lane that awaits it before each `run`. No more than that many
   * requests then wait.
   *
   * @throws QUEUE_STOPPED when the queue stops; the signal's reason when it aborts first
   */
  async ready(name: Lane, signal?: AbortSignal): Promise<void> {
    while (!this.hasRoom(name)) {
      if (this.#isStopping) throw queueStopped();
      signal?.throwIfAborted();
      await this.#roomMayBe(name, signal);
    }
  }

  /**
   * Resolves when a lane may have room, the queue stops or the signal aborts. `once` of node:events
   * costs three times as much, for every request.
   */
  #roomMayBe(name: Lane, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const producers = this.#producers[name];
      const end = () => {
        producers.delete(end);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      producers.add(end);
      signal?.addEventListener('abort', end);
    });
  }

  /** Whether `ready` would resolve now. */
  hasRoom(name: Lane): boolean {
    const now = this.#options.clock.now();
    return !this.#isStopping && this.#admits(name, now) && this.#lanes[name].room(now) > 0;
  }

  /** Whether a request runs or waits in this lane. */
  isBusy(name: Lane): boolean {
    const { running, waiting } = this.#lanes[name];
    return running.size + waiting.size > 0;
  }

  /** Whether a request waits in this lane and may start now. */
  mayStart(name: Lane): boolean {
    return !this.#isStopping && this.#mayRun(this.#lanes[name], this.#options.clock.now());
  }

  /** The time that the peer has been answering, in ms; 0 while pushes or look-ups fail. */
  get answeringForMs(): number {
    return this.#breaker.answeringForMs(this.#options.clock.now());
  }

  status(): QueueStatus {
    const now = this.#options.clock.now();
    const { confirm, push } = this.#lanes;
    const { retryAfterUntil } = this.#breaker;
    return {
      circuit: this.#breaker.status(now),
      retryAfterUntil: retryAfterUntil > now ? retryAfterUntil : undefined,
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
   * Lets the next probe start at once. Called when a person has repaired something. A wait that the
   * peer asked for still applies.
   */
  tryNow(): void {
    this.#breaker.endWait(this.#options.clock.now());
    this.#update();
  }

  /** Pauses the work: only `interactive` requests start. Replaces an earlier pause. */
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

  /** Applies new limits. Running requests continue and count, even if they exceed a lower limit. */
  limit({ lanes }: QueueLimits): void {
    for (const lane of this.#byPriority) lane.limit(lanes[lane.name]);
    this.#update();
  }

  /**
   * Stops the queue; resolves when every request is settled. A second call with a shorter grace
   * period shortens it.
   *
   * @param graceMs how long running requests may go on before they are aborted, in ms
   */
  async stop(graceMs: number): Promise<void> {
    const reason = queueStopped();
    this.#isStopping = true;
    this.#timer?.cancel();
    for (const { name, queue, waiting } of this.#byPriority) {
      queue.clear();
      for (const { reject } of waiting) reject(reason);
      waiting.clear();
      this.#wakeProducers(name);
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

  /** Called when p-queue starts the request. */
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
    // Before the work starts, because it may query the queue.
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
    // Only the oldest request counts: others that end do not show that it is not stuck.
    if (request === oldest) lane.health.progress();
    running.delete(request);
    if (this.#breaker.ended(ticket, outcome, now, error))
      for (const each of this.#byPriority) each.adaptive?.restart();
    if (outcome.kind === 'answered') {
      latencies.push(now - ticket.startedAt);
      if (latencies.length > LATENCY_SAMPLES) latencies.shift();
      adaptive?.answered(ticket.startedAt, now, isFull);
    } else if (outcome.kind !== 'aborted') adaptive?.refused(ticket.startedAt, now);
    this.#update();
    this.#events.emit('ended');
  }

  #wakeProducers(name: Lane): void {
    for (const wake of [...this.#producers[name]]) wake();
  }

  /** Whether neither the circuit nor a pause holds this lane back. */
  #admits(lane: Lane, now: number): boolean {
    if (lane === 'interactive') return true;
    return this.#paused === undefined && this.#breaker.admitsFrom(lane) <= now;
  }

  #mayRun(lane: LaneQueue, now: number): boolean {
    return this.#waitsForRate(lane, now) && lane.rate.nextAt <= now;
  }

  /** Whether a request waits in this lane and nothing but the rate limit may hold it back. */
  #waitsForRate({ name, running, slots, waiting }: LaneQueue, now: number): boolean {
    return waiting.size > 0 && slots > running.size && this.#admits(name, now);
  }

  /**
   * Pauses and starts the lanes, wakes the producers of lanes with room, and sets the wake timer to
   * the next time at which a request may start without another event. Called after every change.
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
      if (this.#producers[name].size > 0 && lane.room(now) > 0 && this.#admits(name, now))
        this.#wakeProducers(name);
    }
    this.#timer?.cancel();
    const wakeAt = this.#wakeAt(now, until);
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    // Rounded up: timers take whole milliseconds, and one that fires too early does nothing.
    const ms = Math.ceil(Math.min(wakeAt, now + MAX_TIMER_MS) - now);
    this.#timer = clock.after(ms, () => this.#update());
  }

  /** Returns the next time at which a request may start without another event. */
  #wakeAt(now: number, pausedUntil: number): number {
    let wakeAt = Number.POSITIVE_INFINITY;
    const consider = (time: number) => {
      if (time > now && time < wakeAt) wakeAt = time;
    };
    consider(this.#breaker.probeAt);
    consider(pausedUntil);
    for (const lane of this.#byPriority)
      if (this.#waitsForRate(lane, now)) consider(lane.rate.nextAt);
    return wakeAt;
  }
}
