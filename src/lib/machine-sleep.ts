/** What differs by less is how coarse the kernel tells its time (in seconds where /proc is closed), and no sleep; in ms. */
const COARSE_MS = 2_000;

interface MachineTimes {
  /** As `Clock.now`. */
  now(): number;
  /** As `Clock.monotonic`. */
  monotonic(): number;
  /** How long the machine has been up, its sleep included, in ms. Coarse, and dear to ask for. */
  uptime(): number;
}

/**
 * How long the machine has been suspended since this was first asked.
 *
 * The kernel is asked only where the clock on the wall and the monotonic one came apart, which is when the machine slept, or
 * when somebody set the clock: its uptime tells the two from each other.
 */
export class SleepOfMachine {
  readonly #times: MachineTimes;
  #slept = 0;
  /** How far the wall was ahead of the monotonic clock when the kernel was asked last, and how far its uptime was at first. */
  #wallAhead: number | undefined;
  #uptimeAhead: number | undefined;

  constructor(times: MachineTimes) {
    this.#times = times;
  }

  /** In ms; never less than before. */
  totalMs(): number {
    const { now, monotonic } = this.#times;
    const ahead = now() - monotonic();
    if (this.#wallAhead === undefined) this.#uptimeAhead = this.#uptimeNow();
    else if (Math.abs(ahead - this.#wallAhead) > COARSE_MS) this.#ask();
    else return this.#slept;
    this.#wallAhead = ahead;
    return this.#slept;
  }

  #ask(): void {
    const ahead = this.#uptimeNow();
    if (ahead === undefined || this.#uptimeAhead === undefined) return;
    const slept = ahead - this.#uptimeAhead;
    if (slept - this.#slept > COARSE_MS) this.#slept = slept;
  }

  /** Less the monotonic clock; undefined where the system does not tell. */
  #uptimeNow(): number | undefined {
    try {
      return this.#times.uptime() - this.#times.monotonic();
    } catch {
      return undefined;
    }
  }
}
