import type { Clock } from '../lib/clock.js';
import { SET_MS } from '../lib/moment.js';

/** How the clock on the wall stood from one time that it was set to the next. */
interface Setting {
  /** When it began at the earliest, by that clock. */
  readonly from: number;
  /** When the one before it ended at the latest, by the clock as that had it. */
  readonly before: number;
  /** How far that clock was ahead of steady time. */
  readonly aheadMs: number;
}

const FIRST: Setting = {
  from: Number.NEGATIVE_INFINITY,
  before: Number.NEGATIVE_INFINITY,
  aheadMs: 0,
};

/** So many are remembered: what is from before belongs to the first of them. */
const REMEMBERED = 20;

/**
 * The time that figures are reckoned in: that of the clock on the wall when this began, and from there on as much later as
 * time really passed, the machine's sleep included, for a file that waits through the night has waited for it. A clock that is
 * set moves nothing here.
 *
 * What records tell are moments by the clock on the wall: one belongs to the latest setting of it in which it can have been. So
 * one that lies between where the clock was set back to and where it stood may count as later than it was, but never as earlier.
 * One that fits nowhere was written by an earlier run and is from what is the future now: all that is known is that it was
 * before this began.
 */
export class SteadyTime {
  readonly #clock: Clock;
  readonly #beganAt: number;
  /** Oldest first. */
  readonly #settings: Setting[] = [FIRST];
  /** How far the wall was ahead of the monotonic clock when it was looked at last, and of the one that goes on in a sleep. */
  #aheadOfMonotonic: number;
  #aheadOfBoottime: number;
  /** When that was, by `boottime`. */
  #lookedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beganAt = clock.now();
    this.#aheadOfMonotonic = clock.now() - clock.monotonic();
    this.#aheadOfBoottime = clock.now() - clock.boottime();
    this.#lookedAt = clock.boottime();
  }

  now(): number {
    this.#look();
    return this.#clock.now() - this.#aheadMs;
  }

  /** A moment of the clock on the wall, in steady time. */
  of(moment: number): number {
    this.#look();
    let end = this.#clock.now();
    for (let i = this.#settings.length - 1; i >= 0; i -= 1) {
      const { from, before, aheadMs } = this.#settings[i] ?? FIRST;
      if (moment >= from && moment < end + SET_MS) return moment - aheadMs;
      end = before;
    }
    return this.#beganAt;
  }

  /** A moment of steady time by the clock on the wall as it stands now, for show and to be kept. */
  dated(steady: number): number {
    this.#look();
    return steady + this.#aheadMs;
  }

  /** Whether a moment of the clock on the wall is of its latest setting. */
  isOfLatest(moment: number): boolean {
    this.#look();
    const { from } = this.#settings.at(-1) ?? FIRST;
    return moment >= from && moment < this.#clock.now() + SET_MS;
  }

  get #aheadMs(): number {
    return (this.#settings.at(-1) ?? FIRST).aheadMs;
  }

  /** It is not told when the clock is set: some time since the last look. */
  #look(): void {
    const [now, boottime] = [this.#clock.now(), this.#clock.boottime()];
    const passedMs = boottime - this.#lookedAt;
    this.#lookedAt = boottime;
    const ahead = now - this.#clock.monotonic();
    if (Math.abs(ahead - this.#aheadOfMonotonic) < SET_MS) return;
    this.#aheadOfMonotonic = ahead;
    const setMs = Math.round(now - boottime - this.#aheadOfBoottime);
    // It only slept.
    if (Math.abs(setMs) < SET_MS) return;
    this.#aheadOfBoottime += setMs;
    this.#settings.push({ from: now - passedMs, before: now - setMs, aheadMs: this.#aheadMs + setMs });
    const [, second] = this.#settings;
    if (second === undefined || this.#settings.length <= REMEMBERED) return;
    this.#settings.splice(0, 2, { ...second, from: Number.NEGATIVE_INFINITY });
  }
}
