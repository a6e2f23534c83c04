import PQueue from 'p-queue';
import type { Clock, Timer } from '../lib/clock.js';
import { MirrorError } from './errors.js';
import type { FollowOptions, Mirror } from './mirror.js';
import { isCalledOff, type RunResult } from './run.js';

/** Files that are worked on at a time; passes over citations go beside them. */
const AT_ONCE = 4;
/** How often files that a person edits are looked at, in ms. */
const LOOK_MS = 2_000;
/** How long after somebody was seen writing a file it is tried again, in ms. */
const LATER_MS = 3_000;
/** All first runs begin within this time, in ms; sooner where the mirror runs more often. */
const FIRST_WITHIN_MS = 10_000;
/** How long after the first failure it is tried again, in ms; twice as long after each that follows. */
const RETRY_MS = 30_000;
/** How far from `every` a run may be, as a share of it. */
const JITTER = 0.1;
/** Timers stand still while the machine is suspended: they wait no longer than this, in ms, before the time is looked at again. */
const LONGEST_TIMER_MS = 3_600_000;

export interface SchedulerDeps {
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
  readonly run: (mirror: Mirror, options: FollowOptions) => Promise<RunResult>;
  /** Whether its last run failed: then the next try comes at its own pace. */
  readonly hasFailed: (mirror: Mirror) => boolean;
  /** Called for a mirror of which nothing is left to follow. */
  readonly onOver: (mirror: Mirror) => void;
}

/** What is planned and under way of one mirror. */
interface Task {
  readonly calledOff: AbortController;
  /** When it runs next, in ms since the epoch. */
  nextAt?: number | undefined;
  /** Whether its time has come: it waits for room, or runs. */
  isDue: boolean;
  run?: Promise<RunResult> | undefined;
}

/**
 * Runs mirrors: each when its time comes, which is soon after the start, then every `every` or so, earlier after a failure and when
 * a person edited its file; and when a person asks. Two runs of the same mirror go one after the other. One timer, set to what comes
 * next, serves them all.
 *
 * Life: mirrors are added and removed at any time. `start` begins to run them by itself, `stop` calls off what is under way and
 * resolves when nothing is. A mirror that is removed is called off, and never runs again.
 */
export class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #tasks = new Map<Mirror, Task>();
  readonly #files = new PQueue({ concurrency: AT_ONCE });
  readonly #stopping = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  #onFailure: ((error: unknown) => void) | undefined;
  #timer: Timer | undefined;
  #isLooking = false;
  /** When the timer ends, in ms since the epoch. */
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
  }

  add(mirror: Mirror): void {
    const task: Task = { calledOff: new AbortController(), isDue: false };
    this.#tasks.set(mirror, task);
    this.#planFirst(mirror, task);
  }

  /** @param onFailure is given an error that is not one of a single mirror: a disk that fails, a bug */
  start(onFailure: (error: unknown) => void): void {
    this.#onFailure = onFailure;
    for (const [mirror, task] of this.#tasks) this.#planFirst(mirror, task);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.cancel();
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Resolves when none of these is under way any more. */
  async remove(mirrors: readonly Mirror[]): Promise<void> {
    const runs = mirrors.map((mirror) => {
      const task = this.#tasks.get(mirror);
      this.#tasks.delete(mirror);
      task?.calledOff.abort(replaced(mirror));
      return task?.run;
    });
    await Promise.allSettled(runs);
  }

  /** Whether any mirror is being worked on, or about to be. */
  get isBusy(): boolean {
    return this.#underWay.size > 0;
  }

  /** Whether a mirror runs, and when it does next, in ms since the epoch; undefined while nothing is planned. */
  planOf(mirror: Mirror | undefined): { readonly running: boolean; readonly nextAt?: number | undefined } {
    const task = mirror && this.#tasks.get(mirror);
    return { running: task?.run !== undefined, nextAt: task?.nextAt };
  }

  /** Plans a mirror anew that knows when it runs next, unless its own end plans that, or a failure is tried again at its own pace. */
  replan(mirror: Mirror): void {
    const task = this.#tasks.get(mirror);
    const ms = mirror.nextIn?.();
    if (task === undefined || task.isDue || task.run !== undefined || ms === undefined) return;
    if (!this.#deps.hasFailed(mirror)) this.#plan(mirror, task, ms);
  }

  /**
   * Runs a mirror now, or after the run of it that is under way.
   *
   * @throws MirrorError MIRROR_REPLACED when it was removed, or is over; else as `runMirror`
   */
  async run(mirror: Mirror, options: FollowOptions): Promise<RunResult> {
    const task = this.#tasks.get(mirror);
    while (task?.run !== undefined) await task.run.catch(() => {});
    if (task === undefined || this.#tasks.get(mirror) !== task) throw replaced(mirror);
    const signal = AbortSignal.any([task.calledOff.signal, this.#stopping.signal, options.signal]);
    task.run = this.#track(this.#deps.run(mirror, { ...options, signal }));
    try {
      const result = await task.run;
      if (this.#tasks.has(mirror)) this.#planNext(mirror, task, result);
      return result;
    } catch (error) {
      // Its time may have come and gone meanwhile.
      if (task.nextAt !== undefined) this.#wakeFor(mirror, task.nextAt);
      throw task.calledOff.signal.aborted ? replaced(mirror) : error;
    } finally {
      task.run = undefined;
    }
  }

  #planFirst(mirror: Mirror, task: Task): void {
    const { random } = this.#deps;
    this.#plan(mirror, task, mirror.nextIn?.() ?? random() * Math.min(mirror.every, FIRST_WITHIN_MS));
  }

  #planNext(mirror: Mirror, task: Task, { end, report }: RunResult): void {
    if (end === 'over') {
      this.#tasks.delete(mirror);
      this.#deps.onOver(mirror);
    } else if (end === 'failed') {
      this.#retry(mirror, task, report.failures ?? 1);
    } else {
      const ms = end === 'later' ? LATER_MS : mirror.nextIn?.();
      this.#plan(mirror, task, ms ?? this.#jittered(mirror.every));
    }
  }

  #retry(mirror: Mirror, task: Task, failures: number): void {
    const ms = Math.min(mirror.every, RETRY_MS * 2 ** Math.min(failures - 1, 30));
    this.#plan(mirror, task, this.#jittered(ms));
  }

  #jittered(ms: number): number {
    return ms * (1 - JITTER + 2 * JITTER * this.#deps.random());
  }

  #plan(mirror: Mirror, task: Task, ms: number): void {
    if (this.#onFailure === undefined) return;
    task.nextAt = Math.round(this.#deps.clock.now() + ms);
    this.#wakeFor(mirror, task.nextAt);
  }

  /** Sets the timer to the time of a run, or to the next look at a file that a person edits, unless it ends before. */
  #wakeFor(mirror: Mirror, nextAt: number): void {
    const { clock } = this.#deps;
    const now = clock.now();
    const at = Math.min(nextAt, now + (mirror.looksEdited === undefined ? LONGEST_TIMER_MS : LOOK_MS));
    if (at >= this.#timerAt || this.#stopping.signal.aborted) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = clock.after(at - now, () => void this.#look());
  }

  /** Begins what is due. What a person did to a file is not left until the next run. */
  async #look(): Promise<void> {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const waiting = [...this.#tasks].filter(([, task]) => !task.isDue && task.run === undefined);
    for (const [mirror, task] of waiting) {
      const { nextAt = Number.POSITIVE_INFINITY } = task;
      if (nextAt <= this.#deps.clock.now()) this.#due(mirror, task);
      else this.#wakeFor(mirror, nextAt);
    }
    // A disk may take its time, and the next look does not add to that.
    if (this.#isLooking) return;
    this.#isLooking = true;
    for (const [mirror, task] of waiting) {
      if (mirror.looksEdited === undefined || task.isDue || this.#deps.hasFailed(mirror)) continue;
      // What cannot be looked at is for a run to find out: it concerns this one mirror.
      const isEdited = await mirror.looksEdited().catch(() => true);
      if (isEdited && task.run === undefined) this.#due(mirror, task);
    }
    this.#isLooking = false;
  }

  /** Begins as soon as there is room. */
  #due(mirror: Mirror, task: Task): void {
    if (task.isDue) return;
    task.nextAt = undefined;
    task.isDue = true;
    const run = () => this.#runDue(mirror, task);
    // A pass takes as long as there are items, and asks for one at a time.
    this.#track(mirror.identity.kind === 'citations' ? run() : this.#files.add(run));
  }

  async #runDue(mirror: Mirror, task: Task): Promise<void> {
    const { signal } = this.#stopping;
    try {
      if (!signal.aborted) await this.run(mirror, { accepted: [], signal });
    } catch (error) {
      if (signal.aborted || !this.#tasks.has(mirror)) return;
      this.#retry(mirror, task, 1);
      if (!isCalledOff(error, signal)) this.#onFailure?.(error);
    } finally {
      task.isDue = false;
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const forget = () => void this.#underWay.delete(work);
    work.then(forget, forget);
    return work;
  }
}

function replaced({ name }: Mirror): MirrorError {
  return new MirrorError('MIRROR_REPLACED', JSON.stringify(name));
}
