import { setMaxListeners } from 'node:events';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import type { Ticket } from './breaker.js';
import { type End, LaneQueue, type LaneStatus, QueuedRequest, turnsOf } from './lane-queue.js';
import {
  checkLimits,
  DEFAULT_POLICY,
  eachLane,
  LANES,
  type Lane,
  type Outcome,
  type QueueLimits,
  type QueuePolicy,
  queueStopped,
  type RequestQueueOptions,
} from './options.js';
import { type CircuitStatus, PeerHealth } from './peer-health.js';
import { PeerStatusLog } from './peer-status-log.js';

/** The wake timer waits this long at most, in ms, or for this part of the time: timers stand still while the machine is suspended. */
const SLEEP_MS = 60_000;
const SLEEP_SHARE = 0.01;
/** The date of a time changes only if somebody set the clock by more than this, in ms. */

/** How long one request may run, in ms, unless somebody says otherwise. */
const LONGEST_MS = 15 * 60_000;
/** Shared objects and tables stream, and may take so many times as long as anything else. */
const STREAMING = 12;

/** A pause that a person asked for. In ms since the epoch. */
export interface Paused {
  readonly since: number;
  /** When it ends by itself. */
  readonly until?: number;
}

/** All times are in ms since the epoch, by our clock. */
export interface QueueStatus {
  readonly circuit: CircuitStatus;
  /** Nothing but `interactive` starts before this: the peer asked to wait. */
  readonly pausedUntil?: number;
  /** A person paused the work with the peer: nothing but `interactive` starts, until then or until it is resumed. */
  readonly paused?: Paused;
  /** Shared slots: those in use, those the peer seems to bear, those configured. */
  readonly concurrency: { readonly running: number; readonly limit: number; readonly max: number };
  readonly lanes: Readonly<Record<Lane, LaneStatus>>;
}

interface Producer {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Every request to the peer passes through this queue.
 *
 * A request enters by `run` and waits in its lane, a p-queue that keeps its order, concurrency and rate. The lane is offered
 * a slot once all of these allow it: the shared slots that the peer seems to bear, the circuit breaker, the pause that the
 * peer asked for (`Retry-After`), and the pause that a person asked for. The end of each request updates these, and
 * frees the slot for the next.
 *
 * - *Serving*: as above.
 * - *Paused* by a person, entered by `pause`: running requests may end, and only `interactive` starts. `resume` or its
 *   `until` ends it.
 * - *Stopping*, entered by `stop`: waiting requests are rejected with QUEUE_STOPPED and nothing more starts. Running requests may
 *   end within the grace, are then aborted, and are given up if they do not end.
 *
 * `interactive` and `mirror` have slots of their own; `interactive` passes pauses and the open circuit. Nobody has to keep a
 * backlog here: a producer awaits `ready` before each `run`.
 */
export class RequestQueue {
  /** That requests which may start do start, and that running ones end. */
  readonly health: readonly HealthCheck[];
  readonly #checks: Readonly<Record<Lane, { readonly starts: HealthCheck; readonly ends: HealthCheck }>>;
  readonly #classify: (error: unknown) => Outcome;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #policy: QueuePolicy;
  readonly #health: PeerHealth;
  readonly #lanes: Readonly<Record<Lane, LaneQueue>>;
  /** The same, in order of priority. */
  readonly #byPriority: readonly LaneQueue[];
  readonly #producers = eachLane(() => new Set<Producer>());
  readonly #listeners = new Set<() => void>();
  #maxConcurrency: number;
  #sharedInUse = 0;
  #lastShared: Lane | undefined;
  #pause: { readonly since: number; readonly until: number } | undefined;
  /** The end of the pause as listeners know it. */
  #knownUntil: number | undefined;
  #starts = 0;
  #isFilling = false;
  #isStopping = false;
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  /** @throws QueueError QUEUE_OPTION for a rate or concurrency that is none */
  constructor(options: RequestQueueOptions) {
    const { lanes, maxConcurrency, classify, clock, log, peerName, random = Math.random } = options;
    checkLimits(options);
    this.#classify = classify;
    this.#clock = clock;
    this.#log = log;
    this.#maxConcurrency = maxConcurrency;
    this.#policy = { ...DEFAULT_POLICY, ...options.policy };
    const statusLog = new PeerStatusLog(log, peerName, this.#policy);
    this.#health = new PeerHealth(this.#policy, random, maxConcurrency, statusLog, clock.now());
    this.#lanes = eachLane((name): LaneQueue => {
      const onStart = (request: QueuedRequest) => this.#perform(this.#lanes[name], request);
      return new LaneQueue(name, lanes[name], onStart, () => this.#update());
    });
    this.#byPriority = LANES.map((name) => this.#lanes[name]);
    const { longestMs = LONGEST_MS } = options;
    this.#checks = eachLane((name) => ({
      starts: new HealthCheck(`queue ${name}`, `${name} requests that may start wait in the queue`, {
        busy: () => this.mayStart(name),
      }),
      ends: new HealthCheck(`request ${name}`, `no ${name} request ends within its time-outs`, {
        busy: () => this.#lanes[name].running.size > 0,
        limitMs: name === 'mirror' ? longestMs * STREAMING : longestMs,
      }),
    }));
    this.health = Object.values(this.#checks).flatMap(({ starts, ends }) => [starts, ends]);
  }

  /**
   * Runs `work` when its lane's turn comes; settles as it does.
   *
   * `work` gets a signal that aborts with the caller's, or at the end of the grace when the queue stops, and has to end
   * soon after (`policy.abortMs`).
   *
   * @throws QueueError QUEUE_STOPPED when the queue stops first; the signal's reason when it aborts first
   */
  run<T>(
    lane: Lane,
    work: (signal: AbortSignal) => Promise<T>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<T> {
    const { signal } = options;
    if (this.#isStopping) return Promise.reject(queueStopped());
    if (signal?.aborted) return Promise.reject(signal.reason);
    const queue = this.#lanes[lane];
    const request = new QueuedRequest<T>(work, this.#clock, this.#policy.abortMs);
    if (signal) {
      const onAbort = () => {
        if (queue.remove(request)) request.reject(signal.reason);
        else request.abort(signal.reason);
      };
      const onSettled = () => signal.removeEventListener('abort', onAbort);
      // One signal may well end every request there is.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', onAbort);
      request.result.then(onSettled, onSettled);
    }
    queue.add(request, signal !== undefined, this.#clock.now());
    this.#update();
    return request.result;
  }

  /**
   * Resolves when a request of this lane would start at once, or as the next of its lane: not while the circuit or a pause
   * holds the lane back, nor while as many wait already as could start together.
   *
   * Meant for one producer a lane that awaits it before each `run`; then no more than that many ever wait.
   *
   * @throws QueueError QUEUE_STOPPED when the queue stops; the signal's reason when it aborts first
   */
  async ready(lane: Lane, signal?: AbortSignal): Promise<void> {
    if (this.#isStopping) throw queueStopped();
    signal?.throwIfAborted();
    const producers = this.#producers[lane];
    if (producers.size === 0 && this.#room(lane, this.#clock.now()) > 0) return;
    let onAbort = () => {};
    const released = new Promise<void>((resolve, reject) => {
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
  hasRoom(lane: Lane): boolean {
    return !this.#isStopping && this.#room(lane, this.#clock.now()) > 0;
  }

  /** Whether anything runs or waits in this lane. */
  isBusy(lane: Lane): boolean {
    const { running, waiting } = this.#lanes[lane];
    return running.size + waiting.size > 0;
  }

  /** Whether a request waits in this lane that nothing holds back at this moment. */
  mayStart(lane: Lane): boolean {
    const queue = this.#lanes[lane];
    const isTurn = () => this.#turns(this.#clock.now()).includes(queue);
    return !this.#isStopping && !queue.isRateLimited && isTurn();
  }

  /** For how long the peer has been answering, in ms; 0 while it is in trouble. */
  get answeringForMs(): number {
    return this.#health.answeringForMs(this.#clock.now());
  }

  status(): QueueStatus {
    const { busyPause, limit } = this.#health;
    const paused = this.#paused;
    return {
      circuit: this.#health.circuit(),
      ...(busyPause.until > this.#clock.now() ? { pausedUntil: Math.round(busyPause.until) } : {}),
      ...(paused === undefined ? {} : { paused }),
      concurrency: { running: this.#sharedInUse, limit: limit.limit, max: this.#maxConcurrency },
      lanes: eachLane((name) => this.#lanes[name].status()),
    };
  }

  /** Lets the next probe start at once, for a person who mended something; a pause that the peer asked for stands. */
  tryNow(): void {
    this.#health.breaker.endWait(this.#clock.now());
    this.#update();
  }

  /** A person pauses the work: nothing but `interactive` starts any more. Called again, it replaces the pause before. */
  pause({ since, until = Number.POSITIVE_INFINITY }: Paused): void {
    this.#pause = { since, until };
    this.#knownUntil = this.#paused?.until;
    this.#notify();
    this.#update();
  }

  /** Ends the pause. */
  resume(): void {
    if (this.#pause === undefined) return;
    this.#pause = undefined;
    this.#notify();
    this.#update();
  }

  /**
   * From now on other limits hold. Running requests go on and count, also where they are more than a lower limit allows.
   *
   * @throws QueueError QUEUE_OPTION, and then nothing changed
   */
  limit(limits: QueueLimits): void {
    checkLimits(limits);
    for (const name of LANES) this.#lanes[name].limit(limits.lanes[name], this.#clock.now());
    this.#maxConcurrency = limits.maxConcurrency;
    this.#health.limit.max = limits.maxConcurrency;
    this.#update();
  }

  /** Calls `listener` whenever circuit or pause change. @returns what ends that */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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
    for (const name of LANES) {
      for (const producer of this.#producers[name]) producer.reject(reason);
      for (const request of this.#lanes[name].waiting.keys()) request.reject(reason);
      this.#lanes[name].clear();
    }
    const running = () => LANES.flatMap((name) => [...this.#lanes[name].running]);
    const ended = Promise.allSettled(running().map(({ result }) => result));
    if (running().length > 0 && graceMs > 0) {
      const grace = new AbortController();
      await Promise.race([ended, this.#clock.sleep(graceMs, grace.signal)]);
      grace.abort();
    }
    for (const request of running()) request.abort(reason);
    await ended;
  }

  /** p-queue starts this request. */
  async #perform(lane: LaneQueue, request: QueuedRequest): Promise<void> {
    const now = this.#clock.now();
    lane.begin(request, now);
    this.#checks[lane.name].starts.progress();
    this.#starts += 1;
    if (lane.isShared) {
      this.#sharedInUse += 1;
      this.#lastShared = lane.name;
    }
    const ticket = this.#health.breaker.started(lane.name, now);
    const working = request.work();
    this.#update();
    const end = await working;
    try {
      this.#ended(lane, request, ticket, end);
    } catch (error) {
      this.#log.error({ err: error }, 'The queue failed at the end of a request.');
    } finally {
      request.settle();
    }
  }

  #ended(lane: LaneQueue, request: QueuedRequest, ticket: Ticket, end: End): void {
    const now = this.#clock.now();
    const wasFull = this.#sharedInUse >= this.#health.limit.limit;
    lane.running.delete(request);
    this.#checks[lane.name].ends.progress();
    if (lane.isShared) this.#sharedInUse -= 1;
    // Until p-queue says that the slot is free: the peer may bear less now, or be away.
    for (const queue of this.#byPriority) queue.pause();
    const outcome = this.#outcomeOf(end, request.isAborted);
    if (outcome.kind === 'answered') lane.answered(now - ticket.startedAt);
    if (!end.ok && outcome.kind !== 'aborted') lane.failed += 1;
    if (this.#health.ended(ticket, outcome, end.ok ? undefined : end.error, wasFull, now)) this.#notify();
  }

  #outcomeOf(end: End, isAborted: boolean): Outcome {
    if (end.ok) return { kind: 'answered' };
    return isAborted ? { kind: 'aborted' } : this.#classify(end.error);
  }

  /** From when on nothing but its own limits holds a lane back; infinity until somebody or something decides that. */
  #admitsFrom(lane: Lane): number {
    if (this.#pause !== undefined && lane !== 'interactive') return Number.POSITIVE_INFINITY;
    return this.#health.admitsFrom(lane);
  }

  /** How many more requests may come to wait in a lane: as many as could start together, one while its rate is spent. */
  #room(name: Lane, now: number): number {
    if (this.#admitsFrom(name) > now) return 0;
    const { concurrency, isRateLimited, isShared, waiting } = this.#lanes[name];
    const slots = isShared ? Math.min(concurrency, this.#health.limit.limit) : concurrency;
    return (isRateLimited ? 1 : slots) - waiting.size;
  }

  /** The lanes where a request may start as far as anything but the rate is concerned, first the one that goes first. */
  #turns(now: number): readonly LaneQueue[] {
    const own: LaneQueue[] = [];
    const shared: LaneQueue[] = [];
    for (const lane of this.#byPriority)
      if (lane.hasNext && this.#admitsFrom(lane.name) <= now) (lane.isShared ? shared : own).push(lane);
    const { limit } = this.#health.limit;
    const { patienceMs } = this.#policy;
    const turns = turnsOf(shared, {
      limit,
      running: this.#sharedInUse,
      last: this.#lastShared,
      patienceMs,
      now,
    });
    return own.length === 0 ? turns : [...own, ...turns];
  }

  /** Offers slots to the lanes, one at a time, until none starts anything more. */
  #fill(now: number): void {
    this.#isFilling = true;
    let starts: number;
    do {
      starts = this.#starts;
      if (!this.#byPriority.some(({ hasNext }) => hasNext)) break;
      const turns = this.#turns(now);
      for (const lane of this.#byPriority) if (!turns.includes(lane)) lane.pause();
      for (const lane of turns) if (this.#starts === starts) lane.offer(now);
    } while (this.#starts !== starts);
    this.#isFilling = false;
  }

  /** Starts what may start now, releases the producers whose lanes have room, and sets the wake timer. */
  #update(): void {
    if (this.#isStopping || this.#isFilling) return;
    const now = this.#clock.now();
    if (this.#tick(now)) this.#notify();
    this.#fill(now);
    for (const name of LANES) {
      const producers = this.#producers[name];
      if (producers.size === 0) continue;
      let room = this.#room(name, now);
      for (const producer of producers) {
        if (room <= 0) break;
        room -= 1;
        producers.delete(producer);
        producer.resolve();
      }
    }
    this.#setTimer(now);
  }

  /** Time has passed. @returns whether circuit or pause changed, or the end of the pause has another date */
  #tick(now: number): boolean {
    const isHalfOpen = this.#health.breaker.tick(now);
    if (this.#pause === undefined) return isHalfOpen;
    if (now >= this.#pause.until) this.#pause = undefined;
    const isSame = this.#pause !== undefined && this.#paused?.until === this.#knownUntil;
    this.#knownUntil = this.#paused?.until;
    return isHalfOpen || !isSame;
  }

  /**
   * Sets the wake timer for the first moment at which time alone lets something start; an earlier one may stand.
   *
   * @param now when it was last decided what may start. Not later: what became free since then would be missed.
   */
  #setTimer(now: number): void {
    let next = Number.POSITIVE_INFINITY;
    const consider = (time = Number.POSITIVE_INFINITY) => {
      if (time > now && time < next) next = time;
    };
    consider(this.#health.breaker.probeAt);
    consider(this.#health.busyPause.until);
    consider(this.#pause?.until);
    for (const { lateAt } of this.#byPriority) consider(lateAt);
    if (next === Number.POSITIVE_INFINITY) return;
    const at = Math.min(next, now + Math.max(SLEEP_MS, (next - now) * SLEEP_SHARE));
    if (this.#timerAt <= at) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#clock.after(Math.max(0, Math.ceil(at - this.#clock.now())), () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#update();
    });
  }

  get #paused(): Paused | undefined {
    if (this.#pause === undefined) return undefined;
    const { since, until } = this.#pause;
    return { since, ...(Number.isFinite(until) ? { until } : {}) };
  }

  #notify(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#log.error({ err: error }, `A listener of the queue failed: ${messageOf(error)}`);
      }
    }
  }
}
