import { type JobsOptions, Queue, QueueEvents, type QueueEventsListener } from 'bullmq';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { EVENTS_KEPT, PUSH_QUEUE, TEXT_KEPT_MS, WORKER_EVENT } from './protocol.js';
import type { RedisConnections } from './redis.js';

/**
 * A finished job stays in Redis for this long, so that a missed event can be made up for: a time in
 * s, and a number of jobs, which bounds the memory of Redis. The next run of the owner makes up for
 * those of documents, too, but continues no pushes.
 */
const FINISHED_KEPT = { age: TEXT_KEPT_MS / 1_000, count: 1_000 };
const FINISHED_PUSHES_KEPT = { age: 60, count: 1_000 };
/** Delay until events are read again after one that is not as it should be, in ms. */
const EVENTS_AGAIN_MS = 1_000;
const JOB_OPTIONS: JobsOptions = {
  attempts: 1,
  // A job that failed has no stack that anybody reads.
  stackTraceLimit: 0,
};
/** The most jobs that one `check` asks Redis about. */
const CHECKED_AT_ONCE = 200;
/** The most jobs of earlier runs that are looked at: under way, and as many that are done. */
const MAX_EARLIER = 1_000;
/**
 * Longest time without a word about a job, in ms. A worker whose disk hangs keeps its jobs for
 * ever. A batch of small files is read in seconds.
 */
const MAX_SILENCE_MS = 30 * 60_000;
const MAX_PUSH_SILENCE_MS = 2 * 60_000;

/**
 * The end of a job.
 *
 * - `done`: a worker returned a value.
 * - `failed`: it failed, or ended the workers that tried it. Others would fail as well.
 * - `lost`: nobody knows how it ended, or whether it will. Another attempt may go well.
 */
export type JobEnd =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'failed' }
  | { readonly kind: 'lost' };

/** The jobs that no worker has taken yet. */
export interface Backlog {
  readonly waiting: number;
  /** When the oldest of them was added, by the clock of the owner, in ms since the epoch. */
  readonly oldestSince?: number;
}

/** A job of an earlier epoch. */
export interface EarlierJob {
  readonly id: string;
  readonly data: unknown;
  /** The value that a worker returned; undefined if it is not done. */
  readonly result?: unknown;
}

const FAILED: JobEnd = { kind: 'failed' };
const LOST: JobEnd = { kind: 'lost' };

/** A job that was added, and whose end is not known yet. */
interface Outstanding {
  /** Whether Redis has said that it has the job. */
  isAdded: boolean;
  /** When it was added, or a worker said something about it. */
  lastReportAt: number;
  readonly end: (end: JobEnd) => void;
  readonly onProgress: (progress: unknown) => void;
}

interface JobQueueDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when a worker can do more or less work than before. */
  readonly onWorker?: () => void;
}

interface Events extends QueueEventsListener {
  [WORKER_EVENT]: () => void;
}

/**
 * One queue of BullMQ as the owner sees it. Redis may forget jobs at any time. Each job that was
 * added ends here once: with the result of a worker, as failed, or as lost.
 */
export class JobQueue {
  readonly #queue: Queue;
  readonly #events: QueueEvents;
  readonly #outstanding = new Map<string, Outstanding>();
  readonly #maxSilenceMs: number;
  readonly #options: JobsOptions;
  #added = 0;
  /** Removes the events that Redis has. */
  readonly #removeEvents: () => Promise<unknown>;
  #eventsAgain: Timer | undefined;
  #isClosed = false;

  constructor(
    name: string,
    private readonly epoch: string,
    prefix: string,
    connections: RedisConnections,
    private readonly deps: JobQueueDeps,
  ) {
    const isOfPushes = name === PUSH_QUEUE;
    this.#maxSilenceMs = isOfPushes ? MAX_PUSH_SILENCE_MS : MAX_SILENCE_MS;
    const kept = isOfPushes ? FINISHED_PUSHES_KEPT : FINISHED_KEPT;
    this.#options = { ...JOB_OPTIONS, removeOnComplete: kept, removeOnFail: kept };
    this.#queue = new Queue(name, {
      prefix,
      connection: connections.forCommands(),
      skipVersionCheck: true,
      streams: { events: { maxLen: EVENTS_KEPT } },
    });
    this.#removeEvents = () => connections.forCommands().del(this.#queue.toKey('events'));
    const model = connections.forWaiting();
    this.#events = new QueueEvents(name, {
      prefix,
      connection: model,
      skipVersionCheck: true,
      // From the first event that Redis still has: a job may end before the connection is there.
      lastEventId: '0-0',
      autorun: false,
    });
    // BullMQ has made a copy of it.
    model.disconnect();
    // A command that fails tells its caller. Events that are missed are made up for by `check`.
    this.#queue.on('error', () => {});
    this.#events.on('error', () => {});
    this.#events.on('completed', ({ jobId, returnvalue }) => {
      this.#end(jobId, { kind: 'done', value: returnvalue });
    });
    this.#events.on('failed', ({ jobId }) => this.#end(jobId, FAILED));
    this.#events.on('progress', ({ jobId, data }) => {
      const job = this.#outstanding.get(jobId);
      if (job === undefined) return;
      job.lastReportAt = deps.clock.now();
      job.onProgress(data);
    });
    this.#events.on<Events, typeof WORKER_EVENT>(WORKER_EVENT, () => deps.onWorker?.());
    this.#readEvents();
  }

  /** The number of jobs that were added and have not ended. */
  get size(): number {
    return this.#outstanding.size;
  }

  /** Adds a job, and resolves at its end. Never rejects. */
  async run(data: object, onProgress: (progress: unknown) => void = () => {}): Promise<JobEnd> {
    this.#added += 1;
    const id = `${this.epoch}-${this.#added}`;
    const { clock, log } = this.deps;
    return await new Promise<JobEnd>((end) => {
      const job = { isAdded: false, lastReportAt: clock.now(), end, onProgress };
      this.#outstanding.set(id, job);
      this.#queue
        .add('job', { ...data, epoch: this.epoch }, { ...this.#options, jobId: id })
        .then(() => {
          job.isAdded = true;
        })
        .catch((error: unknown) => {
          log.debug({ event: 'job-not-added' }, `a job was not added: ${messageOf(error)}`);
          this.#lose(id);
        });
    });
  }

  /**
   * Returns jobs of other epochs that workers have completed, in that order, and then those that
   * they do now. Leaves out damaged ones, and those beyond `MAX_EARLIER`.
   */
  async earlier(epochs: readonly string[]): Promise<readonly EarlierJob[]> {
    const list = async (state: 'active' | 'completed') =>
      await this.#queue.getRanges([state], 0, MAX_EARLIER - 1);
    // In this order, so that a job is not missed that ends meanwhile.
    const active = await list('active');
    const completed = (await list('completed')).toReversed();
    const ids = [...new Set([...completed, ...active])].filter((id) =>
      epochs.includes(id.replace(/-\d+$/, '')),
    );
    const found: EarlierJob[] = [];
    for (let from = 0; from < ids.length; from += CHECKED_AT_ONCE) {
      const some = ids.slice(from, from + CHECKED_AT_ONCE);
      const jobs = await Promise.allSettled(some.map((id) => this.#queue.getJob(id)));
      for (const [i, job] of jobs.entries()) {
        const id = some[i];
        if (id !== undefined && job.status === 'fulfilled' && job.value !== undefined)
          found.push({ id, data: job.value.data, result: job.value.returnvalue });
      }
    }
    return found;
  }

  /** Resolves at the end of a job of an earlier epoch. Never rejects. */
  async resume(id: string, onProgress: (progress: unknown) => void = () => {}): Promise<JobEnd> {
    return await new Promise<JobEnd>((end) => {
      const job = { isAdded: true, lastReportAt: this.deps.clock.now(), end, onProgress };
      this.#outstanding.set(id, job);
      // It may have ended before. If Redis does not answer, the next `check` looks again.
      this.#check(id, job).catch(() => {});
    });
  }

  /** Removes the jobs that wait: those of an earlier epoch. */
  async drain(): Promise<void> {
    await this.#queue.drain(true);
  }

  /** The number of jobs that no worker has taken yet. */
  async waiting(): Promise<number> {
    return await this.#queue.getWaitingCount();
  }

  /**
   * Returns that number, and since when the oldest of these jobs waits.
   *
   * @param wallAheadMs the lead of the wall clock, by which BullMQ dates jobs, in ms
   */
  async backlog(wallAheadMs: number): Promise<Backlog> {
    const waiting = await this.waiting();
    if (waiting === 0) return { waiting };
    const [oldest] = await this.#queue.getWaiting(0, 0);
    const added = Number(oldest?.timestamp);
    return Number.isSafeInteger(added)
      ? { waiting, oldestSince: added - wallAheadMs }
      : { waiting };
  }

  /**
   * Ends the jobs whose end was missed, and those that are damaged or not in Redis any more. Looks
   * at the jobs that were looked at longest ago.
   *
   * @throws Error if Redis answers for none of them
   */
  async check(): Promise<void> {
    const chosen = [...this.#outstanding]
      .filter(([, { isAdded }]) => isAdded)
      .slice(0, CHECKED_AT_ONCE);
    const looks = await Promise.allSettled(chosen.map(([id, job]) => this.#check(id, job)));
    const failed = looks.flatMap((look, i) =>
      look.status === 'rejected' ? [{ id: chosen[i]?.[0], why: look.reason as unknown }] : [],
    );
    if (failed.length === chosen.length && failed[0] !== undefined) throw failed[0].why;
    for (const { id } of failed) if (id !== undefined) this.#lose(id);
  }

  async #check(id: string, outstanding: Outstanding): Promise<void> {
    const job = await this.#queue.getJob(id);
    if (!this.#outstanding.delete(id)) return;
    this.#outstanding.set(id, outstanding);
    if (job === undefined) this.#end(id, LOST);
    else if (job.finishedOn !== undefined)
      this.#end(
        id,
        job.failedReason === undefined ? { kind: 'done', value: job.returnvalue } : FAILED,
      );
    else if (this.deps.clock.now() > outstanding.lastReportAt + this.#maxSilenceMs) this.#lose(id);
  }

  /** Ends all jobs as lost, and removes those that no worker has taken yet. */
  loseAll(): void {
    for (const id of [...this.#outstanding.keys()]) this.#lose(id);
  }

  /**
   * Reads events until `close`. BullMQ ends at one that is not as it should be. All events are
   * removed then, or it would end at that one again. `check` makes up for them.
   */
  #readEvents(): void {
    this.#events.run().catch(async () => {
      await this.#removeEvents().catch(() => {});
      if (this.#isClosed) return;
      this.#eventsAgain = this.deps.clock.after(EVENTS_AGAIN_MS, () => this.#readEvents());
    });
  }

  #lose(id: string): void {
    this.#queue.remove(id).catch(() => {});
    this.#end(id, LOST);
  }

  #end(id: string, end: JobEnd): void {
    const job = this.#outstanding.get(id);
    this.#outstanding.delete(id);
    job?.end(end);
  }

  /**
   * Ends all jobs as lost. The connections must be closed afterwards. BullMQ would wait for a Redis
   * that does not answer, so nobody waits for it.
   */
  close(): void {
    this.#isClosed = true;
    this.#eventsAgain?.cancel();
    this.loseAll();
    this.#events.close().catch(() => {});
    this.#queue.close().catch(() => {});
  }
}
