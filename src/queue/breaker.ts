import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { LANES, type Lane, type Outcome, type QueuePolicy } from './options.js';

/** The outcomes that open the circuit when there are enough of them. */
export type TroubleKind = 'unreachable' | 'failing' | 'denied';

/** What a peer in trouble does, as the end of a sentence that begins with it. */
export const TROUBLE_WORDS: Readonly<Record<TroubleKind, string>> = {
  unreachable: 'does not answer',
  failing: 'answers with errors',
  denied: 'refuses the credentials',
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
  /** Closed: since when the peer answers (or the queue was made). Else: since when it is in this kind of trouble. */
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

/** How a request ended. */
export interface Ended {
  readonly ticket: Ticket;
  readonly outcome: Outcome;
  /** What it was rejected with; read only where the outcome is trouble, or the peer is busy. */
  readonly error?: unknown;
  readonly now: number;
}

export interface BreakerDeps {
  readonly policy: QueuePolicy;
  readonly log: Logger;
  /** What the peer is called in the log. */
  readonly peerName: string;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
}

/** While the circuit is not closed. `since` and `tries` are of this kind of trouble, `downSince` and `downTries` of any kind. */
interface Outage {
  reason: Trouble;
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
  /** When the trouble was last logged. */
  loggedAt: number;
}

/** While the peer asks to be left alone, until a request that started after it last did so is answered. */
interface Busy {
  readonly since: number;
  /** When it last asked. */
  at: number;
  /** How often it did, requests that were under way together counted once. */
  step: number;
  loggedAt: number;
}

/**
 * The circuit breaker: holds requests back from a peer that is away.
 *
 * - *Closed*: everything may start. Each trouble is a strike. An answer takes back the strikes of its lane, for one page of
 *   a peer may fail while others work, and the `unreachable` ones of all lanes. The circuit opens at `policy.openAfter`
 *   strikes, counted for the kind of the last one.
 * - *Open* until the backoff is over: nothing of the held lanes may start. `endWait` ends the backoff.
 * - *Half-open*: one request of the held lanes may start, as the *probe*; the circuit stays half-open until one comes. An
 *   answer to the probe closes the circuit and resets the backoff. Trouble opens it for longer, or from the first wait on if
 *   it is of another kind: then the peer is on its way back. An aborted probe leaves room for the next.
 *
 * Held are all lanes if the peer is unreachable, and otherwise those that had the trouble: some pages of a peer
 * ask for no credentials and work while pushes fail. A lane that never had the trouble neither waits for its end
 * nor proves it. It is held from its own first such trouble on.
 *
 * `interactive` is never held. Whether the peer is reachable shows there as anywhere; any other trouble of a person's request
 * concerns that request only.
 *
 * A request that started before the circuit last opened proves nothing any more.
 *
 * A peer that asks to be left alone (`busy`) is no trouble: `pausedUntil` is the end of the longest wait that it asked for. Without a
 * Retry-After the wait is ours, longer with each `busy` of a request that started after the last one.
 *
 * Both are logged when they begin, when a trouble turns into another kind, again after every `logAgainMs`, and when they are over. All times
 * are by one steady clock.
 */
export class Breaker {
  /** The end of the pause that the peer asked for. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  readonly #deps: BreakerDeps;
  #busy: Busy | undefined;
  #outage: Outage | undefined;
  #strikes: readonly { readonly lane: Lane; readonly kind: TroubleKind; readonly at: number }[] = [];
  #epoch = 0;
  #closedSince: number;

  constructor(deps: BreakerDeps, now: number) {
    this.#deps = deps;
    this.#closedSince = now;
  }

  status(now: number): CircuitStatus {
    if (this.#outage === undefined) return { state: 'closed', since: this.#closedSince, held: [], tries: 0 };
    const { reason, since, downSince, tries, probeAt } = this.#outage;
    const held = LANES.filter((lane) => this.holds(lane));
    if (now >= probeAt) return { state: 'half-open', since, downSince, held, tries, reason };
    return { state: 'open', since, downSince, held, tries, reason, nextProbeAt: probeAt };
  }

  /** When a probe may start; in the past while the circuit is closed. */
  get probeAt(): number {
    return this.#outage?.probeAt ?? Number.NEGATIVE_INFINITY;
  }

  /** For how long the peer has been answering, in ms; 0 while it is in trouble. */
  answeringForMs(now: number): number {
    return this.#outage === undefined ? now - this.#closedSince : 0;
  }

  /** Whether the trouble keeps this lane back. */
  holds(lane: Lane): boolean {
    if (this.#outage === undefined || lane === 'interactive') return false;
    return this.#outage.reason.kind === 'unreachable' || this.#outage.lanes.has(lane);
  }

  /** From when on a request of this lane may start: infinity while a probe is under way. */
  admitsFrom(lane: Lane): number {
    if (this.#outage === undefined || !this.holds(lane)) return Number.NEGATIVE_INFINITY;
    return this.#outage.probe === undefined ? this.#outage.probeAt : Number.POSITIVE_INFINITY;
  }

  /** Ends the backoff now: somebody knows that the peer is back, or wants to know. */
  endWait(now: number): void {
    if (this.#outage) this.#outage.probeAt = Math.min(this.#outage.probeAt, now);
  }

  /** A request starts; only where `admitsFrom` allows. */
  started(lane: Lane, now: number): Ticket {
    const ticket = { lane, startedAt: now, epoch: this.#epoch };
    if (this.#outage && this.holds(lane)) this.#outage.probe = ticket;
    return ticket;
  }

  /** A request ended. @returns whether that closed the circuit */
  ended(end: Ended): boolean {
    const { ticket, outcome } = end;
    const wasProbe = this.#outage?.probe === ticket;
    if (this.#outage && wasProbe) this.#outage.probe = undefined;
    switch (outcome.kind) {
      case 'aborted':
        return false;
      case 'busy':
        this.#askedToWait(end, outcome.retryAfterMs);
        // A peer that is too busy has not looked at the credentials.
        return this.#outage?.reason.kind !== 'denied' && this.#answered(end);
      case 'answered':
        this.#notBusy(end);
        return this.#answered(end);
      default:
        if (ticket.lane !== 'interactive' || outcome.kind === 'unreachable')
          this.#failed(end, outcome.kind, wasProbe);
        return false;
    }
  }

  #askedToWait({ ticket, error, now }: Ended, retryAfterMs = 0): void {
    const { log, peerName, policy, random } = this.#deps;
    const busy = this.#busy ?? { since: now, at: now, step: 0, loggedAt: now };
    if (this.#busy !== undefined && ticket.startedAt >= busy.at) busy.step += 1;
    busy.at = now;
    const ownMs = backoffMs(busy.step, policy.busyMs, policy.busyMaxMs, random);
    const askedMs = retryAfterMs > 0 ? Math.min(retryAfterMs, policy.retryAfterMaxMs) : ownMs;
    this.pausedUntil = Math.max(this.pausedUntil, now + askedMs);
    const waitMs = Math.round(this.pausedUntil - now);
    const fields = { kind: 'busy', waitMs };
    const why = sentence(messageOf(error));
    if (this.#busy === undefined) {
      log.info(fields, `${peerName} asks to wait: ${why} Going on in ${durationText(waitMs)}.`);
    } else if (now - busy.loggedAt >= policy.logAgainMs) {
      busy.loggedAt = now;
      const lasted = durationText(now - busy.since);
      log.warn(fields, `${peerName} still asks to wait after ${lasted}: ${why} ${nextTry(waitMs)}`);
    }
    this.#busy = busy;
  }

  #notBusy({ ticket, now }: Ended): void {
    const busy = this.#busy;
    if (busy === undefined || ticket.startedAt < busy.at) return;
    this.#busy = undefined;
    if (busy.loggedAt === busy.since) return;
    const busyMs = now - busy.since;
    this.#deps.log.info(
      { busyMs },
      `${this.#deps.peerName} takes requests again after ${durationText(busyMs)}.`,
    );
  }

  #answered({ ticket, now }: Ended): boolean {
    if (ticket.epoch !== this.#epoch) return false;
    this.#strikes = this.#strikes.filter(({ lane, kind }) => kind !== 'unreachable' && lane !== ticket.lane);
    const outage = this.#outage;
    if (outage === undefined || (outage.reason.kind !== 'unreachable' && !this.holds(ticket.lane)))
      return false;
    this.#outage = undefined;
    this.#closedSince = now;
    const [downMs, tries] = [now - outage.downSince, outage.downTries];
    const text = `answers again after ${durationText(downMs)}; ${tries} ${tries === 1 ? 'try' : 'tries'}.`;
    this.#deps.log.info({ downMs, tries }, `${this.#deps.peerName} ${text}`);
    return true;
  }

  #failed({ ticket, error, now }: Ended, kind: TroubleKind, wasProbe: boolean): void {
    const before = this.#outage;
    const isSame = before?.reason.kind === kind;
    if (before) before.downTries += 1;
    if (before && isSame) before.tries += 1;
    if (ticket.epoch !== this.#epoch) return;
    if (before && isSame) {
      before.lanes.add(ticket.lane);
      if (!wasProbe) return;
      before.step += 1;
      this.#open(before, kind, error, now);
      return;
    }
    const strikes = [...this.#strikes, { lane: ticket.lane, kind, at: now }];
    this.#strikes = strikes;
    if (!wasProbe && strikes.length < this.#deps.policy.openAfter[kind]) return;
    this.#strikes = [];
    this.#epoch += 1;
    const alike = strikes.filter((strike) => strike.kind === kind);
    const outage = {
      ...{ since: alike[0]?.at ?? now, tries: alike.length },
      downSince: before?.downSince ?? strikes[0]?.at ?? now,
      downTries: before?.downTries ?? strikes.length,
      lanes: new Set(before ? [...before.lanes, ticket.lane] : strikes.map(({ lane }) => lane)),
      ...{ reason: troubleOf(kind, error), step: 0, probeAt: now, probe: undefined },
      loggedAt: Number.NEGATIVE_INFINITY,
    };
    this.#open(outage, kind, error, now);
  }

  #open(outage: Outage, kind: TroubleKind, error: unknown, now: number): void {
    const { log, peerName, policy, random } = this.#deps;
    const { deniedProbeMs, deniedProbeMaxMs, probeMs, probeMaxMs } = policy;
    const range =
      kind === 'denied' ? ([deniedProbeMs, deniedProbeMaxMs] as const) : ([probeMs, probeMaxMs] as const);
    const waitMs = backoffMs(outage.step, ...range, random);
    outage.reason = troubleOf(kind, error);
    outage.probeAt = now + waitMs;
    this.#outage = outage;
    if (now - outage.loggedAt < policy.logAgainMs) return;
    outage.loggedAt = now;
    const { code, hint, message } = outage.reason;
    const what = TROUBLE_WORDS[kind];
    const still = outage.step === 0 ? what : `still ${what} after ${durationText(now - outage.since)}`;
    const why = hint === undefined ? sentence(message) : `${sentence(message)} ${sentence(hint)}`;
    const fields = { kind, code, tries: outage.tries, nextProbeMs: Math.round(waitMs) };
    log.warn(fields, `${peerName} ${still}: ${why} ${nextTry(waitMs)}`);
  }
}

function nextTry(ms: number): string {
  return `Work waits and nothing is lost; next try in ${durationText(ms)}.`;
}

function troubleOf(kind: TroubleKind, error: unknown): Trouble {
  const hint = error instanceof PeersyncError ? error.hint : undefined;
  return { kind, code: systemCode(error), message: messageOf(error), hint };
}

/**
 * The wait after the `step`-th failure in a row (0 is the first): `firstMs` doubled each step up to `maxMs`, then
 * shortened by up to half at random, so that many who lost the same peer do not come back together.
 */
function backoffMs(step: number, firstMs: number, maxMs: number, random: () => number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(step, 30)) * (0.5 + random() / 2);
}
