import { type Job, WaitingError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Config } from '../config/config.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import {
  BEAT_MS,
  LOCK_MS,
  type NoPush,
  OWNER,
  PUSH_LEASE_MS,
  PUSH_QUEUE,
  peerDigest,
  READ_JOB,
  type ReadResult,
  STALLED_CHECK_MS,
  type WorkerReport,
} from './protocol.js';
import { PushLease } from './push-lease.js';
import { PushOrders, type PushOrdersDeps } from './push-orders.js';
import {
  type Batch,
  notHere,
  PUSH_SLOTS,
  WorkerBatches,
  type WorkerBatchesDeps,
} from './worker-batches.js';

/** How long a worker takes no batches that the peer did not let in, in ms. */
const REST_MS = 30_000;
/** How long it says why it did not reach the peer, unless it pushes again. In ms. */
const NO_PUSH_SHOWN_MS = 10 * 60_000;
/** For this long it refuses batches at once: the owner does not know of the rest yet. In ms. */
const REFUSES_MS = 2 * BEAT_MS + 1_000;
/** How long a stop waits for Redis, in ms. */
const STOP_MS = 1_000;

export interface PushWorkDeps
  extends WorkerBatchesDeps,
    Pick<PushOrdersDeps, 'keys' | 'redis' | 'waiting'> {
  readonly config: Pick<Config, 'folders' | 'peer' | 'push'>;
  readonly log: Logger;
  readonly prefix: string;
  /** The connection of the queue of BullMQ. */
  readonly jobs: Redis;
  /** The jobs of the worker. Batches count, too. */
  readonly counts: { active: number; done: number; failed: number };
}

/**
 * The pushes of a worker: decides whether it takes batches from the queue `push`, and renews the
 * lease in which it does the orders of the owner. See `SharedSender` for the owner's side.
 *
 * A worker takes no batches while it is idle, while the owner has another peer, and for 30 s after
 * the peer did not let it in.
 */
export class PushWork {
  readonly #deps: PushWorkDeps;
  readonly #worker: Worker;
  readonly #batches: WorkerBatches;
  readonly #lease: PushLease;
  readonly #orders: PushOrders;
  #epoch: string | undefined;
  #isIdle = true;
  /** Whether the owner has another peer. */
  #hasOtherPeer = false;
  /** Why the last push of this machine did not reach the peer. */
  #failure: { readonly reason: NoPush; readonly at: number } | undefined;
  #restsUntil = Number.NEGATIVE_INFINITY;
  #pausesFrom = Number.NEGATIVE_INFINITY;
  #isStopping = false;

  constructor(deps: PushWorkDeps) {
    const { clock, counts, jobs, prefix } = deps;
    this.#deps = deps;
    this.#batches = new WorkerBatches(deps);
    this.#lease = new PushLease(clock);
    this.#orders = new PushOrders({
      ...deps,
      batches: this.#batches,
      lease: this.#lease,
      onPushed: (documents) => {
        counts.done += documents;
        this.#failure = undefined;
      },
      onRefused: (reason, why) => this.#rest(reason, why),
    });
    this.#worker = new Worker(PUSH_QUEUE, (job, token) => this.#work(job, token), {
      prefix,
      connection: jobs,
      autorun: false,
      concurrency: PUSH_SLOTS,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: 1,
      skipVersionCheck: true,
    });
    // A command that fails is tried again, and the beat tells whether Redis answers.
    this.#worker.on('error', () => {});
  }

  /** The part of the worker's record in Redis that is about pushes. */
  get report(): Pick<WorkerReport, 'noPush' | 'orders' | 'pushSlots'> {
    return {
      pushSlots: this.#takesJobs ? PUSH_SLOTS : 0,
      noPush: this.#noPush,
      orders: [...this.#orders.ids],
    };
  }

  /** The folders of batches that are being read for so long that the disk seems to hang. */
  get hungFolders(): readonly string[] {
    return this.#batches.hungFolders;
  }

  get #takesJobs(): boolean {
    const mayPush = !this.#isIdle && !this.#hasOtherPeer && !this.#isStopping;
    return mayPush && this.#deps.clock.now() >= this.#restsUntil;
  }

  get #noPush(): NoPush | undefined {
    if (this.#hasOtherPeer) return 'peer';
    const failure = this.#failure;
    const isRecent = failure && this.#deps.clock.now() - failure.at < NO_PUSH_SHOWN_MS;
    return isRecent ? failure.reason : undefined;
  }

  /**
   * Renews the lease. Called after Redis has taken the report of this worker.
   *
   * @param reportedAt when the report was sent, by the clock
   */
  async beat(reportedAt: number, isIdle: boolean): Promise<void> {
    const { config, keys, redis } = this.#deps;
    const answers = await redis.multi().pttl(keys.owner).get(keys.owner).exec();
    const [ttl, record] = (answers ?? []).map(([, value]) => value);
    const owner = typeof record === 'string' ? OWNER.parse(JSON.parse(record)) : undefined;
    const epoch = owner?.epoch;
    this.#lease.renew(reportedAt + Math.min(PUSH_LEASE_MS, Number(ttl)), epoch === this.#epoch);
    if (epoch !== this.#epoch) this.#batches.releaseAll();
    this.#epoch = epoch;
    this.#batches.releaseOld();
    this.#isIdle = isIdle;
    if (owner !== undefined) this.#comparePeer(owner.peer, peerDigest(config.peer.url));
    this.#apply();
  }

  /** @param theirs undefined if the owner does not share pushes */
  #comparePeer(theirs: string | undefined, ours: string): void {
    const isOther = theirs !== undefined && theirs !== ours;
    if (isOther && !this.#hasOtherPeer)
      this.#warn('takes no batches: the owner has another `peer.url`. Set it here as it is there.');
    this.#hasOtherPeer = isOther;
  }

  /** Takes jobs or not. */
  #apply(): void {
    if (this.#isStopping) return;
    const refuses =
      !this.#isIdle && !this.#hasOtherPeer && this.#deps.clock.now() < this.#pausesFrom;
    if (!this.#takesJobs && !refuses) {
      if (this.#worker.isRunning()) void this.#worker.pause(true);
    } else if (!this.#worker.isRunning()) void this.#worker.run().catch(() => {});
    else if (this.#worker.isPaused()) this.#worker.resume();
  }

  /** Ends when the orders that are under way have ended. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const { clock, jobs, waiting } = this.#deps;
    await this.#orders.stop(graceMs);
    this.#lease.close();
    // It waits for Redis, which may be away.
    await Promise.race([this.#worker.close().catch(() => {}), clock.sleep(STOP_MS)]);
    waiting.disconnect();
    jobs.disconnect();
  }

  async #work(job: Job, token: string | undefined): Promise<ReadResult> {
    const { counts, log } = this.#deps;
    const { epoch, ...batch } = READ_JOB.parse(job.data);
    counts.active += 1;
    try {
      if (epoch !== this.#epoch) return notHere('epoch');
      return await this.#read(job, batch, token);
    } catch (error) {
      if (!(error instanceof WaitingError)) {
        counts.failed += 1;
        log.warn({ event: 'job-failed' }, `a batch was not read: ${messageOf(error)}`);
      }
      throw error;
    } finally {
      counts.active -= 1;
    }
  }

  /** Reads the files of a batch, and keeps them. */
  async #read(job: Job, batch: Batch, token: string | undefined): Promise<ReadResult> {
    if (this.#hasOtherPeer) return notHere('peer');
    if (this.#deps.clock.now() < this.#restsUntil) return notHere('full');
    const result = await this.#batches.read(`${job.id}`, batch);
    if (result.kind === 'read' && this.#isStopping) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    return result;
  }

  #warn(what: string): void {
    this.#deps.log.warn({ event: 'push-failed' }, what);
  }

  /** Has the owner, or other workers, take the batches for a while. */
  #rest(reason: NoPush, why: string): void {
    const { clock } = this.#deps;
    this.#failure = { reason, at: clock.now() };
    this.#restsUntil = clock.now() + REST_MS;
    this.#pausesFrom = clock.now() + REFUSES_MS;
    this.#warn(`takes no batches for a while: ${why}`);
  }
}
