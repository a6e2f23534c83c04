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
  timer?: Timer | undefined;
  /** When the timer ends, in ms since the epoch. */
  nextAt?: number | undefined;
  /** Whether its time has come: it waits for room, or runs. */
  isDue: boolean;
  run?: Promise<RunResult> | undefined;
}

/**
 * Runs mirrors: each when its time comes, which is soon after the start, then every `every` or so, earlier after a failure and when
 * a person edited its file; and when a person asks. Two runs of the same mirror go one after the other.
 *
 * Life: mirrors are added and removed at any time. `start` begins to run them by itself, `stop` calls off what is under way and
 * resolves when nothing is. A mirror that is removed is called off, and never runs again.
 */
export class Scheduler {
  readonly #running = new Set<Promise<RunResult>>();
  readonly #deps: SchedulerDeps;
  readonly #tasks = new Map<Mirror, Task>();
  readonly #files = new PQueue({ concurrency: AT_ONCE });
  readonly #stopping = new AbortController();
  readonly #dueRuns = new Set<Promise<void>>();
  #onFailure: ((error: unknown) => void) | undefined;
  #looking: Timer | undefined;

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
    this.#looking?.cancel();
    for (const { timer } of this.#tasks.values()) timer?.cancel();
    await Promise.all(this.#dueRuns);
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** Resolves when none of these is under way any more. */
  async remove(mirrors: readonly Mirror[]): Promise<void> {
    const runs = mirrors.map((mirror) => {
      const task = this.#tasks.get(mirror);
      this.#tasks.delete(mirror);
      task?.timer?.cancel();
      task?.calledOff.abort(replaced(mirror));
      return task?.run;
    });
    await Promise.allSettled(runs);
  }

  /** How many mirrors are being worked on. */
  get underWay(): number {
    return this.#running.size;
  }

  isRunning(mirror: Mirror): boolean {
    return this.#tasks.get(mirror)?.run !== undefined;
  }

  /** In ms since the epoch; undefined while nothing is planned. */
  nextAt(mirror: Mirror): number | undefined {
    return this.#tasks.get(mirror)?.nextAt;
  }

  /** Plans a mirror anew that knows when it runs next, unless its own end plans that, or a failure is tried again at its own pace. */
  replan(mirror: Mirror): void {
    const task = this.#tasks.get(mirror);
    const ms = mirror.nextIn?.();
    if (task === undefined || task.run !== undefined || ms === undefined) return;
    if (!this.#deps.hasFailed(mirror)) this.#plan(mirror, task, ms);
  }

  /**
   * Runs a mirror now, or after the run of it that is under way.
   *
   * @throws MirrorError MIRROR_REPLACED when it was removed; else as `runMirror`
   */
  async run(mirror: Mirror, options: FollowOptions): Promise<RunResult> {
    const task = this.#tasks.get(mirror);
    while (task?.run !== undefined) await task.run.catch(() => {});
    if (task === undefined || task.calledOff.signal.aborted) throw replaced(mirror);
    const signal = AbortSignal.any([task.calledOff.signal, this.#stopping.signal, options.signal]);
    const run = this.#deps.run(mirror, { ...options, signal });
    task.run = run;
    this.#running.add(run);
    try {
      const result = await run;
      if (this.#tasks.has(mirror)) this.#planNext(mirror, task, result);
      return result;
    } catch (error) {
      throw task.calledOff.signal.aborted ? replaced(mirror) : error;
    } finally {
      this.#running.delete(run);
      task.run = undefined;
    }
  }

  #planFirst(mirror: Mirror, task: Task): void {
    const { random } = this.#deps;
    this.#plan(mirror, task, mirror.nextIn?.() ?? random() * Math.min(mirror.every, FIRST_WITHIN_MS));
    if (mirror.looksEdited !== undefined) this.#looking ??= this.#lookSoon();
  }

  #planNext(mirror: Mirror, task: Task, { end, report }: RunResult): void {
    if (end === 'over') {
      task.timer?.cancel();
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
    task.timer?.cancel();
    if (this.#onFailure === undefined || this.#stopping.signal.aborted) return;
    task.nextAt = Math.round(this.#deps.clock.now() + ms);
    this.#wait(mirror, task, task.nextAt);
  }

  #wait(mirror: Mirror, task: Task, until: number): void {
    const { clock } = this.#deps;
    const ms = Math.min(until - clock.now(), LONGEST_TIMER_MS);
    task.timer = clock.after(ms, () => {
      if (clock.now() < until) this.#wait(mirror, task, until);
      else this.#due(mirror, task);
    });
  }

  /** Begins as soon as there is room. */
  #due(mirror: Mirror, task: Task): void {
    task.timer?.cancel();
    task.nextAt = undefined;
    if (task.isDue || this.#stopping.signal.aborted) return;
    task.isDue = true;
    const run = () => this.#runDue(mirror, task);
    // A pass takes as long as there are items, and asks for one at a time.
    const ended = (mirror.identity.kind === 'citations' ? run() : this.#files.add(run)).finally(() => {
      this.#dueRuns.delete(ended);
    });
    this.#dueRuns.add(ended);
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

  #lookSoon(): Timer | undefined {
    const isStarted = this.#onFailure !== undefined && !this.#stopping.signal.aborted;
    return isStarted ? this.#deps.clock.after(LOOK_MS, () => void this.#lookForEdits()) : undefined;
  }

  /** What a person did to a file is not left until the next run. */
  async #lookForEdits(): Promise<void> {
    let edited = 0;
    for (const [mirror, task] of this.#tasks) {
      if (mirror.looksEdited === undefined) continue;
      edited += 1;
      if (task.isDue || task.run !== undefined || this.#deps.hasFailed(mirror)) continue;
      // What cannot be looked at is for a run to find out: it concerns this one mirror.
      if (await mirror.looksEdited().catch(() => true)) this.#due(mirror, task);
    }
    this.#looking = edited > 0 ? this.#lookSoon() : undefined;
  }
}

function replaced({ name }: Mirror): MirrorError {
  return new MirrorError('MIRROR_REPLACED', JSON.stringify(name));
}
