import type { Clock } from '../lib/clock.js';
import { Moment } from '../lib/moment.js';
import type { Lane } from './lanes.js';

/** What a person paused. In ms since the epoch. */
export interface Paused {
  readonly since: number;
  /** When it ends by itself. */
  readonly until?: number;
}

/** After the machine slept the end of a pause may be noticed so much late: by this part of the pause, or by this many ms. */
const LATE_SHARE = 100;
const LATE_MS = 10_000;

/**
 * A person lets the work with the peer rest.
 *
 * - *Working*: everything may start as far as this is concerned.
 * - *Paused*, entered by `begin`: nothing but `interactive` may start, until `end`, or until its time, which `tick` notices.
 *
 * How long is measured by a clock that nobody sets and that goes on while the machine is suspended: a pause of two hours is
 * over two hours later, whoever slept meanwhile. The dates are for show.
 */
export class Recess {
  readonly #clock: Clock;
  #pause: { readonly paused: Paused; readonly begun: Moment; readonly begunAt: number } | undefined;
  /** By `boottime`. */
  #endsAt = Number.NEGATIVE_INFINITY;
  #lookMs = LATE_MS;
  #told: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Its dates are told as the clock on the wall has them now, which may have been set since. */
  get paused(): Paused | undefined {
    if (this.#pause === undefined) return undefined;
    const { paused, begun, begunAt } = this.#pause;
    const setMs = begun.at - begunAt;
    if (setMs === 0) return paused;
    const since = paused.since + setMs;
    return paused.until === undefined ? { since } : { since, until: paused.until + setMs };
  }

  /**
   * From when on a task of this lane may start, on the monotonic clock: never before the pause was ended, by a person or by
   * `tick`. If it were over before that was noticed, after a sleep of the machine, nobody would begin what may start.
   */
  admitsFrom(lane: Lane): number {
    return lane === 'interactive' || this.#pause === undefined
      ? Number.NEGATIVE_INFINITY
      : Number.POSITIVE_INFINITY;
  }

  /** When `tick` is due, on the monotonic clock, if at all. Now and then before the end: that clock stands still in a sleep. */
  get nextTickAt(): number | undefined {
    if (!Number.isFinite(this.#endsAt)) return undefined;
    return this.#clock.monotonic() + Math.min(this.#leftMs, this.#lookMs);
  }

  begin(paused: Paused): void {
    const { until } = paused;
    const begun = new Moment(this.#clock);
    this.#pause = { paused, begun, begunAt: begun.at };
    const ms = until === undefined ? Number.POSITIVE_INFINITY : Math.max(0, until - this.#clock.now());
    this.#lookMs = Math.max(LATE_MS, ms / LATE_SHARE);
    this.#endsAt = this.#clock.boottime() + ms;
    this.#told = until;
  }

  /** @returns whether it was paused */
  end(): boolean {
    const was = this.#pause !== undefined;
    this.#pause = undefined;
    this.#endsAt = Number.NEGATIVE_INFINITY;
    return was;
  }

  /** Time went on. @returns whether the pause ended, or its end has another date because the clock was set */
  tick(): boolean {
    if (this.#pause === undefined) return false;
    if (this.#leftMs <= 0) return this.end();
    const until = this.paused?.until;
    if (until === this.#told) return false;
    this.#told = until;
    return true;
  }

  get #leftMs(): number {
    return this.#endsAt - this.#clock.boottime();
  }
}
