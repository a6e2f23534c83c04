import type { Clock } from '../lib/clock.js';

/** All first runs begin within this time, in ms; sooner where the mirror runs more often. */
const FIRST_WITHIN_MS = 10_000;
/** How long after the first failure it is tried again, in ms. */
const RETRY_MS = 30_000;
/** How far from `every` a run may be, as a share of it. */
const JITTER = 0.1;

/** When each mirror runs next. */
export class Schedule {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #dueAt = new Map<string, number>();

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Soon, but not all at once. */
  first(name: string, every: number): void {
    this.#set(name, this.#random() * Math.min(every, FIRST_WITHIN_MS));
  }

  /** `every` after now, a little more or less. */
  next(name: string, every: number): void {
    this.#set(name, this.#jittered(every));
  }

  /** Soon after a failure, later after many. */
  retry(name: string, every: number, failures: number): void {
    this.#set(name, this.#jittered(Math.min(every, RETRY_MS * 2 ** Math.min(failures - 1, 30))));
  }

  /** At a time of its own, from now in ms. */
  in(name: string, ms: number): void {
    this.#set(name, Math.max(0, ms));
  }

  forget(name: string): void {
    this.#dueAt.delete(name);
  }

  /** Names whose time has come, the one that waits longest first. */
  due(): string[] {
    const now = this.#clock.now();
    return [...this.#dueAt]
      .filter(([, dueAt]) => dueAt <= now)
      .sort(([, a], [, b]) => a - b)
      .map(([name]) => name);
  }

  /** How long until the next is due, in ms; infinity where none is planned. */
  untilNext(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const dueAt of this.#dueAt.values()) first = Math.min(first, dueAt);
    return Math.max(0, first - this.#clock.now());
  }

  /** In ms since the epoch. */
  nextAt(name: string): number | undefined {
    return this.#dueAt.get(name);
  }

  #jittered(ms: number): number {
    return ms * (1 - JITTER + 2 * JITTER * this.#random());
  }

  #set(name: string, ms: number): void {
    this.#dueAt.set(name, Math.round(this.#clock.now() + ms));
  }
}
