import type { Clock } from '../lib/clock.js';
import type { Lane } from './lanes.js';

/** What a person paused. In ms since the epoch. */
export interface Paused {
  readonly since: number;
  /** When it ends by itself. */
  readonly until?: number;
}

/** Two clocks that run beside each other come apart a little; one that was set, by more than this, in ms. */
const SET_MS = 2_000;

/**
 * A person lets the work with the peer rest.
 *
 * - *Working*: everything may start as far as this is concerned.
 * - *Paused*, entered by `begin`: nothing but `interactive` may start, until `end`, or until its time, which `tick` notices.
 *
 * How long is measured by the monotonic clock; the dates are for show.
 */
export class Recess {
  readonly #clock: Clock;
  #paused: Paused | undefined;
  #endsAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Its end is told as the clock on the wall has it now, which may have been set since. */
  get paused(): Paused | undefined {
    const paused = this.#paused;
    if (paused?.until === undefined) return paused;
    const until = Math.round(this.#clock.now() + this.#endsAt - this.#clock.monotonic());
    return Math.abs(until - paused.until) < SET_MS ? paused : { ...paused, until };
  }

  /** From when on a task of this lane may start, on the monotonic clock; infinity where only a person ends it. */
  admitsFrom(lane: Lane): number {
    return lane === 'interactive' ? Number.NEGATIVE_INFINITY : this.#endsAt;
  }

  /** When `tick` is due, on the monotonic clock, if at all. */
  get nextTickAt(): number | undefined {
    return Number.isFinite(this.#endsAt) ? this.#endsAt : undefined;
  }

  begin(paused: Paused): void {
    const { until } = paused;
    this.#paused = paused;
    this.#endsAt =
      until === undefined
        ? Number.POSITIVE_INFINITY
        : this.#clock.monotonic() + Math.max(0, until - this.#clock.now());
  }

  /** @returns whether it was paused */
  end(): boolean {
    const was = this.#paused !== undefined;
    this.#paused = undefined;
    this.#endsAt = Number.NEGATIVE_INFINITY;
    return was;
  }

  /** Time went on. @returns whether the pause ended */
  tick(): boolean {
    return this.#paused !== undefined && this.#clock.monotonic() >= this.#endsAt && this.end();
  }
}
