import type { Redis } from 'ioredis';
import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import { PeerError } from '../peer/errors.js';
import { Permits } from './permits.js';
import {
  type Answer,
  type Keys,
  LISTS_KEPT_MS,
  type NoPush,
  ORDER,
  type Order,
} from './protocol.js';
import type { PushLease } from './push-lease.js';
import type { WorkerBatches } from './worker-batches.js';

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

/** Failures of the way to the peer, which another worker may not have. */
const OF_THIS_MACHINE: ReadonlyMap<string, NoPush> = new Map([
  ['PEER_UNREACHABLE', 'unreachable'],
  ['PEER_AUTH', 'denied'],
  ['PEER_AUTH_WEAK', 'denied'],
]);

type PushOrder = Extract<Order, { kind: 'push' }>;
type Outcome = Answer['outcome'];

export interface PushOrdersDeps {
  readonly config: Pick<Config, 'push'>;
  readonly clock: Clock;
  readonly keys: Keys;
  /** The id of the worker. */
  readonly id: string;
  readonly redis: Redis;
  /** A connection of its own, on which orders are waited for. */
  readonly waiting: Redis;
  readonly batches: WorkerBatches;
  readonly lease: PushLease;
  /** Called with the number of documents that the peer took. */
  readonly onPushed: (documents: number) => void;
  /** Called when this machine did not push for a reason that another may not have. */
  readonly onRefused: (reason: NoPush, why: string) => void;
}

/**
 * The orders of the owner, as a worker does them: takes them from its list in Redis, pushes while
 * it has the lease, and answers. The answer goes to the run of the owner that gave the order.
 */
export class PushOrders {
  readonly #deps: PushOrdersDeps;
  readonly #permits: Permits;
  /** The orders that are under way. */
  readonly #orders = new Map<string, Promise<void>>();
  readonly #known = new Set<string>();
  readonly #ending = new AbortController();
  #isStopping = false;

  constructor(deps: PushOrdersDeps) {
    this.#deps = deps;
    this.#permits = new Permits(deps);
    void this.#takeOrders();
  }

  /** The ids of the orders that it has and has not answered. */
  get ids(): readonly string[] {
    return [...this.#orders.keys()];
  }

  /** Begins no order any more. Ends when those that are under way have ended, or are broken off. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const timer = this.#deps.clock.after(graceMs, () => this.#ending.abort());
    await Promise.all(this.#orders.values());
    timer.cancel();
    this.#ending.abort();
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
      this.#deps.batches.release(order.batch);
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
    const { batches, config, lease, onPushed, onRefused } = this.#deps;
    const { packed, urls = [] } = batches.held(batch) ?? {};
    if (packed === undefined || this.#isStopping)
      return { kind: 'notSent', why: 'it has the batch no more' };
    if (targets.some(({ n, url }) => url !== urls[n])) {
      onRefused('urls', 'The owner has another `url` for a folder. Set it here as it is there.');
      return { kind: 'notSent', why: 'its folders have other URLs' };
    }
    const rate = Math.min(requestsPerSecond, config.push.requestsPerSecond ?? requestsPerSecond);
    const leased = lease.signal;
    const admit = async (bytesBefore: number) => {
      if (bytesBefore === 0) await this.#permits.take(rate, id);
      if (lease.isOver(leased)) throw new Error('the owner or Redis was not seen for too long');
    };
    const signal = AbortSignal.any([this.#ending.signal, leased]);
    try {
      const { peerTime, results } = await packed.push(targets, {
        synchronous,
        commit,
        admit,
        signal,
      });
      onPushed(results.filter(({ ok }) => ok).length);
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

  #failed(error: unknown): Outcome {
    if (!(error instanceof PeerError)) return { kind: 'notSent', why: cut(messageOf(error)) };
    const { cause, code, delivered, details, hint, item, message, retryAfterMs, status } = error;
    const url = String(details.url);
    const reason = OF_THIS_MACHINE.get(code);
    if (reason !== undefined && delivered !== 'maybe') {
      this.#deps.onRefused(reason, `${message} ${hint}`);
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

function cut(text: string): string {
  return text.slice(0, MAX_TEXT);
}
