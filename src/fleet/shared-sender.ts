import type { Redis } from 'ioredis';
import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { PeerError } from '../peer/errors.js';
import type { PushAnswer, PushItem, PushOptions } from '../peer/push.js';
import type { UplinkPeer } from '../uplink/deps.js';
import type {
  BatchSharing,
  PackedBatch,
  PackedFile,
  PushTarget,
  SharedBatch,
} from '../uplink/packed-batch.js';
import type { UnansweredPush } from '../uplink/unanswered-pushes.js';
import type { JobQueue } from './job-queue.js';
import { LONGEST_WAIT_MS, NoPermit, OwnerPermits } from './permits.js';
import {
  ANSWER,
  type Answer,
  FENCE_MS,
  type Keys,
  LISTS_KEPT_MS,
  ORDER_LOST_MS,
  type Order,
  PUSH_LEASE_MS,
  READ_RESULT,
  type ReadJob,
  type WorkerReport,
} from './protocol.js';

/** The most lost orders whose late end is waited for. Each has the items of one request. */
const MAX_LOST = 1_000;
/** Longest time of one wait for answers, in s. */
const WAIT_S = 5;
/** Delay before answers are waited for again, when Redis does not answer, in ms. */
const AGAIN_MS = 1_000;

/** How long after the first claim a worker may go on with an order of an earlier owner, in ms. */
export const EARLIER_LEASE_MS = PUSH_LEASE_MS + 2_000;

type PushOrder = Extract<Order, { kind: 'push' }>;
type Outcome = Answer['outcome'] | { readonly kind: 'lost' };

/** An order that was given to a worker and not answered. */
interface Outstanding {
  readonly id: string;
  readonly worker: string;
  /** The order as it is in the list of the worker. */
  readonly text: string;
  readonly items: readonly UnansweredPush[];
  readonly givenAt: number;
  /** When its worker was last seen with it, or it was given. */
  seenAt: number;
  readonly end: (outcome: Outcome) => void;
}

export interface SharedSenderDeps {
  readonly redis: Redis;
  /** A connection of its own, on which answers are waited for. */
  readonly waiting: Redis;
  readonly keys: Keys;
  readonly epoch: string;
  readonly jobs: JobQueue;
  readonly clock: Clock;
  readonly log: Logger;
  /** The URL of the peer. */
  readonly peerUrl: string;
  /** The rate of all pushes of all machines. */
  readonly requestsPerSecond: () => number;
  /** The number of batches that workers can take at the same time. */
  readonly slots: () => number;
  /** Called when a push was completed, or may have been, that had been given up. */
  readonly onLate: (pushes: readonly UnansweredPush[]) => void;
}

/**
 * Has batches of plain files read and pushed by workers.
 *
 * A batch goes to a worker in two steps. First a job of the queue `push` has its files read: the
 * worker keeps their contents, and answers with size and digest of each. Nothing has left yet, so
 * that a job that is lost is done here. Then the owner marks the items as in flight, commits that,
 * and gives this worker an *order* for each request, when it is its turn in the request queue. All
 * that is known of one's own pushes is thus known of these: rate, breaker, concurrency and the
 * splitting of a batch work as they do for one's own.
 *
 * An order is
 *
 * - *given*: it is in the list of the worker. The worker may begin it while its fence exists, which
 *   expires by the clock of Redis;
 * - *answered*: it ends like a request of this machine;
 * - *lost*, if the worker was not seen with it for `ORDER_LOST_MS`: its items count as unanswered,
 *   and are looked up before they are pushed again. The worker cannot begin the order any more, and
 *   does not go on with it. An answer that comes nevertheless is *late*: see `onLate`.
 */
export class SharedSender implements BatchSharing {
  readonly #deps: SharedSenderDeps;
  readonly #permits: OwnerPermits;
  readonly #orders = new Map<string, Outstanding>();
  readonly #lost = new Map<string, Outstanding>();
  /** The end of the last fence of a lost order: Redis may not have got the command to remove it. */
  #lostFencedUntil = 0;
  #given = 0;
  /** The number of batches that were given to workers, and not released. */
  #batches = 0;
  /** The clock of Redis minus ours, in ms; undefined until it is known. */
  #redisAheadMs: number | undefined;
  /** When no order of an earlier owner can be under way any more. */
  #freeFrom: number;
  #hasBeaten = false;
  #isClosed = false;

  constructor(deps: SharedSenderDeps) {
    this.#deps = deps;
    const { clock } = deps;
    this.#freeFrom = clock.now() + ORDER_LOST_MS;
    this.#permits = new OwnerPermits(deps, this.#freeFrom);
    void this.#readAnswers();
  }

  get slots(): number {
    return this.#permits.isShared ? this.#deps.slots() : 0;
  }

  latestArrival(sentAt: number): number {
    return Math.max(sentAt + PUSH_LEASE_MS, this.#freeFrom);
  }

  /** Returns the peer as this machine uses it: each push has a permit. */
  limited(peer: UplinkPeer): UplinkPeer {
    const { requestsPerSecond } = this.#deps;
    const admit = async (bytesBefore: number) => {
      if (bytesBefore > 0) return;
      await this.#earlierEnd();
      await this.#permits.take(requestsPerSecond(), () => this.#fencedUntil);
    };
    return {
      push: (items: readonly PushItem[], options?: PushOptions) =>
        peer.push(items, { ...options, admit }),
      peerdoc: (query, options) => peer.peerdoc(query, options),
      commitIndex: (options) => peer.commitIndex(options),
      remove: (urls, options) => peer.remove(urls, options),
    };
  }

  /**
   * Resolves when no order of an earlier owner can be under way any more.
   *
   * @throws NoPermit if that takes too long for one request
   */
  async #earlierEnd(): Promise<void> {
    const { clock } = this.#deps;
    const end = clock.now() + LONGEST_WAIT_MS;
    while (clock.now() < this.#freeFrom) {
      if (clock.now() > end) throw new NoPermit('workers may still push for an earlier run');
      await clock.sleep(Math.min(1_000, this.#freeFrom - clock.now()));
    }
  }

  async read({ dialect, files }: SharedBatch): Promise<PackedBatch | undefined> {
    const { epoch, jobs, log } = this.#deps;
    if (this.#batches >= this.slots) return undefined;
    this.#batches += 1;
    const job: ReadJob = {
      epoch,
      dialect,
      files: files.map(({ item: { folder, path }, version }) => ({ folder, path, version })),
    };
    try {
      const end = await jobs.run(job);
      const answer = end.kind === 'done' ? READ_RESULT.parse(end.value) : undefined;
      if (answer?.kind === 'read' && answer.files.length === files.length) {
        const { worker, batch } = answer;
        const results = answer.files.map((file) =>
          file.kind === 'content' ? { ...file, words: file.words } : file,
        );
        return this.#packed(worker, batch, files, results);
      }
    } catch (error) {
      log.warn(
        { event: 'fleet-result' },
        `the answer of a worker cannot be used (${messageOf(error)}); the batch is read here`,
      );
    }
    this.#batches -= 1;
    return undefined;
  }

  #packed(
    worker: string,
    batch: string,
    files: SharedBatch['files'],
    results: readonly PackedFile[],
  ): PackedBatch {
    return {
      files: results,
      push: (targets, options) => {
        const items = targets.map(({ n, url }) => {
          const { item, version } = files[n] ?? {};
          return {
            folder: item?.folder ?? '',
            path: item?.path ?? '',
            version: { sha256: version?.sha256 ?? '', url },
          };
        });
        return this.#push(worker, batch, targets, items, options);
      },
      release: () => {
        this.#batches -= 1;
        // A worker drops a batch after a while anyway.
        void this.#give(worker, { kind: 'release', batch }).catch(() => {});
      },
    };
  }

  /** Called after Redis has answered, with the workers that were seen. */
  async beat(workers: readonly WorkerReport[]): Promise<void> {
    const { clock, redis } = this.#deps;
    // Redis may have forgotten an earlier run of the owner, so that it is not asked for one.
    if (!this.#hasBeaten) this.#freeFrom = clock.now() + EARLIER_LEASE_MS;
    this.#hasBeaten = true;
    const askedAt = clock.now();
    const [seconds, micros] = await redis.time();
    const tookMs = clock.now() - askedAt;
    // A slow answer says little about the time.
    if (tookMs < 1_000)
      this.#redisAheadMs = Number(seconds) * 1_000 + Number(micros) / 1_000 - askedAt;
    if (clock.now() >= this.#freeFrom && this.#redisAheadMs !== undefined)
      await this.#permits.share();
    const known = new Set(workers.flatMap(({ orders }) => orders));
    const living = new Set(workers.map(({ id }) => id));
    for (const order of this.#orders.values())
      if (known.has(order.id)) order.seenAt = clock.now();
      else if (!living.has(order.worker)) void this.#withdraw(order);
  }

  /** Gives up the orders that were not seen for too long. Called after each beat. */
  check(): void {
    const now = this.#deps.clock.now();
    for (const order of this.#orders.values())
      if (now - order.seenAt > ORDER_LOST_MS) this.#lose(order);
  }

  /** Ends an order that its worker has not taken: it was not begun. Never rejects. */
  async #withdraw(order: Outstanding): Promise<void> {
    const { keys, redis } = this.#deps;
    const removed = await redis.lrem(keys.orders(order.worker), 1, order.text).catch(() => 0);
    if (removed > 0 && this.#orders.delete(order.id))
      order.end({ kind: 'notSent', why: 'it has gone' });
  }

  /** Gives up all orders. */
  loseAll(): void {
    for (const order of this.#orders.values()) this.#lose(order);
  }

  close(): void {
    this.#isClosed = true;
    this.loseAll();
    this.#deps.waiting.disconnect();
  }

  /** When workers cannot get a permit any more, if Redis is away from now on. */
  get #fencedUntil(): number {
    const fences = [...this.#orders.values()].map(({ givenAt }) => givenAt + FENCE_MS);
    return Math.max(this.#lostFencedUntil, ...fences);
  }

  async #push(
    worker: string,
    batch: string,
    targets: readonly PushTarget[],
    items: readonly UnansweredPush[],
    { commit = false, signal, synchronous = false }: PushOptions,
  ): Promise<PushAnswer> {
    const { clock, epoch, peerUrl, requestsPerSecond } = this.#deps;
    // Pushes of this machine do not take their permits from Redis now.
    if (!this.#permits.isShared)
      return answerOf({ kind: 'notSent', why: 'Redis is away' }, targets.length, peerUrl);
    this.#given += 1;
    const id = `${epoch}-${this.#given}`;
    const order: PushOrder = {
      kind: 'push',
      id,
      batch,
      targets: [...targets],
      synchronous,
      commit,
      ...(Number.isFinite(requestsPerSecond()) && { requestsPerSecond: requestsPerSecond() }),
    };
    const givenAt = clock.now();
    const outcome = await new Promise<Outcome>((end) => {
      const outstanding: Outstanding = {
        id,
        worker,
        text: JSON.stringify(order),
        items,
        givenAt,
        seenAt: givenAt,
        end: ended,
      };
      const onAbort = () => this.#lose(outstanding);
      function ended(outcome: Outcome): void {
        signal?.removeEventListener('abort', onAbort);
        end(outcome);
      }
      this.#orders.set(id, outstanding);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (signal?.aborted) onAbort();
      // Redis may have the order although it says nothing: the order is answered or lost.
      else this.#give(worker, order).catch(() => {});
    });
    return answerOf(outcome, targets.length, peerUrl);
  }

  async #give(worker: string, order: Order): Promise<void> {
    const { clock, keys, redis } = this.#deps;
    const list = keys.orders(worker);
    const commands = redis.multi();
    if (order.kind === 'push') {
      // An absolute time: the command may reach Redis much later.
      const until = Math.floor(clock.now() + (this.#redisAheadMs ?? 0) + FENCE_MS);
      commands.set(keys.fence(order.id), '1', 'PXAT', until);
    }
    await commands.rpush(list, JSON.stringify(order)).pexpire(list, LISTS_KEPT_MS).exec();
  }

  #lose(order: Outstanding): void {
    if (!this.#orders.delete(order.id)) return;
    const { keys, redis } = this.#deps;
    this.#lost.set(order.id, order);
    this.#lostFencedUntil = Math.max(this.#lostFencedUntil, order.givenAt + FENCE_MS);
    const [oldest] = this.#lost.keys();
    if (this.#lost.size > MAX_LOST && oldest !== undefined) this.#lost.delete(oldest);
    redis.del(keys.fence(order.id)).catch(() => {});
    order.end({ kind: 'lost' });
  }

  /** Reads answers until `close`. Never rejects. */
  async #readAnswers(): Promise<void> {
    const { clock, epoch, keys, waiting } = this.#deps;
    while (!this.#isClosed) {
      try {
        const answer = await waiting.blpop(keys.answers(epoch), WAIT_S);
        if (answer !== null) this.#take(ANSWER.parse(JSON.parse(answer[1])));
      } catch {
        // Redis is away, or somebody else wrote there. The order is answered or lost.
        if (!this.#isClosed) await clock.sleep(AGAIN_MS);
      }
    }
  }

  #take({ order: id, outcome }: Answer): void {
    const order = this.#orders.get(id);
    if (order !== undefined) {
      this.#orders.delete(id);
      order.end(outcome);
      return;
    }
    const lost = this.#lost.get(id);
    this.#lost.delete(id);
    const isSent =
      outcome.kind === 'answered' || (outcome.kind === 'failed' && outcome.delivered !== 'no');
    if (lost !== undefined && isSent) this.#deps.onLate(lost.items);
  }
}

/**
 * Returns the answer of the peer, or throws what the request of the worker failed with.
 *
 * @param count the number of items that were pushed
 * @param peerUrl the URL of the peer, for errors
 */
function answerOf(outcome: Outcome, count: number, peerUrl: string): PushAnswer {
  if (outcome.kind === 'answered' && outcome.results.length === count) {
    const { peerTime, results } = outcome;
    return { results, ...(peerTime === undefined ? {} : { peerTime }) };
  }
  if (outcome.kind === 'failed') {
    const { cause, code, kind: _, ...parts } = outcome;
    throw new PeerError(code, { ...parts, cause: cause && { code: cause } });
  }
  if (outcome.kind === 'notSent') {
    const what = `got no request: a worker of the fleet did not push (${outcome.why})`;
    throw new PeerError('PEER_ABORTED', { url: peerUrl, what, delivered: 'no' });
  }
  throw new PeersyncError({
    code: 'FLEET_ORDER_LOST',
    message: 'A worker of the fleet was lost while it pushed.',
    hint: 'Nothing to do: its items are looked up before they are pushed again.',
  });
}
