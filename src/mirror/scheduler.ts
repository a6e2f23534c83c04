import PQueue from 'p-queue';
import type { Clock, Timer } from '../lib/clock.js';
import { MirrorError } from './errors.js';
import type { FollowOptions, Mirror } from './mirror.js';
import { isCancelled, type RunResult } from './mirror-run.js';

/** The files that are written at a time. Passes over citations run beside them. */
const CONCURRENT_FILES = 4;
/** The interval at which a mirror is polled for a reason to run early, in ms. */
const POLL_MS = 2_000;
/** The delay of another run after one that found the file being written, in ms. */
const BUSY_RETRY_MS = 3_000;
/** All first runs begin within this time, in ms. A mirror that runs more often begins sooner. */
const FIRST_WITHIN_MS = 10_000;
/** The delay of the retry after the first failure, in ms. Doubles with each further failure. */
const RETRY_MS = 30_000;
/** The jitter of a delay, as a fraction of it. */
const JITTER = 0.1;
/** The longest timer, in ms. Timers stand still while the machine is suspended. */
const LONGEST_TIMER_MS = 3_600_000;

/** The options of a run. Its signal is the one of the caller. */
type RunOptions = Omit<FollowOptions, 'signal'> & { readonly signal?: AbortSignal };

/** Runs the mirrors that are due. */
export interface MirrorRunner {
  run(mirror: Mirror, options: FollowOptions): Promise<RunResult>;
  /** Called for a mirror that ended: it has nothing left to follow. */
  ended(mirror: Mirror): void;
}

export interface SchedulerDeps {
  readonly clock: Clock;
  /** Returns 0 to 1, for jitter. */
  readonly random: () => number;
  readonly runner: MirrorRunner;
}

/** The plan of one mirror, and its run. */
interface Task {
  readonly mirror: Mirror;
  /**
   * Cancels the current run. Each run has a new one: in Node 20, a signal keeps all signals that
   * `AbortSignal.any` derived from it in memory.
   */
  cancellation: AbortController;
  timer?: Timer;
  /** When it runs next, in ms since the epoch. Undefined while it is due, or runs. */
  nextAt?: number | undefined;
  run?: Promise<RunResult> | undefined;
  /** Whether the last run failed. Then the mirror is not polled, and waits for its retry. */
  hasFailed: boolean;
}

/**
 * Runs mirrors. A mirror is
 *
 * - *planned*: the time of its next run is known. Entered when the scheduler starts or the mirror
 *   is added (a run within seconds), and when a run has ended (a run after `every` with jitter, or
 *   sooner after a failure). Meanwhile it is polled, and becomes due early if it wants to run.
 * - *due*: it waits in a queue. Entered at its time, or by `run`. A run that a person asked for
 *   goes first.
 * - *running*: entered when the queue has room. It has one run at a time: another call of `run`
 *   waits for the end.
 * - *removed*: entered by `remove` or `stop`, which cancel its run, and when the mirror has ended.
 *   It never runs again.
 *
 * Mirrors may be added and removed at any time. Before `start`, nothing is planned, and mirrors run
 * by `run` only. `stop` cancels all runs and resolves when they have ended.
 */
export class Scheduler {
  readonly #tasks = new Map<Mirror, Task>();
  readonly #files = new PQueue({ concurrency: CONCURRENT_FILES });
  /** Passes over citations. They take long, and send one request at a time. */
  readonly #passes = new PQueue();
  readonly #stopping = new AbortController();
  #onFailure: ((error: unknown) => void) | undefined;

  constructor(private readonly deps: SchedulerDeps) {}

  add(mirror: Mirror): void {
    const task: Task = { mirror, cancellation: new AbortController(), hasFailed: false };
    this.#tasks.set(mirror, task);
    this.#planFirst(task);
  }

  /** @param onFailure called with an error that no mirror reports, such as a full disk or a bug */
  start(onFailure: (error: unknown) => void): void {
    this.#onFailure = onFailure;
    for (const task of this.#tasks.values()) this.#planFirst(task);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const { timer, cancellation } of this.#tasks.values()) {
      timer?.cancel();
      cancellation.abort();
    }
    await Promise.all([this.#files.onIdle(), this.#passes.onIdle()]);
  }

  /** Removes mirrors. Resolves when their runs have ended. */
  async remove(mirrors: readonly Mirror[]): Promise<void> {
    const runs = mirrors.map((mirror) => {
      const task = this.#tasks.get(mirror);
      this.#tasks.delete(mirror);
      task?.timer?.cancel();
      task?.cancellation.abort(replaced(mirror));
      return task?.run;
    });
    await Promise.allSettled(runs);
  }

  /** Returns whether any mirror runs or is due. */
  get isBusy(): boolean {
    return this.#files.size + this.#files.pending + this.#passes.pending > 0;
  }

  /** Returns whether a mirror runs, and the time of its planned run in ms since the epoch. */
  planOf(mirror: Mirror): { readonly running: boolean; readonly nextAt?: number | undefined } {
    const { run, nextAt } = this.#tasks.get(mirror) ?? {};
    return { running: run !== undefined, nextAt };
  }

  /**
   * Runs a mirror as soon as there is room, and after its current run.
   *
   * @throws MirrorError MIRROR_REPLACED if it was removed, or ended; else as `runMirror`
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
    task.cancellation = new AbortController();
    const { signal: asked } = options;
    const signals = [task.cancellation.signal, ...(asked === undefined ? [] : [asked])];
    task.run = this.deps.runner.run(mirror, { ...options, signal: AbortSignal.any(signals) });
    try {
      const result = await task.run;
      if (!this.#isRemoved(task)) this.#planNext(task, result);
      return result;
    } catch (error) {
      // The planned time stays. It may have passed meanwhile, without a timer.
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
    switch (end) {
      case 'ended':
        this.#tasks.delete(mirror);
        this.deps.runner.ended(mirror);
        break;
      case 'failed':
        this.#retry(task, report.failures ?? 1);
        break;
      case 'busy':
        this.#plan(task, BUSY_RETRY_MS);
        break;
      default:
        this.#plan(task, mirror.nextIn?.() ?? this.#jittered(mirror.every));
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

  /** Sets the timer for the next run, or for the next poll. */
  #wait(task: Task): void {
    const { mirror, nextAt, timer } = task;
    if (nextAt === undefined || this.#isRemoved(task)) return;
    const { clock } = this.deps;
    const longest = mirror.wantsRun === undefined ? LONGEST_TIMER_MS : POLL_MS;
    timer?.cancel();
    task.timer = clock.after(Math.min(nextAt - clock.now(), longest), () => void this.#poll(task));
  }

  /** Runs a mirror whose time has come, or that wants to run. Otherwise sets the timer again. */
  async #poll(task: Task): Promise<void> {
    const { mirror, nextAt = Number.POSITIVE_INFINITY } = task;
    const isDue = nextAt <= this.deps.clock.now() || (!task.hasFailed && (await wantsRun(mirror)));
    if (task.run !== undefined || this.#isRemoved(task)) return;
    if (isDue) await this.#runDue(task);
    else this.#wait(task);
  }

  async #runDue(task: Task): Promise<void> {
    task.timer?.cancel();
    task.nextAt = undefined;
    try {
      await this.run(task.mirror, { accepted: [] });
    } catch (error) {
      if (this.#isRemoved(task)) return;
      this.#retry(task, 1);
      if (!isCancelled(error, this.#stopping.signal)) this.#onFailure?.(error);
    }
  }

  /** Returns whether a mirror never runs again. */
  #isRemoved(task: Task): boolean {
    return this.#stopping.signal.aborted || this.#tasks.get(task.mirror) !== task;
  }
}

/** Returns true also if the poll fails: the run then reports the error for this mirror. */
async function wantsRun(mirror: Mirror): Promise<boolean> {
  return (await mirror.wantsRun?.().catch(() => true)) ?? false;
}

function replaced({ name }: Mirror): MirrorError {
  return new MirrorError('MIRROR_REPLACED', { what: JSON.stringify(name) });
}
