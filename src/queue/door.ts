import { setMaxListeners } from 'node:events';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { Alarm } from './alarm.js';
import { Announcer } from './announcer.js';
import type { Ticket } from './breaker.js';
import { queueError } from './errors.js';
import { Health } from './health.js';
import { LaneState } from './lane.js';
import { eachLane, LANES, type Lane } from './lanes.js';
import { checkLimits, type DoorLimits } from './limits.js';
import type { Outcome } from './outcome.js';
import { DEFAULT_POLICY, type QueuePolicy } from './policy.js';
import { type Paused, Recess } from './recess.js';
import { Roll } from './roll.js';
import { Slots } from './slots.js';
import type { DoorStatus } from './status.js';
import { type Result, Task } from './task.js';
import { Waiters } from './waiters.js';

export interface DoorOptions extends DoorLimits {
  /** What the error of a task says about the peer. */
  readonly classify: (error: unknown) => Outcome;
  /** Deviations from `DEFAULT_POLICY`. */
  readonly policy?: Partial<QueuePolicy>;
  readonly clock: Clock;
  readonly log: Logger;
  /** What the peer is called in the log. */
  readonly peerName: string;
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
}

/**
 * The one door to the network: every request to the peer is a task that passes here.
 *
 * A task enters by `run` and waits in its lane until all of these let it start: the rate and concurrency of the lane,
 * the `Slots` that tasks run in, and the `Health` of the peer: how much it bears, whether it asked for a
 * pause, whether it is there at all. The end of each task is told to all of them, and what may start now is started.
 *
 * - *Serving*: as above.
 * - *Paused* by a person, entered by `pause`: what runs may end, and only `interactive` starts; `resume`, or its time, ends
 *   it (see `Recess`).
 * - *Stopping*, entered by `stop`: what waits is rejected with QUEUE_STOPPED and nothing more starts; what runs may end
 *   within the grace, then is told to abort, and given up if it does not.
 *
 * `interactive` and `mirror` have slots of their own; `interactive` passes pause and circuit. Nothing waits here that need not: whoever has a
 * backlog awaits `ready` before each `run`, and keeps the backlog.
 */
export class Door {
  readonly #classify: (error: unknown) => Outcome;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #policy: QueuePolicy;
  #maxConcurrency: number;
  readonly #health: Health;
  readonly #recess: Recess;
  readonly #lanes: Readonly<Record<Lane, LaneState>>;
  readonly #producers: Readonly<Record<Lane, Waiters>>;
  readonly #slots: Slots;
  readonly #listeners = new Set<() => void>();
  readonly #roll = new Roll();
  #taskCount = 0;
  readonly #alarm: Alarm;
  #isStopping = false;

  /** @throws QueueError QUEUE_OPTION for a rate or concurrency that is none */
  constructor(options: DoorOptions) {
    const { lanes, maxConcurrency, classify, clock, log, peerName, random = Math.random } = options;
    checkLimits(options);
    this.#classify = classify;
    this.#clock = clock;
    this.#log = log;
    this.#maxConcurrency = maxConcurrency;
    this.#policy = Object.freeze({ ...DEFAULT_POLICY, ...options.policy });
    const announcer = new Announcer(log, peerName, this.#policy);
    this.#health = new Health(clock, announcer, this.#policy, maxConcurrency, random);
    this.#recess = new Recess(clock);
    this.#alarm = new Alarm(clock, () => this.#pump());
    this.#lanes = eachLane((name) => new LaneState(name, lanes[name]));
    this.#producers = eachLane(() => new Waiters());
    this.#slots = new Slots({
      ...{ lanes: this.#lanes, patienceMs: this.#policy.patienceMs, clock },
      shared: () => this.#health.slots,
      admitsFrom: (lane) => this.#admitsFrom(lane),
      onFree: () => this.#pump(),
    });
  }

  /**
   * Runs `work` when its lane's turn comes; settles as it does.
   *
   * `work` gets a signal that aborts with the caller's, or at the end of the grace when the door stops, and has to end
   * soon after (`policy.abortMs`).
   *
   * @throws QueueError QUEUE_STOPPED when the door stops first; the signal's reason when it aborts first
   */
  run<T>(
    lane: Lane,
    work: (signal: AbortSignal) => Promise<T>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<T> {
    const { signal } = options;
    if (this.#isStopping) return Promise.reject(queueError('QUEUE_STOPPED'));
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      const onAbort = () => {
        if (this.#roll.isWaiting(task)) task.giveUp(signal?.reason);
        else task.abort(signal?.reason);
      };
      const onSettled = () => {
        signal?.removeEventListener('abort', onAbort);
        this.#settled(lane, task);
      };
      this.#taskCount += 1;
      const settle = { resolve, reject, onSettled };
      const task = new Task(String(this.#taskCount), work, settle, this.#clock, this.#policy.abortMs);
      if (signal) {
        // One signal may well end every task there is.
        setMaxListeners(0, signal);
        signal.addEventListener('abort', onAbort);
      }
      this.#enter(lane, task);
    });
  }

  /**
   * Resolves when a task of this lane would start at once, or as the next of its lane: not while the circuit or a pause
   * keeps the lane back, nor while as many wait already as could start together.
   *
   * Meant for one producer a lane that awaits it before each `run`; then no more than that many ever wait.
   *
   * @throws QueueError QUEUE_STOPPED when the door stops; the signal's reason when it aborts first
   */
  async ready(lane: Lane, signal?: AbortSignal): Promise<void> {
    if (this.#isStopping) throw queueError('QUEUE_STOPPED');
    signal?.throwIfAborted();
    const producers = this.#producers[lane];
    const now = this.#clock.monotonic();
    if (producers.size === 0 && this.#slots.room(lane, now) > 0) return;
    const released = producers.wait(signal);
    this.#setAlarm(now);
    await released;
  }

  /** Whether `ready` would let a producer of this lane go on at this moment. */
  hasRoom(lane: Lane): boolean {
    return !this.#isStopping && this.#slots.room(lane, this.#clock.monotonic()) > 0;
  }

  /** Whether anything runs or waits in this lane. */
  isBusy(lane: Lane): boolean {
    return this.#lanes[lane].running + this.#lanes[lane].waiting > 0;
  }

  /** Whether a task waits in this lane that nothing keeps from starting at this moment. */
  mayStart(lane: Lane): boolean {
    return !this.#isStopping && this.#slots.mayStart(lane);
  }

  /** Which of the tasks of this lane that run began first; undefined when none runs. */
  oldest(lane: Lane): string | undefined {
    const [first] = this.#lanes[lane].underWay;
    return first;
  }

  /** Since when the peer answers, in ms since the epoch; undefined before its first answer and while in trouble. */
  get upSince(): number | undefined {
    return this.#health.upSince;
  }

  /** Since when the peer is in trouble, in ms since the epoch; undefined while the circuit is closed. */
  get downSince(): number | undefined {
    return this.#health.downSince;
  }

  /** For how long the peer has been answering, in ms; 0 while it is in trouble. */
  get answeringForMs(): number {
    return this.#health.answeringForMs;
  }

  status(): DoorStatus {
    const { pausedUntil, slots } = this.#health;
    const { paused } = this.#recess;
    return {
      circuit: this.#health.circuit(),
      ...(pausedUntil === undefined ? {} : { pausedUntil }),
      ...(paused === undefined ? {} : { paused }),
      concurrency: { running: this.#slots.sharedInUse, limit: slots, max: this.#maxConcurrency },
      lanes: eachLane((name) => this.#lanes[name].status()),
    };
  }

  /** Lets the next probe start at once, for a person who mended something; a pause that the peer asked for stands. */
  tryNow(): void {
    this.#health.endWait();
    this.#pump();
  }

  /** A person lets the work rest: nothing but `interactive` starts any more. Again, it replaces the pause before. */
  pause(paused: Paused): void {
    this.#recess.begin(paused);
    this.#tellListeners();
    this.#pump();
  }

  /** The work goes on. */
  resume(): void {
    if (!this.#recess.end()) return;
    this.#tellListeners();
    this.#pump();
  }

  /**
   * From now on other limits hold. What runs goes on and counts; what is above a lower limit ends by itself.
   *
   * @throws QueueError QUEUE_OPTION, and then nothing changed
   */
  limit(limits: DoorLimits): void {
    checkLimits(limits);
    for (const name of LANES) this.#lanes[name].limit(limits.lanes[name]);
    this.#maxConcurrency = limits.maxConcurrency;
    this.#health.maxConcurrency = limits.maxConcurrency;
    this.#pump();
  }

  /** Calls `listener` whenever circuit or pause change. @returns what ends that */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Ends the door's work; resolves when every task is settled. Called again with a shorter grace, that one holds.
   *
   * @param graceMs how long running tasks may go on before they are told to abort
   */
  async stop(graceMs: number): Promise<void> {
    const reason = queueError('QUEUE_STOPPED');
    this.#isStopping = true;
    this.#alarm.cancel();
    for (const name of LANES) this.#producers[name].rejectAll(reason);
    await this.#roll.sendAway(reason, graceMs, this.#clock);
  }

  #enter<T>(lane: Lane, task: Task<T>): void {
    const now = this.#clock.monotonic();
    this.#roll.enter(task);
    this.#slots
      .enter(lane, task.id, () => this.#perform(this.#lanes[lane], task))
      .catch((error: unknown) => this.#log.error({ err: error }, 'The queue failed at the end of a task.'));
    if (this.#roll.isWaiting(task)) this.#setAlarm(now);
  }

  /** Called in the instant that the task has a slot. */
  async #perform<T>(lane: LaneState, task: Task<T>): Promise<void> {
    this.#roll.begin(task);
    lane.underWay.add(task.id);
    const ticket = this.#health.started(lane.name, this.#clock.monotonic());
    const result = await task.begin();
    try {
      this.#ended(lane, ticket, result, task.isAborted);
    } finally {
      lane.underWay.delete(task.id);
      if (result.ok) task.resolve(result.value);
      else task.giveUp(result.error);
    }
  }

  #ended(lane: LaneState, ticket: Ticket, result: Result<unknown>, isAborted: boolean): void {
    const { isFull } = this.#slots;
    this.#slots.leave(lane.name);
    const outcome = this.#outcome(result, isAborted);
    if (outcome.kind === 'answered') lane.latencies.add(this.#clock.monotonic() - ticket.startedAt);
    if (!result.ok && outcome.kind !== 'aborted') lane.failed += 1;
    const error = result.ok ? undefined : result.error;
    if (this.#health.ended(ticket, outcome, error, isFull)) this.#tellListeners();
  }

  #outcome(result: Result<unknown>, isAborted: boolean): Outcome {
    if (result.ok) return { kind: 'answered' };
    return isAborted ? { kind: 'aborted' } : this.#classify(result.error);
  }

  #settled<T>(lane: Lane, task: Task<T>): void {
    if (this.#roll.leave(task)) this.#lanes[lane].tasks.remove(task.id);
  }

  /** From when on nothing but its own limits keeps a lane back, on the monotonic clock. */
  #admitsFrom(lane: Lane): number {
    return Math.max(this.#health.admitsFrom(lane), this.#recess.admitsFrom(lane));
  }

  /** Starts what may start now, calls the producers whose lanes have room, and sets the alarm for what comes next. */
  #pump(): void {
    if (this.#isStopping) return;
    const now = this.#clock.monotonic();
    const isChanged = [this.#health.tick(), this.#recess.tick()].includes(true);
    if (isChanged) this.#tellListeners();
    this.#slots.fill();
    for (const name of LANES) {
      const producers = this.#producers[name];
      if (producers.size > 0) producers.release(this.#slots.room(name, now));
    }
    this.#setAlarm(now);
  }

  /**
   * Sets the alarm for the first moment at which time alone lets something start; an earlier one may stand.
   *
   * @param now when it was last looked at what may start. Not later: what became free since then was seen by nobody.
   */
  #setAlarm(now: number): void {
    const ticks = [this.#health.nextTickAt, this.#recess.nextTickAt];
    const start = this.#slots.nextStartAt(now, (lane) => this.#producers[lane].size > 0);
    this.#alarm.setFor(Math.min(start, ...ticks.map((tick) => tick ?? Number.POSITIVE_INFINITY)));
  }

  #tellListeners(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#log.error({ err: error }, `A listener of the queue failed: ${messageOf(error)}`);
      }
    }
  }
}
