import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { counted, sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { LANES, type Lane, type Outcome, type QueuePolicy } from './options.js';

/**
 * The failures that are shown as an open circuit. `busy` holds the lanes too, and is shown as
 * closed.
 */
export type PeerFailureKind = 'unreachable' | 'failing' | 'denied' | 'weak';

/** Describes each kind of failure, as the end of a sentence whose subject is the peer. */
export const PEER_FAILURE_WORDS: Readonly<Record<PeerFailureKind, string>> = {
  unreachable: 'does not answer',
  failing: 'answers with errors',
  denied: 'refuses the credentials',
  weak: 'asks for the password in a way that is not safe',
};

/** A failure of the peer, with the message of the error that showed it. */
export interface PeerFailure {
  readonly kind: PeerFailureKind;
  readonly code?: string | undefined;
  readonly message: string;
  /** The hint of the error, if it has one. */
  readonly hint?: string | undefined;
}

/** All times are in ms since the epoch. */
export interface CircuitStatus {
  readonly state: 'closed' | 'open' | 'half-open';
  /**
   * Closed: when the peer began to answer (or the queue was created). Otherwise: when this kind of
   * failure began.
   */
  readonly since: number;
  /** When the outage began, with any kind of failure. Set only while not closed. */
  readonly downSince?: number;
  readonly reason?: PeerFailure;
  /** Lanes that are held back. Empty while closed. */
  readonly held: readonly Lane[];
  /** Time of the next probe. Set only while open. */
  readonly nextProbeAt?: number | undefined;
  /** Number of requests that failed since this kind of failure began; 0 while closed. */
  readonly tries: number;
}

/** Returned by `started`, and passed to `ended` with the outcome. */
export interface Ticket {
  readonly lane: Lane;
  readonly startedAt: number;
  /** Number of times the circuit had opened when the request started. */
  readonly epoch: number;
}

type FailedOutcome = Exclude<Outcome, { readonly kind: 'answered' | 'aborted' }>;
type Kind = FailedOutcome['kind'];

/**
 * State while the circuit is not closed. `since` and `tries` count from the start of this kind of
 * failure, `downSince` and `downTries` from the start of the outage.
 */
interface Outage {
  readonly kind: Kind;
  /** Error of the request that last opened the circuit. */
  error: unknown;
  readonly since: number;
  tries: number;
  readonly downSince: number;
  downTries: number;
  /** Lanes in which this failure occurred. */
  readonly lanes: Set<Lane>;
  /** Number of probes that failed in a row. */
  failedProbes: number;
  probeAt: number;
  probe: Ticket | undefined;
  /** When it was last logged. */
  loggedAt: number;
}

/**
 * Circuit breaker: holds requests back from a peer that is down, or that asks to wait.
 *
 * - *Closed*: requests may start. Each failure is a strike. An answer clears the strikes of its
 *   lane, because one page of a peer may fail while others work. It also clears the `unreachable`
 *   strikes of all lanes. The circuit opens when the number of strikes reaches `policy.openAfter`
 *   for the kind of the latest one.
 * - *Open*: requests in the held lanes wait until the backoff is over. `endWait` ends the backoff.
 * - *Half-open*, entered when the backoff is over: one request of a held lane may start, as the
 *   *probe*. If it is answered, the circuit closes and the backoff is reset. If it fails in the
 *   same way, the circuit opens for longer. If it fails in another way, the peer may be recovering,
 *   and the backoff starts again from the first wait. If it is aborted, another probe may start.
 *   While a download is the probe, a request of another lane may start and replaces it as the
 *   probe, because downloads may take long.
 *
 * The failure decides which lanes are held (`holds`). `interactive` never is.
 *
 * - `unreachable`: all other lanes.
 * - `busy`: all other lanes, see below.
 * - Any other failure: only lanes that had it, because some pages of a peer need no credentials and
 *   work while pushes fail. Another lane is held from its own first failure of this kind on.
 *   Answers in lanes that are not held do not close the circuit.
 *
 * A `busy` peer asks to wait. One such answer, in any lane, holds all lanes but `interactive`: for
 * the time of its Retry-After or, without one, for our backoff. The peer works, so this is no
 * failure: the status stays `closed`, `endWait` does not shorten the wait, and all lanes may start
 * without a probe when it is over.
 *
 * An `interactive` request counts only if it shows that the peer is reachable, unreachable or busy.
 * Any other failure concerns that request only.
 *
 * The outcome of a request that started before the circuit last opened is ignored, with one
 * exception: its Retry-After delays the next probe, whatever the failure is.
 *
 * An outage is logged when it begins, when its kind changes, every `logAgainMs`, and when it ends.
 * All times come from one monotonic clock.
 */
export class Breaker {
  #outage: Outage | undefined;
  #strikes: readonly { readonly lane: Lane; readonly kind: Kind; readonly at: number }[] = [];
  #epoch = 0;
  #closedSince: number;

  /** @param peerName what the peer is called in the log */
  constructor(
    private readonly policy: QueuePolicy,
    private readonly log: Logger,
    private readonly peerName: string,
    now: number,
  ) {
    this.#closedSince = now;
  }

  status(now: number): CircuitStatus {
    const outage = this.#outage;
    if (outage === undefined || outage.kind === 'busy')
      return { state: 'closed', since: this.#closedSince, held: [], tries: 0 };
    const { error, since, downSince, tries, probeAt } = outage;
    const hint = error instanceof PeersyncError ? error.hint : undefined;
    const reason = { kind: outage.kind, code: systemCode(error), message: messageOf(error), hint };
    const rest = {
      since,
      downSince,
      held: LANES.filter((lane) => this.holds(lane)),
      tries,
      reason,
    };
    return now < probeAt
      ? { state: 'open', ...rest, nextProbeAt: probeAt }
      : { state: 'half-open', ...rest };
  }

  /** End of the wait that the peer asked for; in the past if it asked for none. */
  get retryAfterUntil(): number {
    return this.#outage?.kind === 'busy' ? this.#outage.probeAt : Number.NEGATIVE_INFINITY;
  }

  /** When the held lanes may start a request again; in the past if none is held. */
  get probeAt(): number {
    return this.#outage?.probeAt ?? Number.NEGATIVE_INFINITY;
  }

  /** The time that the peer has been answering, in ms; 0 while pushes or look-ups fail. */
  answeringForMs(now: number): number {
    const isFailing =
      this.#failureOutage !== undefined && (this.holds('push') || this.holds('confirm'));
    return isFailing ? 0 : now - this.#closedSince;
  }

  /** Whether this lane is held: its requests wait for the end of the backoff, or for a probe. */
  holds(lane: Lane): boolean {
    if (this.#outage === undefined || lane === 'interactive') return false;
    const { kind, lanes } = this.#outage;
    return kind === 'unreachable' || kind === 'busy' || lanes.has(lane);
  }

  /**
   * Returns the earliest start of a request in this lane; Infinity while a probe is running, unless
   * the request may replace the probe.
   */
  admitsFrom(lane: Lane): number {
    if (this.#outage === undefined || !this.holds(lane)) return Number.NEGATIVE_INFINITY;
    const { probe, probeAt } = this.#outage;
    const isProbed = probe !== undefined && (probe.lane !== 'mirror' || lane === 'mirror');
    return isProbed ? Number.POSITIVE_INFINITY : probeAt;
  }

  /** Ends the backoff now. Called when the peer is known, or hoped, to be back. */
  endWait(now: number): void {
    if (this.#failureOutage)
      this.#failureOutage.probeAt = Math.min(this.#failureOutage.probeAt, now);
  }

  /** Called when a request starts; only if `admitsFrom` allows it. */
  started(lane: Lane, now: number): Ticket {
    const ticket = { lane, startedAt: now, epoch: this.#epoch };
    if (this.#failureOutage && this.holds(lane)) this.#failureOutage.probe = ticket;
    return ticket;
  }

  /**
   * Called when a request ended. `error` is set unless it was answered.
   *
   * @returns whether this closed a circuit that had been open because of failures
   */
  ended(ticket: Ticket, outcome: Outcome, now: number, error?: unknown): boolean {
    const wasProbe = this.#outage?.probe === ticket;
    if (this.#outage && wasProbe) this.#outage.probe = undefined;
    if (outcome.kind === 'answered') return this.#answered(ticket, now);
    if (outcome.kind === 'aborted') return false;
    if (ticket.lane !== 'interactive' || outcome.kind === 'unreachable' || outcome.kind === 'busy')
      this.#failed(ticket, outcome, now, error, wasProbe);
    return false;
  }

  get #failureOutage(): Outage | undefined {
    return this.#outage?.kind === 'busy' ? undefined : this.#outage;
  }

  #answered(ticket: Ticket, now: number): boolean {
    if (ticket.epoch !== this.#epoch) return false;
    this.#strikes = this.#strikes.filter(
      ({ lane, kind }) => kind !== 'unreachable' && lane !== ticket.lane,
    );
    const outage = this.#outage;
    if (outage === undefined) return false;
    const { downSince, downTries: tries, kind, loggedAt, probeAt } = outage;
    const isOver =
      kind === 'busy'
        ? ticket.startedAt >= probeAt
        : kind === 'unreachable' || this.holds(ticket.lane);
    if (!isOver) return false;
    this.#outage = undefined;
    if (kind !== 'busy') this.#closedSince = now;
    const downMs = now - downSince;
    const text = `answers again after ${durationText(downMs)}; ${counted(tries, 'try', 'tries')}.`;
    // A short wait for a busy peer is not worth a second line.
    if (kind !== 'busy' || loggedAt > downSince)
      this.log.info({ downMs, tries }, `${this.peerName} ${text}`);
    return kind !== 'busy';
  }

  #failed(
    ticket: Ticket,
    outcome: FailedOutcome,
    now: number,
    error: unknown,
    wasProbe: boolean,
  ): void {
    const { kind } = outcome;
    const before = this.#outage;
    const isSameKind = before?.kind === kind;
    const wasProbed = wasProbe || (kind === 'busy' && ticket.startedAt >= this.probeAt);
    const retryAfterMs =
      kind === 'busy' ? Math.min(outcome.retryAfterMs || 0, this.policy.retryAfterMaxMs) : 0;
    if (before) {
      before.downTries += 1;
      if (isSameKind) before.tries += 1;
      if (retryAfterMs > 0) before.probeAt = Math.max(before.probeAt, now + retryAfterMs);
    }
    // The request is older than the outage: nothing but its Retry-After counts.
    if (ticket.epoch !== this.#epoch) return;
    if (before && isSameKind) {
      before.lanes.add(ticket.lane);
      if (!wasProbed) return;
      before.failedProbes += 1;
      this.#open(before, now, error, retryAfterMs);
      return;
    }
    const strikes = [...this.#strikes, { lane: ticket.lane, kind, at: now }];
    this.#strikes = strikes;
    if (!wasProbe && strikes.length < this.policy.openAfter[kind]) return;
    this.#strikes = [];
    this.#epoch += 1;
    // A busy peer answers.
    if (kind === 'busy' && this.#failureOutage) this.#closedSince = now;
    const sameKind = strikes.filter((strike) => strike.kind === kind);
    const [since, tries] = [sameKind[0]?.at ?? now, sameKind.length];
    const { downSince = since, downTries = tries, lanes = [] } = before ?? {};
    const outage: Outage = {
      kind,
      since,
      tries,
      downSince,
      downTries,
      lanes: new Set([...lanes, ...strikes.map(({ lane }) => lane)]),
      error: undefined,
      failedProbes: 0,
      probeAt: now,
      probe: undefined,
      loggedAt: Number.NEGATIVE_INFINITY,
    };
    this.#open(outage, now, error, retryAfterMs);
  }

  /** @param retryAfterMs the Retry-After of the peer; 0 or less if it named none */
  #open(outage: Outage, now: number, error: unknown, retryAfterMs: number): void {
    const { kind, since, failedProbes, tries } = outage;
    const { first, longest } = this.policy.waitMs[kind];
    const backoffMs = Math.min(longest, first * 2 ** Math.min(failedProbes, 30));
    // Jitter: many clients that lost the same peer must not return at once.
    const waitMs = retryAfterMs > 0 ? retryAfterMs : backoffMs * (0.5 + this.policy.random() / 2);
    outage.error = error;
    outage.probeAt = now + waitMs;
    this.#outage = outage;
    if (now - outage.loggedAt < this.policy.logAgainMs) return;
    outage.loggedAt = now;
    const isBusy = kind === 'busy';
    const what = isBusy ? 'asks to wait' : PEER_FAILURE_WORDS[kind];
    const still = failedProbes === 0 ? what : `still ${what} after ${durationText(now - since)}`;
    const hint = error instanceof PeersyncError && !isBusy ? ` ${sentence(error.hint)}` : '';
    const next = isBusy ? 'Going on' : 'Work waits and nothing is lost; next try';
    const text = `${still}: ${sentence(messageOf(error))}${hint} ${next} in ${durationText(waitMs)}.`;
    const fields = { kind, code: systemCode(error), tries, waitMs: Math.round(waitMs) };
    this.log[isBusy && failedProbes === 0 ? 'info' : 'warn'](fields, `${this.peerName} ${text}`);
  }
}
