import PQueue from 'p-queue';
import type { Clock, Timer } from '../lib/clock.js';
import { MirrorError } from './errors.js';
import { type FollowOptions, isCalledOff, type Mirror, type RunResult } from './mirror.js';

/** Files that are worked on at a time; passes over citations go beside them. */
const AT_ONCE = 4;
/** How often a mirror is asked whether it wants a run before its time, in ms. */
const LOOK_MS = 2_000;
/** How long after somebody was seen writing a file it is tried again, in ms. */
const LATER_MS = 3_000;
/** All first runs begin within this time, in ms; sooner where the mirror runs more often. */
const FIRST_WITHIN_MS = 10_000;
/**
 * How long after the first failure it is tried again, in ms; twice as long after each that follows.
 */
const RETRY_MS = 30_000;
/** How far from `every` a run may be, as a share of it. */
const JITTER = 0.1;
/**
 * Timers stand still while the machine is suspended: they wait no longer than this, in ms, before
 * the time is looked at again.
 */
const LONGEST_TIMER_MS = 3_600_000;

/** What a run is asked with; its signal is that of whoever asked. */
type RunOptions = Omit<FollowOptions, 'signal'> & { readonly signal?: AbortSignal };

export interface SchedulerDeps {
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
  readonly run: (mirror: Mirror, options: FollowOptions) => Promise<RunResult>;
  /** Called for a mirror of which nothing is left to follow. */
  readonly onOver: (mirror: Mirror) => void;
}

/** What is planned and under way of one mirror. */
interface Task {
  readonly mirror: Mirror;
  /**
   * Ends the run under way. One for each run: a signal remembers for life all that
   * `AbortSignal.any` made of it (Node 20).
   */
  calledOff: AbortController;
  timer?: Timer;
  /**
   * When it runs next, in ms since the epoch; undefined while its time has come, and it waits for
   * room or runs.
   */
  nextAt?: number | undefined;
  run?: Promise<RunResult> | undefined;
  /** Whether the last run failed: then the next try comes at its own pace. */
  hasFailed: boolean;
}

/**
 * Runs mirrors: each when its time comes, which is soon after the start, then every `every` or so,
 * earlier after a failure and when the mirror wants one; and when a person asks, before those whose
 * time has come. Two runs of the same mirror go one after the other.
 *
 * Life: mirrors are added and removed at any time. `start` begins to run them by itself, `stop`
 * calls off what is under way and resolves when nothing is. A mirror that is removed is called off,
 * and never runs again.
 */
export class Scheduler {
  readonly #tasks = new Map<Mirror, Task>();
  readonly #files = new PQueue({ concurrency: AT_ONCE });
  /** A pass takes as long as there are items, and asks for one at a time. */
  readonly #passes = new PQueue();
  readonly #stopping = new AbortController();
  #onFailure: ((error: unknown) => void) | undefined;

  constructor(private readonly deps: SchedulerDeps) {}

  add(mirror: Mirror): void {
    const task: Task = { mirror, calledOff: new AbortController(), hasFailed: false };
    this.#tasks.set(mirror, task);
    this.#planFirst(task);
  }

  /**
   * @param onFailure is given an error that is not one of a single mirror: a disk that fails, a bug
   */
  start(onFailure: (error: unknown) => void): void {
    this.#onFailure = onFailure;
    for (const task of this.#tasks.values()) this.#planFirst(task);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const { timer, calledOff } of this.#tasks.values()) {
      timer?.cancel();
      calledOff.abort();
    }
    await Promise.all([this.#files.onIdle(), this.#passes.onIdle()]);
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

  /** Whether any mirror is being worked on, or about to be. */
  get isBusy(): boolean {
    return this.#files.size + this.#files.pending + this.#passes.pending > 0;
  }

  /**
   * Whether a mirror runs, and when it does next, in ms since the epoch; undefined while nothing is
   * planned.
   */
  planOf(mirror: Mirror): { readonly running: boolean; readonly nextAt?: number | undefined } {
    const { run, nextAt } = this.#tasks.get(mirror) ?? {};
    return { running: run !== undefined, nextAt };
  }

  /**
   * Runs a mirror as soon as there is room, and after the run of it that is under way.
   *
   * @throws MirrorError MIRROR_REPLACED when it was removed, or is over; else as `runMirror`
   */
  run(mirror: Mirror, options: RunOptions): Promise<RunResult> {
    const queue = mirror.identity.kind === 'citations' ? this.#passes : this.#files;
    return queue.add(() => this.#runNow(mirror, options), { priority: options.isAsked ? 1 : 0 });
  }

  /** Plans the next run of a mirror as if it were new. */
  runSoon(mirror: Mirror): void {
    const task = this.#tasks.get(mirror);
    if (task !== undefined && task.run === undefined) this.#planFirst(task);
  }

  async #runNow(mirror: Mirror, options: RunOptions): Promise<RunResult> {
    const task = this.#tasks.get(mirror);
    while (task?.run !== undefined) await task.run.catch(() => {});
    if (task === undefined || this.#tasks.get(mirror) !== task) throw replaced(mirror);
    this.#stopping.signal.throwIfAborted();
    task.calledOff = new AbortController();
    const signal = AbortSignal.any([
      task.calledOff.signal,
      ...(options.signal ? [options.signal] : []),
    ]);
    task.run = this.deps.run(mirror, { ...options, signal });
    try {
      const result = await task.run;
      if (!this.#isOver(task)) this.#planNext(task, result);
      return result;
    } catch (error) {
      // Its time may have come and gone meanwhile.
      this.#wait(task);
      throw this.#tasks.get(mirror) === task ? error : replaced(mirror);
    } finally {
      task.run = undefined;
    }
  }

  #planFirst(task: Task): void {
    const { mirror } = task;
    const ms = this.deps.random() * Math.min(mirror.every, FIRST_WITHIN_MS);
    this.#plan(task, mirror.nextIn?.() ?? ms);
  }

  #planNext(task: Task, { end, report }: RunResult): void {
    const { mirror } = task;
    task.hasFailed = end === 'failed';
    if (end === 'over') {
      this.#tasks.delete(mirror);
      this.deps.onOver(mirror);
    } else if (end === 'failed') {
      this.#retry(task, report.failures ?? 1);
    } else {
      const ms = end === 'later' ? LATER_MS : mirror.nextIn?.();
      this.#plan(task, ms ?? this.#jittered(mirror.every));
    }
  }

  #retry(task: Task, failures: number): void {
    const ms = Math.min(task.mirror.every, RETRY_MS * 2 ** Math.min(failures - 1, 30));
    this.#plan(task, this.#jittered(ms));
  }

  #jittered(ms: number): number {
    return ms * (1 - JITTER + 2 * JITTER * this.deps.random());
  }

  #plan(task: Task, ms: number): void {
    if (this.#onFailure === undefined) return;
    task.nextAt = Math.round(this.deps.clock.now() + ms);
    this.#wait(task);
  }

  /** Waits for the time of the next run, or for the next look whether one is wanted before. */
  #wait(task: Task): void {
    const { mirror, nextAt, timer } = task;
    if (nextAt === undefined || this.#isOver(task)) return;
    const { clock } = this.deps;
    const longest = mirror.wantsRun === undefined ? LONGEST_TIMER_MS : LOOK_MS;
    timer?.cancel();
    task.timer = clock.after(Math.min(nextAt - clock.now(), longest), () => void this.#look(task));
  }

  /** Begins what is due, or wanted. */
  async #look(task: Task): Promise<void> {
    const { mirror, nextAt = Number.POSITIVE_INFINITY } = task;
    const isTime = nextAt <= this.deps.clock.now();
    // What cannot be looked at is for a run to find out: it concerns this one mirror.
    const isDue = isTime || (!task.hasFailed && (await mirror.wantsRun?.().catch(() => true)));
    if (task.run !== undefined || this.#isOver(task)) return;
    if (isDue) await this.#runDue(task);
    else this.#wait(task);
  }

  async #runDue(task: Task): Promise<void> {
    task.timer?.cancel();
    task.nextAt = undefined;
    try {
      await this.run(task.mirror, { accepted: [] });
    } catch (error) {
      if (this.#isOver(task)) return;
      this.#retry(task, 1);
      if (!isCalledOff(error, this.#stopping.signal)) this.#onFailure?.(error);
    }
  }

  /** Whether it never runs again. */
  #isOver(task: Task): boolean {
    return this.#stopping.signal.aborted || this.#tasks.get(task.mirror) !== task;
  }
}

function replaced({ name }: Mirror): MirrorError {
  return new MirrorError('MIRROR_REPLACED', JSON.stringify(name));
}
