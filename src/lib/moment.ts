import type { Clock } from './clock.js';

/** Two clocks that run beside each other come apart a little; one that was set, by more than this, in ms. */
export const SET_MS = 2_000;

/** A moment that is over, in steady time. */
export class Moment {
  /** In ms since the epoch. */
  readonly at: number;

  /** @param agoMs how long ago it was */
  constructor(clock: Pick<Clock, 'now'>, agoMs = 0) {
    this.at = Math.round(clock.now() - agoMs);
  }
}
