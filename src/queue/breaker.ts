import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { counted, sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { LANES, type Lane, type Outcome, type QueuePolicy } from './options.js';

/** The outcomes that open the circuit when there are enough of them. */
export type TroubleKind = 'unreachable' | 'failing' | 'denied' | 'weak';

/** What a peer in trouble does, as the end of a sentence that begins with it. */
export const TROUBLE_WORDS: Readonly<Record<TroubleKind, string>> = {
  unreachable: 'does not answer',
  failing: 'answers with errors',
  denied: 'refuses the credentials',
  weak: 'asks for the password in a way that is not safe',
};

/** What went wrong with the peer, in the words of the error that showed it. */
export interface Trouble {
  readonly kind: TroubleKind;
  readonly code?: string | undefined;
  readonly message: string;
  /** What a person can do about it, where the error says so. */
  readonly hint?: string | undefined;
}

/** All times are in ms since the epoch. */
export interface CircuitStatus {
  readonly state: 'closed' | 'open' | 'half-open';
  /**
   * Closed: since when the peer answers (or the queue was made). Else: since when it is in this
   * kind of trouble.
   */
  readonly since: number;
  /** Since when it is in trouble of any kind; only while not closed. */
  readonly downSince?: number;
  readonly reason?: Trouble;
  /** The lanes that the trouble holds back; empty while closed. */
  readonly held: readonly Lane[];
  /** When one request may try again; only while open. */
  readonly nextProbeAt?: number | undefined;
  /** Requests that failed since this kind of trouble began; 0 while closed. */
  readonly tries: number;
}

/** Given to a request at its start and back with its outcome. */
export interface Ticket {
  readonly lane: Lane;
  readonly startedAt: number;
  /** How often the circuit had opened when the request started. */
  readonly epoch: number;
}

type Failure = Exclude<Outcome, { readonly kind: 'answered' | 'aborted' }>;
type Kind = Failure['kind'];

/**
 * While the circuit is not closed. `since` and `tries` are of this kind of trouble, `downSince` and
 * `downTries` of any kind.
 */
interface Outage {
  readonly kind: Kind;
  /** What the last probe was rejected with. */
  error: unknown;
  readonly since: number;
  tries: number;
  readonly downSince: number;
  downTries: number;
  /** The lanes that had the trouble. */
  readonly lanes: Set<Lane>;
  /** Probes that failed one after the other. */
  step: number;
  probeAt: number;
  probe: Ticket | undefined;
  /** When it was last logged. */
  loggedAt: number;
}

/**
 * The circuit breaker: holds requests back from a peer that is away, or that asks to be left alone.
 *
 * - *Closed*: everything may start. Each trouble is a strike. An answer takes back the strikes of
 *   its lane, for one page of a peer may fail while others work, and the `unreachable` ones of all
 *   lanes. The circuit opens at `policy.openAfter` strikes, counted for the kind of the last one.
 * - *Open* until the backoff is over: nothing of the held lanes may start. `endWait` ends the
 *   backoff.
 * - *Half-open*: one request of the held lanes may start, as the *probe*; the circuit stays
 *   half-open until one comes. An answer to the probe closes the circuit and resets the backoff.
 *   Trouble opens it for longer, or from the first wait on if it is of another kind: then the peer
 *   is on its way back. An aborted probe leaves room for the next. So does a download, which may
 *   take long: a request of another lane that may start meanwhile is the probe in its place.
 *
 * Held are all lanes if the peer is unreachable, and otherwise those that had the trouble: some
 * pages of a peer ask for no credentials and work while pushes fail. A lane that never had the
 * trouble neither waits for its end nor proves it. It is held from its own first such trouble on.
 *
 * A peer that is `busy` asks to be left alone, with a Retry-After or for a backoff of ours. That
 * opens the circuit for all lanes and is no trouble: the status is `closed`, `endWait` does not
 * shorten it, and once it is over everything may start.
 *
 * `interactive` is never held. Whether the peer is reachable or busy shows there as anywhere; any
 * other trouble of a person's request concerns that request only.
 *
 * A request that started before the circuit last opened proves nothing any more.
 *
 * An outage is logged when it begins, when it turns into another kind, again after every
 * `logAgainMs`, and when it is over. All times are by one steady clock.
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

  /** When the wait that the peer asked for is over; in the past where it asks for none. */
  get pausedUntil(): number {
    return this.#outage?.kind === 'busy' ? this.#outage.probeAt : Number.NEGATIVE_INFINITY;
  }

  /** When the held lanes may start something again; in the past while none is held. */
  get probeAt(): number {
    return this.#outage?.probeAt ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * For how long the peer has been answering, in ms; 0 while it is in trouble with pushes or
   * look-ups.
   */
  answeringForMs(now: number): number {
    const isInTrouble =
      this.#trouble !== undefined && (this.holds('push') || this.holds('confirm'));
    return isInTrouble ? 0 : now - this.#closedSince;
  }

  /** Whether requests of this lane are kept back. */
  holds(lane: Lane): boolean {
    if (this.#outage === undefined || lane === 'interactive') return false;
    const { kind, lanes } = this.#outage;
    return kind === 'unreachable' || kind === 'busy' || lanes.has(lane);
  }

  /** From when on a request of this lane may start: infinity while a probe is under way. */
  admitsFrom(lane: Lane): number {
    if (this.#outage === undefined || !this.holds(lane)) return Number.NEGATIVE_INFINITY;
    const { probe, probeAt } = this.#outage;
    const isProbed = probe !== undefined && (probe.lane !== 'mirror' || lane === 'mirror');
    return isProbed ? Number.POSITIVE_INFINITY : probeAt;
  }

  /** Ends the backoff now: somebody knows that the peer is back, or wants to know. */
  endWait(now: number): void {
    if (this.#trouble) this.#trouble.probeAt = Math.min(this.#trouble.probeAt, now);
  }

  /** A request starts; only where `admitsFrom` allows. */
  started(lane: Lane, now: number): Ticket {
    const ticket = { lane, startedAt: now, epoch: this.#epoch };
    if (this.#trouble && this.holds(lane)) this.#trouble.probe = ticket;
    return ticket;
  }

  /**
   * A request ended, with this error unless it was answered. @returns whether that ended a trouble
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

  get #trouble(): Outage | undefined {
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
    // A peer that was busy for a moment is not worth a second line.
    if (kind !== 'busy' || loggedAt > downSince)
      this.log.info({ downMs, tries }, `${this.peerName} ${text}`);
    return kind !== 'busy';
  }

  #failed(ticket: Ticket, outcome: Failure, now: number, error: unknown, wasProbe: boolean): void {
    const { kind } = outcome;
    const before = this.#outage;
    const isSame = before?.kind === kind;
    const wasTried = wasProbe || (kind === 'busy' && ticket.startedAt >= this.probeAt);
    const askedMs =
      kind === 'busy' ? Math.min(outcome.retryAfterMs || 0, this.policy.retryAfterMaxMs) : 0;
    if (before) {
      before.downTries += 1;
      if (isSame) before.tries += 1;
      if (askedMs > 0) before.probeAt = Math.max(before.probeAt, now + askedMs);
    }
    if (ticket.epoch !== this.#epoch) return;
    if (before && isSame) {
      before.lanes.add(ticket.lane);
      if (!wasTried) return;
      before.step += 1;
      this.#open(before, now, error, askedMs);
      return;
    }
    const strikes = [...this.#strikes, { lane: ticket.lane, kind, at: now }];
    this.#strikes = strikes;
    if (!wasProbe && strikes.length < this.policy.openAfter[kind]) return;
    this.#strikes = [];
    this.#epoch += 1;
    // It answers.
    if (kind === 'busy' && this.#trouble) this.#closedSince = now;
    const alike = strikes.filter((strike) => strike.kind === kind);
    const [since, tries] = [alike[0]?.at ?? now, alike.length];
    const { downSince = since, downTries = tries, lanes = [] } = before ?? {};
    const outage: Outage = {
      kind,
      since,
      tries,
      downSince,
      downTries,
      lanes: new Set([...lanes, ...strikes.map(({ lane }) => lane)]),
      error: undefined,
      step: 0,
      probeAt: now,
      probe: undefined,
      loggedAt: Number.NEGATIVE_INFINITY,
    };
    this.#open(outage, now, error, askedMs);
  }

  /**
   * @param askedMs how long the peer asks to be left alone; not more than 0 where it names no time
   */
  #open(outage: Outage, now: number, error: unknown, askedMs: number): void {
    const { kind, since, step, tries } = outage;
    const { first, longest } = this.policy.waitMs[kind];
    const steadyMs = Math.min(longest, first * 2 ** Math.min(step, 30));
    // Many who lost the same peer are not to come back together.
    const waitMs = askedMs > 0 ? askedMs : steadyMs * (0.5 + this.policy.random() / 2);
    outage.error = error;
    outage.probeAt = now + waitMs;
    this.#outage = outage;
    if (now - outage.loggedAt < this.policy.logAgainMs) return;
    outage.loggedAt = now;
    const isBusy = kind === 'busy';
    const what = isBusy ? 'asks to wait' : TROUBLE_WORDS[kind];
    const still = step === 0 ? what : `still ${what} after ${durationText(now - since)}`;
    const hint = error instanceof PeersyncError && !isBusy ? ` ${sentence(error.hint)}` : '';
    const next = isBusy ? 'Going on' : 'Work waits and nothing is lost; next try';
    const text = `${still}: ${sentence(messageOf(error))}${hint} ${next} in ${durationText(waitMs)}.`;
    const fields = { kind, code: systemCode(error), tries, waitMs: Math.round(waitMs) };
    this.log[isBusy && step === 0 ? 'info' : 'warn'](fields, `${this.peerName} ${text}`);
  }
}
