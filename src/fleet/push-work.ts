import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { type Job, WaitingError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Config } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { dialectNamed, isDialect } from '../peer/dialects/dialects.js';
import { PeerError } from '../peer/errors.js';
import type { UplinkPeer } from '../uplink/deps.js';
import type { Packers, PackFile } from '../uplink/documents.js';
import { PackedHere } from '../uplink/packed-batch.js';
import { statOf } from './extraction-work.js';
import { Permits } from './permits.js';
import {
  type Answer,
  BEAT_MS,
  type Keys,
  LISTS_KEPT_MS,
  LOCK_MS,
  ORDER,
  type Order,
  OWNER,
  PUSH_LEASE_MS,
  PUSH_QUEUE,
  peerDigest,
  READ_JOB,
  type ReadJob,
  type ReadResult,
  STALLED_CHECK_MS,
  type WorkerReport,
} from './protocol.js';

/** The number of batches that a worker reads and pushes at a time. */
export const PUSH_SLOTS = 4;
/** The most batches that wait for orders. Contents of small files are in memory. */
const MAX_HELD = 4 * PUSH_SLOTS;
/** How long a batch waits for an order, in ms. */
const HELD_MS = 10 * 60_000;
/** How long a worker takes no batches that the peer did not let in, in ms. */
const REST_MS = 30_000;
/** How long it says why it did not reach the peer, unless it pushes again. In ms. */
const NO_PUSH_SHOWN_MS = 10 * 60_000;
/**
 * Time after which a batch that is not read yet shows that a folder hangs, in ms. Small files are
 * read in seconds. The owner gives the batch up after twice this time.
 */
const HUNG_MS = 60_000;
/** For this long it refuses batches at once: the owner does not know of the rest yet. In ms. */
const REFUSES_MS = 2 * BEAT_MS + 1_000;
/** Longest time of one wait for orders, in s. */
const WAIT_S = 5;
/** Delay before a command is tried again that Redis did not take, in ms. */
const AGAIN_MS = 1_000;
/** How long an answer is offered to Redis, in ms. */
const OFFERED_MS = 10 * 60_000;
/** The ids of orders that are remembered, because Redis may deliver one twice. */
const MAX_KNOWN = 10_000;
/** The longest text of an answer. */
const MAX_TEXT = 1_000;

type NoPush = NonNullable<WorkerReport['noPush']>;

/** Failures of the way to the peer, which another worker may not have. */
const OF_THIS_MACHINE: ReadonlyMap<string, NoPush> = new Map([
  ['PEER_UNREACHABLE', 'unreachable'],
  ['PEER_AUTH', 'denied'],
  ['PEER_AUTH_WEAK', 'denied'],
]);

type PushOrder = Extract<Order, { kind: 'push' }>;
type Outcome = Answer['outcome'];

export interface PushWorkDeps {
  readonly config: Pick<Config, 'folders' | 'peer' | 'push'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly keys: Keys;
  readonly prefix: string;
  /** The id of the worker. */
  readonly id: string;
  readonly redis: Redis;
  /** The connection of the queue of BullMQ. */
  readonly jobs: Redis;
  /** A connection of its own, on which orders are waited for. */
  readonly waiting: Redis;
  /** The jobs of the worker. Batches count, too. */
  readonly counts: { active: number; done: number; failed: number };
  /** Reads and encodes small files. */
  readonly pack: Packers['pack'];
  /** Returns a client of the peer that speaks this dialect. The peer gets nothing before that. */
  readonly peerOf: (dialect: string) => Promise<Pick<UplinkPeer, 'push'>>;
}

/** A batch that was read, and waits for orders. */
interface Held {
  /** The URLs of the documents by the configuration of this machine, in the order of the files. */
  readonly urls: readonly string[];
  readonly packed: PackedHere;
  readonly since: number;
}

/**
 * The queue `push` and the orders of the owner, as a worker does them. See `SharedSender`.
 *
 * A push leaves only while the worker has a *lease*: Redis has shown within `PUSH_LEASE_MS` that
 * the owner lives, and that it sees this worker. This is asked before each piece of the body. A
 * lease that was over, be it for a moment, ends all orders that were begun before: the owner may
 * have given them up. A timer ends those that wait for the peer at that moment. A worker that was
 * stopped for minutes therefore completes no request of then.
 */
export class PushWork {
  readonly #deps: PushWorkDeps;
  readonly #worker: Worker;
  readonly #permits: Permits;
  readonly #held = new Map<string, Held>();
  readonly #orders = new Map<string, Promise<void>>();
  readonly #known = new Set<string>();
  readonly #ending = new AbortController();
  #epoch: string | undefined;
  /** The end of the lease. */
  #leaseUntil = Number.NEGATIVE_INFINITY;
  /** Aborted at the end of the lease. */
  #lease = new AbortController();
  #leaseTimer: Timer | undefined;
  #isIdle = true;
  /** The batches that are being read: since when, and the folders of their files. */
  readonly #reading = new Map<string, { readonly since: number; readonly folders: Set<string> }>();
  /** Whether the owner has another peer. */
  #hasOtherPeer = false;
  /** Why the last push of this machine did not reach the peer. */
  #failure: { readonly reason: NoPush; readonly at: number } | undefined;
  #restsUntil = Number.NEGATIVE_INFINITY;
  #pausesFrom = Number.NEGATIVE_INFINITY;
  #isStopping = false;

  constructor(deps: PushWorkDeps) {
    const { jobs, prefix } = deps;
    this.#deps = deps;
    this.#permits = new Permits(deps);
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
    void this.#takeOrders();
  }

  /** The part of the worker's record in Redis that is about pushes. */
  get report(): Pick<WorkerReport, 'noPush' | 'orders' | 'pushSlots'> {
    return {
      pushSlots: this.#takesJobs ? PUSH_SLOTS : 0,
      noPush: this.#noPush,
      orders: [...this.#orders.keys()],
    };
  }

  /** The folders of batches that are being read for so long that the disk seems to hang. */
  get hungFolders(): readonly string[] {
    const now = this.#deps.clock.now();
    const hung = [...this.#reading.values()].filter(({ since }) => now - since > HUNG_MS);
    return hung.flatMap(({ folders }) => [...folders]);
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
    const { clock, config, keys, redis } = this.#deps;
    const answers = await redis.multi().pttl(keys.owner).get(keys.owner).exec();
    const [ttl, record] = (answers ?? []).map(([, value]) => value);
    const owner = typeof record === 'string' ? OWNER.parse(JSON.parse(record)) : undefined;
    const epoch = owner?.epoch;
    if (clock.now() >= this.#leaseUntil || epoch !== this.#epoch) this.#endLease();
    this.#leaseUntil = reportedAt + Math.min(PUSH_LEASE_MS, Number(ttl));
    this.#leaseTimer?.cancel();
    this.#leaseTimer = clock.after(this.#leaseUntil - clock.now(), () => this.#endLease());
    if (epoch !== this.#epoch) this.#held.clear();
    this.#epoch = epoch;
    for (const [name, { since }] of this.#held)
      if (clock.now() - since > HELD_MS) this.#held.delete(name);
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

  /** Ends all orders that were begun. */
  #endLease(): void {
    this.#lease.abort();
    this.#lease = new AbortController();
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
    const { clock } = this.#deps;
    const timer = clock.after(graceMs, () => this.#ending.abort());
    await Promise.all(this.#orders.values());
    timer.cancel();
    this.#leaseTimer?.cancel();
    this.#ending.abort();
    // It waits for Redis, which may be away.
    await Promise.race([this.#worker.close().catch(() => {}), clock.sleep(AGAIN_MS)]);
    this.#deps.waiting.disconnect();
    this.#deps.jobs.disconnect();
  }

  async #work(job: Job, token: string | undefined): Promise<ReadResult> {
    const { clock, counts, log } = this.#deps;
    const { epoch, ...batch } = READ_JOB.parse(job.data);
    const name = `${job.id}`;
    counts.active += 1;
    const folders = new Set(batch.files.map(({ folder }) => folder));
    this.#reading.set(name, { since: clock.now(), folders });
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
      this.#reading.delete(name);
    }
  }

  /** Reads the files of a batch, and keeps them. */
  async #read(
    job: Job,
    { dialect, files }: Omit<ReadJob, 'epoch'>,
    token: string | undefined,
  ): Promise<ReadResult> {
    const { config, pack, peerOf } = this.#deps;
    if (this.#hasOtherPeer) return notHere('peer');
    if (this.#deps.clock.now() < this.#restsUntil) return notHere('full');
    if (!isDialect(dialect)) return notHere('dialect');
    if (this.#held.size >= MAX_HELD) return notHere('full');
    const roots = new Map<string, { root: string; linksWithin: string | undefined }>();
    for (const { folder } of files) {
      if (roots.has(folder)) continue;
      const found = config.folders.find(({ name }) => name === folder);
      const root = found && (await realpath(found.path).catch(() => undefined));
      if (found === undefined || root === undefined) return notHere('folder');
      roots.set(folder, { root, linksWithin: found.followSymlinks ? root : undefined });
    }
    const order = {
      rules: dialectNamed(dialect).content,
      files: await Promise.all(
        files.map(({ folder, path, version }) => {
          const { root = '', linksWithin } = roots.get(folder) ?? {};
          return seenHere({ file: join(root, path), linksWithin, version });
        }),
      ),
    };
    const packed = await PackedHere.read(order, pack, await peerOf(dialect), false);
    const read: Extract<ReadResult, { kind: 'read' }>['files'] = [];
    for (const file of packed.files) {
      // The owner looks itself: this view of a network file system may be older than its own.
      if (file.kind === 'content') {
        const { digest, size, type, words } = file;
        read.push({ kind: 'content', digest, size, type, words });
      } else if (file.kind === 'wordless' || file.kind === 'tooLarge')
        read.push({ kind: file.kind });
      else return notHere('version');
    }
    if (this.#isStopping) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const batch = `${job.id}`;
    const urls = files.map(({ folder, path }) => {
      const base = config.folders.find(({ name }) => name === folder)?.url ?? '';
      return documentUrl(base, path);
    });
    this.#held.set(batch, { packed, urls, since: this.#deps.clock.now() });
    return { kind: 'read', worker: this.#deps.id, batch, files: read };
  }

  /** Takes orders until the stop. Never rejects. */
  async #takeOrders(): Promise<void> {
    const { clock, id, keys, waiting } = this.#deps;
    while (!this.#ending.signal.aborted) {
      try {
        const order = await waiting.blpop(keys.orders(id), WAIT_S);
        if (order !== null) this.#take(ORDER.parse(JSON.parse(order[1])));
      } catch {
        // Redis is away, or somebody else wrote there. The owner does without an answer.
        await clock.sleep(AGAIN_MS, this.#ending.signal);
      }
    }
  }

  #take(order: Order): void {
    if (order.kind === 'release') {
      this.#held.delete(order.batch);
      return;
    }
    const { id } = order;
    if (this.#known.has(id)) return;
    this.#known.add(id);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    const work = this.#push(order)
      .then((outcome) => this.#answer({ order: id, outcome }))
      .finally(() => this.#orders.delete(id));
    this.#orders.set(id, work);
  }

  /** Never rejects. */
  async #push({
    batch,
    commit,
    id,
    requestsPerSecond = Number.POSITIVE_INFINITY,
    synchronous,
    targets,
  }: PushOrder): Promise<Outcome> {
    const { clock, config, counts } = this.#deps;
    const { packed, urls = [] } = this.#held.get(batch) ?? {};
    if (packed === undefined || this.#isStopping)
      return { kind: 'notSent', why: 'it has the batch no more' };
    if (targets.some(({ n, url }) => url !== urls[n])) {
      this.#rest('urls', 'The owner has another `url` for a folder. Set it here as it is there.');
      return { kind: 'notSent', why: 'its folders have other URLs' };
    }
    const rate = Math.min(requestsPerSecond, config.push.requestsPerSecond ?? requestsPerSecond);
    const lease = this.#lease.signal;
    const admit = async (bytesBefore: number) => {
      if (bytesBefore === 0) await this.#permits.take(rate, id);
      if (lease.aborted || clock.now() >= this.#leaseUntil)
        throw new Error('the owner or Redis was not seen for too long');
    };
    const signal = AbortSignal.any([this.#ending.signal, lease]);
    try {
      const { peerTime, results } = await packed.push(targets, {
        synchronous,
        commit,
        admit,
        signal,
      });
      counts.done += results.filter(({ ok }) => ok).length;
      this.#failure = undefined;
      return {
        kind: 'answered',
        peerTime,
        results: results.map((result) =>
          result.ok ? result : { ok: false, message: result.message.slice(0, MAX_TEXT) },
        ),
      };
    } catch (error) {
      return this.#failed(error);
    }
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

  #failed(error: unknown): Outcome {
    if (!(error instanceof PeerError)) return { kind: 'notSent', why: cut(messageOf(error)) };
    const { cause, code, delivered, details, hint, item, message, retryAfterMs, status } = error;
    const url = String(details.url);
    const reason = OF_THIS_MACHINE.get(code);
    if (reason !== undefined && delivered !== 'maybe') {
      this.#rest(reason, `${message} ${hint}`);
      // The owner and other workers may be let in: this says nothing about the peer.
      return { kind: 'notSent', why: cut(message) };
    }
    return {
      kind: 'failed',
      code,
      url,
      what: cut(message.slice(url.length + 1)),
      hint: cut(hint),
      delivered,
      status,
      retryAfterMs,
      item,
      cause: systemCode(cause),
    };
  }

  /** Gives an answer to the owner. Never rejects. */
  async #answer(answer: Answer): Promise<void> {
    const { clock, keys, redis } = this.#deps;
    // The owner that gave the order, which may be another one by now.
    const list = keys.answers(answer.order.replace(/-\d+$/, ''));
    const end = clock.now() + OFFERED_MS;
    while (clock.now() < end) {
      try {
        await redis.multi().rpush(list, JSON.stringify(answer)).pexpire(list, LISTS_KEPT_MS).exec();
        return;
      } catch {
        if (this.#ending.signal.aborted) return;
        await clock.sleep(AGAIN_MS, this.#ending.signal);
      }
    }
  }
}

/**
 * Returns a file with its times and its inode as this machine sees them: they are others on another
 * kind of mount, so that its size and its sha256 decide.
 */
async function seenHere(file: PackFile): Promise<PackFile> {
  const { version } = file;
  const stat = await statOf(file);
  if (stat === undefined) return file;
  // The owner knows the document by its own time.
  return { ...file, version: { ...version, ...stat }, lastModified: version.mtimeMs };
}

function notHere(why: Extract<ReadResult, { kind: 'notHere' }>['why']): ReadResult {
  return { kind: 'notHere', why };
}

function cut(text: string): string {
  return text.slice(0, MAX_TEXT);
}
