import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { Moment } from '../lib/moment.js';
import type { Announcer } from './announcer.js';
import { Breaker, type Change, type Ticket } from './breaker.js';
import { Congestion } from './congestion.js';
import { isShared, LANES, type Lane } from './lanes.js';
import type { Outcome, Trouble, TroubleKind } from './outcome.js';
import { Pause } from './pause.js';
import type { QueuePolicy } from './policy.js';
import type { CircuitStatus } from './status.js';

/** The outcomes that an overloaded peer gives. */
const REFUSALS: ReadonlySet<Outcome['kind']> = new Set(['busy', 'failing', 'unreachable']);

/**
 * What the outcomes of tasks say about the peer: whether it is there (`Breaker`), wants to be left alone (`Pause`), and
 * how much it bears (`Congestion`). Tells it once (`Announcer`).
 */
export class Health {
  readonly #clock: Clock;
  readonly #announcer: Announcer;
  readonly #breaker: Breaker;
  readonly #pause: Pause;
  readonly #congestion: Congestion;
  #upSince: Moment | undefined;
  /** While the circuit is not closed: since when there is trouble of any kind, and of the kind of now. */
  #downSince: Moment | undefined;
  #troubleSince: Moment | undefined;
  #closedSince: Moment;
  /** The same, on the monotonic clock. */
  #closedFrom: number;

  constructor(
    clock: Clock,
    announcer: Announcer,
    policy: QueuePolicy,
    maxConcurrency: number,
    random: () => number,
  ) {
    this.#clock = clock;
    this.#announcer = announcer;
    this.#breaker = new Breaker(policy, random);
    this.#pause = new Pause(policy, random);
    this.#congestion = new Congestion(maxConcurrency, policy);
    this.#closedSince = new Moment(clock);
    this.#closedFrom = clock.monotonic();
  }

  /** How many shared tasks the peer bears at a time. */
  get slots(): number {
    return this.#congestion.limit;
  }

  /** Up to how many shared tasks at a time are tried. */
  set maxConcurrency(max: number) {
    this.#congestion.max = max;
  }

  /** From when on a task of this lane may start, on the monotonic clock; see `Breaker.admitsFrom`. */
  admitsFrom(lane: Lane): number {
    if (lane === 'interactive') return Number.NEGATIVE_INFINITY;
    return Math.max(this.#breaker.admitsFrom(lane), this.#pause.until);
  }

  /** When `tick` is due, on the monotonic clock, if at all. */
  get nextTickAt(): number | undefined {
    return this.#breaker.probeAt;
  }

  /** Time went on. @returns whether the circuit changed */
  tick(): boolean {
    return this.#breaker.tick(this.#clock.monotonic());
  }

  /** Ends the wait for the next probe. */
  endWait(): void {
    this.#breaker.endWait(this.#clock.monotonic());
  }

  started(lane: Lane, now: number): Ticket {
    return this.#breaker.started(lane, now);
  }

  /**
   * A task ended.
   *
   * @param error what it was rejected with; looked at only where the outcome is trouble
   * @param full whether all shared slots were in use
   * @returns whether circuit or pause changed
   */
  ended(ticket: Ticket, outcome: Outcome, error: unknown, full: boolean): boolean {
    const now = this.#clock.monotonic();
    const change = this.#breaker.ended(ticket, outcome, now, (kind) => troubleOf(kind, error));
    this.#adapt(ticket, outcome, change, now, full);
    this.#date(outcome, change);
    this.#announcer.changed(change);
    const pause = this.#pause;
    if (outcome.kind === 'answered' && pause.answered(ticket.startedAt))
      this.#announcer.resumed(now - pause.since);
    if (outcome.kind !== 'busy') return change.kind !== 'none';
    const isFirst = pause.busy(ticket.startedAt, now, outcome.retryAfterMs);
    const waitMs = pause.until - now;
    if (isFirst) this.#announcer.paused(messageOf(error), waitMs);
    else this.#announcer.stillPaused(messageOf(error), waitMs, now - pause.since);
    return true;
  }

  get upSince(): number | undefined {
    return this.#upSince?.at;
  }

  /** For how long the peer has been answering, in ms; 0 while it is in trouble. */
  get answeringForMs(): number {
    return this.#breaker.state === 'closed' ? this.#clock.monotonic() - this.#closedFrom : 0;
  }

  get downSince(): number | undefined {
    return this.#downSince?.at;
  }

  /** Until when the peer asked to wait, in ms since the epoch, while it does. */
  get pausedUntil(): number | undefined {
    return this.#pause.until > this.#clock.monotonic() ? this.#dated(this.#pause.until) : undefined;
  }

  circuit(): CircuitStatus {
    const { state, reason, tries } = this.#breaker;
    const nextProbeAt = this.#dated(this.#breaker.probeAt);
    const { downSince } = this;
    return {
      state,
      since: (this.#troubleSince ?? this.#closedSince).at,
      ...(downSince === undefined ? {} : { downSince }),
      held: LANES.filter((lane) => this.#breaker.holds(lane)),
      tries,
      ...(reason === undefined ? {} : { reason }),
      ...(nextProbeAt === undefined ? {} : { nextProbeAt }),
    };
  }

  #adapt(ticket: Ticket, outcome: Outcome, change: Change, now: number, full: boolean): void {
    const { lane, startedAt } = ticket;
    if (change.kind === 'closed') this.#congestion.restart();
    if (lane === 'interactive') return;
    if (outcome.kind === 'answered' && isShared(lane)) this.#congestion.answered(lane, startedAt, now, full);
    if (REFUSALS.has(outcome.kind)) this.#congestion.refused(startedAt, now);
  }

  #date(outcome: Outcome, change: Change): void {
    const { began } = this.#breaker;
    if (change.kind === 'opened') {
      this.#upSince = undefined;
      this.#downSince = this.#momentOf(began?.down);
    }
    if (change.kind === 'opened' || change.kind === 'other-trouble')
      this.#troubleSince = this.#momentOf(began?.trouble);
    if (change.kind === 'closed') {
      this.#downSince = undefined;
      this.#troubleSince = undefined;
      this.#closedSince = new Moment(this.#clock);
      this.#closedFrom = this.#clock.monotonic();
    }
    const isAnswer = outcome.kind === 'answered' || outcome.kind === 'busy';
    if (isAnswer && this.#breaker.state === 'closed') this.#upSince ??= new Moment(this.#clock);
  }

  /** A time of the monotonic clock that is over. */
  #momentOf(monotonic: number | undefined): Moment | undefined {
    return monotonic === undefined ? undefined : new Moment(this.#clock, this.#clock.monotonic() - monotonic);
  }

  /** A time of the monotonic clock in ms since the epoch. */
  #dated(monotonic: number | undefined): number | undefined {
    if (monotonic === undefined) return undefined;
    return Math.round(this.#clock.now() + monotonic - this.#clock.monotonic());
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
