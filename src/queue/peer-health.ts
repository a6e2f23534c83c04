import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import {
  Breaker,
  backoffMs,
  type Change,
  type CircuitState,
  type Ticket,
  type Trouble,
  type TroubleKind,
} from './breaker.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import { isShared, LANES, type Lane, type Outcome, type QueuePolicy } from './options.js';
import type { PeerStatusLog } from './peer-status-log.js';

/** The outcomes that an overloaded peer gives. */
const REFUSALS: ReadonlySet<Outcome['kind']> = new Set(['busy', 'failing', 'unreachable']);

export interface CircuitStatus {
  readonly state: CircuitState;
  /** Closed: since when the peer answers (or the queue was made). Else: since when it is in this kind of trouble. */
  readonly since: number;
  /** Since when it is in trouble of any kind; only while not closed. */
  readonly downSince?: number;
  readonly reason?: Trouble;
  /** The lanes that the trouble holds back; empty while closed. */
  readonly held: readonly Lane[];
  /** When one request may try again; only while open. */
  readonly nextProbeAt?: number;
  /** Requests that failed since this kind of trouble began; 0 while closed. */
  readonly tries: number;
}

/**
 * The peer asked to be left alone for a while.
 *
 * - *Over*: `until` is past.
 * - *Paused*, entered by `busy`: until the longest wait that was asked for is over. Without a Retry-After the wait is
 *   ours, longer with each `busy` of a request that started after the last one; `answered` makes it short again.
 */
export class BusyPause {
  readonly #policy: QueuePolicy;
  readonly #random: () => number;
  /** The end of the pause. */
  until = Number.NEGATIVE_INFINITY;
  /** Since when the peer has been busy, or was when it last was. */
  since = 0;
  #busyAt = Number.NEGATIVE_INFINITY;
  #step = 0;

  constructor(policy: QueuePolicy, random: () => number) {
    this.#policy = policy;
    this.#random = random;
  }

  /** @returns whether this is the first since the peer last answered */
  busy(startedAt: number, now: number, retryAfterMs: number | undefined): boolean {
    const first = this.#step === 0;
    if (first) this.since = now;
    if (first || startedAt >= this.#busyAt) this.#step += 1;
    this.#busyAt = now;
    this.until = Math.max(this.until, now + this.#waitMs(retryAfterMs));
    return first;
  }

  /** @returns whether the peer had been busy and is not any more */
  answered(startedAt: number): boolean {
    if (this.#step === 0 || startedAt < this.#busyAt) return false;
    this.#step = 0;
    return true;
  }

  #waitMs(asked: number | undefined): number {
    const { busyMs, busyMaxMs, retryAfterMaxMs } = this.#policy;
    if (asked !== undefined && asked > 0) return Math.min(asked, retryAfterMaxMs);
    return backoffMs(this.#step - 1, busyMs, busyMaxMs, this.#random);
  }
}

/**
 * What the outcomes of requests say about the peer: whether it is there (`breaker`), whether it wants to be left alone
 * (`busyPause`), and how much it bears (`limit`).
 */
export class PeerHealth {
  readonly breaker: Breaker;
  readonly busyPause: BusyPause;
  readonly limit: ConcurrencyLimit;
  readonly #log: PeerStatusLog;
  #closedSince: number;

  constructor(policy: QueuePolicy, random: () => number, max: number, log: PeerStatusLog, now: number) {
    this.breaker = new Breaker(policy, random);
    this.busyPause = new BusyPause(policy, random);
    this.limit = new ConcurrencyLimit(max, policy);
    this.#log = log;
    this.#closedSince = now;
  }

  /** From when on a request of this lane may start; see `Breaker.admitsFrom`. */
  admitsFrom(lane: Lane): number {
    if (lane === 'interactive') return Number.NEGATIVE_INFINITY;
    return Math.max(this.breaker.admitsFrom(lane), this.busyPause.until);
  }

  /** For how long the peer has been answering, in ms; 0 while it is in trouble. */
  answeringForMs(now: number): number {
    return this.breaker.state === 'closed' ? now - this.#closedSince : 0;
  }

  /**
   * A request ended.
   *
   * @param error what it was rejected with; read only where the outcome is trouble
   * @param wasFull whether all shared slots were in use
   * @returns whether circuit or pause changed
   */
  ended(ticket: Ticket, outcome: Outcome, error: unknown, wasFull: boolean, now: number): boolean {
    const change = this.breaker.ended(ticket, outcome, now, (kind) => troubleOf(kind, error));
    if (change.kind === 'closed') this.#closedSince = now;
    this.#adapt(ticket, outcome, change, wasFull, now);
    this.#log.changed(change);
    const { busyPause } = this;
    if (outcome.kind === 'answered' && busyPause.answered(ticket.startedAt))
      this.#log.busyEnded(now - busyPause.since);
    if (outcome.kind !== 'busy') return change.kind !== 'none';
    const isFirst = busyPause.busy(ticket.startedAt, now, outcome.retryAfterMs);
    this.#log.busy(messageOf(error), busyPause.until - now, isFirst ? undefined : now - busyPause.since);
    return true;
  }

  circuit(): CircuitStatus {
    const { state, reason, tries, probeAt, began } = this.breaker;
    return {
      state,
      since: Math.round(began?.trouble ?? this.#closedSince),
      ...(began === undefined ? {} : { downSince: Math.round(began.down) }),
      held: LANES.filter((lane) => this.breaker.holds(lane)),
      tries,
      ...(reason === undefined ? {} : { reason }),
      ...(probeAt === undefined ? {} : { nextProbeAt: Math.round(probeAt) }),
    };
  }

  #adapt(
    { lane, startedAt }: Ticket,
    { kind }: Outcome,
    change: Change,
    wasFull: boolean,
    now: number,
  ): void {
    if (change.kind === 'closed') this.limit.restart();
    if (lane === 'interactive') return;
    if (kind === 'answered' && isShared(lane)) this.limit.answered(lane, startedAt, now, wasFull);
    if (REFUSALS.has(kind)) this.limit.refused(startedAt, now);
  }
}

function troubleOf(kind: TroubleKind, error: unknown): Trouble {
  const code = systemCode(error);
  return {
    kind,
    message: messageOf(error),
    ...(code === undefined ? {} : { code }),
    ...(error instanceof PeersyncError ? { hint: error.hint } : {}),
  };
}
