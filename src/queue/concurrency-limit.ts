import type { Lane, QueuePolicy } from './options.js';

/** How fast the smoothed latency follows: about the last five answers. */
const FOLLOW = 0.2;
const CUT_SLOW = 0.7;
const CUT_REFUSED = 0.5;
/** However slow a peer becomes, it gets two pushes and a look-up at a time; fewer only where it refuses. */
const LEAST_SLOW = 3;

interface Latency {
  /** The smoothed minimum of the latency, in ms. */
  least: number;
  /** The smoothed latency since the last cut, in ms. */
  recent: number | undefined;
}

/**
 * How many requests the peer bears at a time, from 1 to `max`.
 *
 * - *Rising*, at the start and after an outage: one more with each answer, from 1 up.
 * - *Steady*, from the first cut on: one more each time that all slots have been answered.
 * - A *cut*, to 0.7 (and not below three) for latency well above its smoothed minimum, to 0.5 for a refusal. Requests that
 *   were under way at a cut cause no further one: they say nothing about the new limit.
 *
 * With three requests at a time or fewer, latency is the peer's own. There, and only there, the minimum is learned anew: bodies
 * that grew a hundredfold cost one dip, not the speed of the day, and a slow rise is never mistaken for the normal.
 */
export class ConcurrencyLimit {
  #max: number;
  readonly #policy: QueuePolicy;
  readonly #latencies = new Map<Lane, Latency>();
  #limit = 1;
  #rising = true;
  #cutAt = Number.NEGATIVE_INFINITY;

  constructor(max: number, policy: QueuePolicy) {
    this.#max = max;
    this.#policy = policy;
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** Up to how many it may rise from now on. */
  set max(max: number) {
    this.#max = max;
    this.#limit = Math.min(this.#limit, max);
  }

  /** A request that started at `startedAt` was answered now; `full` says whether all slots were in use. */
  answered(lane: Lane, startedAt: number, now: number, full: boolean): void {
    if (this.#isSlow(lane, now - startedAt)) this.#cut(CUT_SLOW, LEAST_SLOW, startedAt, now);
    else if (full) this.#limit = Math.min(this.#max, this.#limit + (this.#rising ? 1 : 1 / this.#limit));
  }

  /** A request that started at `startedAt` was refused, or not answered at all. */
  refused(startedAt: number, now: number): void {
    this.#cut(CUT_REFUSED, 1, startedAt, now);
  }

  /** The peer was away: what it bears is found out from one request on. */
  restart(): void {
    this.#limit = 1;
    this.#rising = true;
  }

  #isSlow(lane: Lane, ms: number): boolean {
    const latency = this.#latencies.get(lane);
    if (!latency) {
      this.#latencies.set(lane, { least: ms, recent: ms });
      return false;
    }
    if (ms < latency.least || this.limit <= LEAST_SLOW) latency.least += (ms - latency.least) * FOLLOW;
    latency.recent = latency.recent === undefined ? ms : latency.recent + (ms - latency.recent) * FOLLOW;
    return latency.recent > latency.least * this.#policy.slowFactor + this.#policy.slowSlackMs;
  }

  #cut(factor: number, least: number, startedAt: number, now: number): void {
    if (startedAt < this.#cutAt) return;
    this.#limit = Math.min(this.#limit, Math.max(least, this.#limit * factor));
    this.#rising = false;
    this.#cutAt = now;
    for (const latency of this.#latencies.values()) latency.recent = undefined;
  }
}
