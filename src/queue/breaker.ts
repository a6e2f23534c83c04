import type { Lane, Outcome, QueuePolicy } from './options.js';

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
  readonly code?: string;
  readonly message: string;
  /** What a person can do about it, where the error says so. */
  readonly hint?: string;
}

export type CircuitState = 'closed' | 'open' | 'half-open';

/** Given to a request at its start and back with its outcome. */
export interface Ticket {
  readonly lane: Lane;
  readonly startedAt: number;
  /** How often the circuit had opened when the request started. */
  readonly epoch: number;
}

/** What an outcome did to the circuit. */
export type Change =
  | { readonly kind: 'none' }
  | TroubleChange
  | {
      readonly kind: 'closed';
      /** Since the first trouble of any kind began. */
      readonly downMs: number;
      /** Requests that failed in that time. */
      readonly tries: number;
    };

export interface TroubleChange {
  /** `still`: a probe failed like those before it. `other-trouble`: it is of another kind now. */
  readonly kind: 'opened' | 'still' | 'other-trouble';
  readonly trouble: Trouble;
  /** Requests that failed since the trouble of this kind began. */
  readonly tries: number;
  /** Since the trouble of this kind began. */
  readonly troubleMs: number;
  readonly nextProbeMs: number;
}

const NONE: Change = { kind: 'none' };

interface Strike {
  readonly lane: Lane;
  readonly kind: TroubleKind;
  readonly at: number;
}

/**
 * The circuit breaker: holds requests back from a peer that is away.
 *
 * - *Closed*: everything may start. Each trouble is a strike. An answer takes back the strikes of its lane, for one page of
 *   a peer may fail while others work, and the `unreachable` ones of all lanes. The circuit opens at `policy.openAfter`
 *   strikes, counted for the kind of the last one.
 * - *Open*: nothing of the held lanes may start. `tick` makes it half-open once the backoff is over; `endWait` ends the
 *   backoff.
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
 * All times are in ms of one clock that is never set.
 */
export class Breaker {
  readonly #policy: QueuePolicy;
  readonly #random: () => number;
  #state: CircuitState = 'closed';
  #reason: Trouble | undefined;
  /** The lanes that had the trouble. */
  readonly #troubled = new Set<Lane>();
  #strikes: readonly Strike[] = [];
  /** All trouble since the circuit was closed. */
  #downSince = 0;
  #downTries = 0;
  /** The part of it that is of the kind of now. */
  #troubleSince = 0;
  #troubleTries = 0;
  #epoch = 0;
  #step = 0;
  #probeAt = 0;
  #probe: Ticket | undefined;

  constructor(policy: QueuePolicy, random: () => number) {
    this.#policy = policy;
    this.#random = random;
  }

  get state(): CircuitState {
    return this.#state;
  }

  /** Why it is not closed. */
  get reason(): Trouble | undefined {
    return this.#reason;
  }

  /** Requests that failed since the trouble of the kind of now began; 0 while closed. */
  get tries(): number {
    return this.#state === 'closed' ? 0 : this.#troubleTries;
  }

  /** When the trouble of the kind of now began, and when any did; undefined while closed. */
  get began(): { readonly trouble: number; readonly down: number } | undefined {
    return this.#state === 'closed' ? undefined : { trouble: this.#troubleSince, down: this.#downSince };
  }

  /** When an open circuit becomes half-open. */
  get probeAt(): number | undefined {
    return this.#state === 'open' ? this.#probeAt : undefined;
  }

  /** Whether the trouble keeps this lane back. */
  holds(lane: Lane): boolean {
    if (this.#state === 'closed' || lane === 'interactive') return false;
    return this.#reason?.kind === 'unreachable' || this.#troubled.has(lane);
  }

  /** From when on a request of this lane may start: in the past for now, infinity while a probe is under way. */
  admitsFrom(lane: Lane): number {
    if (!this.holds(lane)) return Number.NEGATIVE_INFINITY;
    if (this.#state === 'open') return this.#probeAt;
    return this.#probe === undefined ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }

  /** Time has passed. @returns whether the circuit became half-open */
  tick(now: number): boolean {
    if (this.#state !== 'open' || now < this.#probeAt) return false;
    this.#state = 'half-open';
    return true;
  }

  /** Ends the backoff now: somebody knows that the peer is back, or wants to know. */
  endWait(now: number): void {
    if (this.#state === 'open') this.#probeAt = Math.min(this.#probeAt, now);
  }

  /** A request starts; only where `admitsFrom` allows, after a `tick`. */
  started(lane: Lane, now: number): Ticket {
    const ticket = { lane, startedAt: now, epoch: this.#epoch };
    if (this.holds(lane)) this.#probe = ticket;
    return ticket;
  }

  /** A request ended. @param troubleOf describes the trouble; called only if there is one */
  ended(ticket: Ticket, outcome: Outcome, now: number, troubleOf: (kind: TroubleKind) => Trouble): Change {
    const wasProbe = this.#probe === ticket;
    if (wasProbe) this.#probe = undefined;
    switch (outcome.kind) {
      case 'aborted':
        return NONE;
      case 'busy':
        // A peer that is too busy has not looked at the credentials.
        return this.#reason?.kind === 'denied' ? NONE : this.#answered(ticket, now);
      case 'answered':
        return this.#answered(ticket, now);
      default:
        if (ticket.lane === 'interactive' && outcome.kind !== 'unreachable') return NONE;
        return this.#failed(ticket, wasProbe, troubleOf(outcome.kind), now);
    }
  }

  #answered(ticket: Ticket, now: number): Change {
    if (ticket.epoch !== this.#epoch) return NONE;
    this.#strikes = this.#strikes.filter(({ lane, kind }) => kind !== 'unreachable' && lane !== ticket.lane);
    if (this.#state === 'closed') return NONE;
    if (this.#reason?.kind !== 'unreachable' && !this.holds(ticket.lane)) return NONE;
    this.#state = 'closed';
    this.#reason = undefined;
    this.#troubled.clear();
    return { kind: 'closed', downMs: now - this.#downSince, tries: this.#downTries };
  }

  #failed(ticket: Ticket, wasProbe: boolean, trouble: Trouble, now: number): Change {
    const isFirst = this.#state === 'closed';
    const isSame = trouble.kind === this.#reason?.kind;
    if (!isFirst) this.#downTries += 1;
    if (isSame) this.#troubleTries += 1;
    if (ticket.epoch !== this.#epoch) return NONE;
    if (isSame && wasProbe) {
      this.#step += 1;
      return this.#wait('still', trouble, now);
    }
    if (isSame) {
      this.#troubled.add(ticket.lane);
      return NONE;
    }
    this.#strikes = [...this.#strikes, { lane: ticket.lane, kind: trouble.kind, at: now }];
    if (!wasProbe && this.#strikes.length < this.#policy.openAfter[trouble.kind]) return NONE;
    if (isFirst) {
      this.#downSince = this.#strikes[0]?.at ?? now;
      this.#downTries = this.#strikes.length;
    }
    for (const { lane } of isFirst ? this.#strikes : [ticket]) this.#troubled.add(lane);
    return this.#open(isFirst ? 'opened' : 'other-trouble', trouble, now);
  }

  #open(kind: 'opened' | 'other-trouble', trouble: Trouble, now: number): TroubleChange {
    const alike = this.#strikes.filter((strike) => strike.kind === trouble.kind);
    this.#troubleSince = alike[0]?.at ?? now;
    this.#troubleTries = alike.length;
    this.#epoch += 1;
    this.#strikes = [];
    this.#step = 0;
    this.#probe = undefined;
    return this.#wait(kind, trouble, now);
  }

  #wait(kind: TroubleChange['kind'], trouble: Trouble, now: number): TroubleChange {
    const { probeMs, probeMaxMs, deniedProbeMs, deniedProbeMaxMs } = this.#policy;
    const [first, longest] =
      trouble.kind === 'denied' ? [deniedProbeMs, deniedProbeMaxMs] : [probeMs, probeMaxMs];
    this.#state = 'open';
    this.#reason = trouble;
    const nextProbeMs = backoffMs(this.#step, first, longest, this.#random);
    this.#probeAt = now + nextProbeMs;
    return { kind, trouble, tries: this.#troubleTries, troubleMs: now - this.#troubleSince, nextProbeMs };
  }
}

/**
 * The wait after the `step`-th failure in a row (0 is the first): `firstMs` doubled each step up to `maxMs`, then
 * shortened by up to half at random, so that many who lost the same peer do not come back together.
 */
export function backoffMs(step: number, firstMs: number, maxMs: number, random: () => number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(step, 30)) * (0.5 + random() / 2);
}
