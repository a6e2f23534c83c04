import type { Clock } from '../lib/clock.js';
import { type Engine, engine, wake } from './engine.js';
import type { LaneState } from './lane.js';
import { isShared, LANES, type Lane } from './lanes.js';
import { whoseTurn } from './turn.js';

export interface SlotsParts {
  readonly lanes: Readonly<Record<Lane, LaneState>>;
  /** How many slots there are to share at this moment. */
  readonly shared: () => number;
  /** From when on nothing but its own limits keeps a lane back, on the monotonic clock. */
  readonly admitsFrom: (lane: Lane) => number;
  /** See `whoseTurn`. */
  readonly patienceMs: number;
  readonly clock: Clock;
  /** The work of a task is over, and another may have its slot. */
  readonly onFree: () => void;
}

/**
 * The slots that tasks run in: those that are shared, and those that `interactive` and `mirror` have for themselves.
 *
 * - A task *waits* in its lane, entered by `enter`.
 * - It *has a slot* from the instant its lane's turn comes: when it enters, when the work of another is over, or when `fill`
 *   finds that its lane may start now. Its work begins in the same instant.
 * - `leave` says that its slot does not count any more, shortly before its work is over.
 *
 * A task that was called off while it waited is taken out of its lane, and never comes here.
 */
export class Slots {
  readonly #parts: SlotsParts;
  readonly #sharedLanes: readonly LaneState[];
  readonly #shared: Engine;
  readonly #express: Engine;
  readonly #aside: Engine;
  #sharedInUse = 0;
  #lastServed: LaneState | undefined;

  constructor(parts: SlotsParts) {
    const { lanes, onFree } = parts;
    this.#parts = parts;
    this.#sharedLanes = LANES.filter(isShared).map((name) => lanes[name]);
    this.#shared = engine(() => this.#nextShared());
    this.#express = engine(() => this.#nextOf(lanes.interactive));
    this.#aside = engine(() => this.#nextOf(lanes.mirror));
    wake(this.#express, lanes.interactive.concurrency);
    wake(this.#aside, lanes.mirror.concurrency);
    for (const slots of [this.#shared, this.#express, this.#aside]) slots.on('next', onFree);
  }

  /** How many of the shared slots tasks have. */
  get sharedInUse(): number {
    return this.#sharedInUse;
  }

  /** Whether no shared slot is free. */
  get isFull(): boolean {
    return this.#sharedInUse >= this.#parts.shared();
  }

  /** Whether a task waits in this lane that nothing keeps from starting at this moment. */
  mayStart(lane: Lane): boolean {
    const isFull = isShared(lane) && this.isFull;
    return !isFull && this.#nextOf(this.#parts.lanes[lane]) !== undefined;
  }

  /** How many more tasks may come to wait in a lane: as many as could start together, one where its rate is spent. */
  room(name: Lane, now: number): number {
    const { admitsFrom, lanes, shared } = this.#parts;
    const lane = lanes[name];
    if (admitsFrom(name) > now) return 0;
    const slots = isShared(name) ? Math.min(lane.concurrency, shared()) : lane.concurrency;
    return (lane.freeAt > now ? 1 : slots) - lane.waiting;
  }

  /**
   * The first moment after `now` at which time alone lets a task start, or one come to wait in a lane that is awaited;
   * infinity for never.
   */
  nextStartAt(now: number, isAwaited: (lane: Lane) => boolean): number {
    const { admitsFrom, lanes } = this.#parts;
    let at = Number.POSITIVE_INFINITY;
    for (const name of LANES) {
      const lane = lanes[name];
      if (lane.waiting === 0 && !isAwaited(name)) continue;
      const from = Math.max(admitsFrom(name), lane.waiting > 0 ? lane.freeAt : now);
      if (from > now) at = Math.min(at, from);
    }
    return at;
  }

  /** @returns when the work is over; it has to end by itself, and to call `leave` */
  async enter(name: Lane, id: string, work: () => Promise<void>): Promise<void> {
    const { clock, lanes } = this.#parts;
    const lane = lanes[name];
    lane.entering(clock.monotonic());
    const begin = () => {
      this.#take(lane);
      return work();
    };
    await this.#engineOf(name).add(begin, { lane, id });
  }

  leave(lane: Lane): void {
    this.#parts.lanes[lane].running -= 1;
    if (isShared(lane)) this.#sharedInUse -= 1;
  }

  /** Starts everything that may start now: time, limits or the peer may be others than they were. */
  fill(): void {
    const { lanes, shared } = this.#parts;
    wake(this.#express, lanes.interactive.concurrency);
    wake(this.#aside, lanes.mirror.concurrency);
    wake(this.#shared, shared());
  }

  #take(lane: LaneState): void {
    lane.taken(this.#parts.clock.monotonic());
    if (!isShared(lane.name)) return;
    this.#sharedInUse += 1;
    this.#lastServed = lane;
  }

  #engineOf(lane: Lane): Engine {
    if (isShared(lane)) return this.#shared;
    return lane === 'interactive' ? this.#express : this.#aside;
  }

  #nextShared(): LaneState | undefined {
    const { admitsFrom, clock, patienceMs, shared } = this.#parts;
    const now = clock.monotonic();
    return whoseTurn({
      lanes: this.#sharedLanes,
      admits: (lane) => admitsFrom(lane.name) <= now,
      limit: shared(),
      running: this.#sharedInUse,
      last: this.#lastServed,
      patienceMs,
      now,
    });
  }

  /** The lane, where one of its tasks may start as far as it and what admits it are concerned. */
  #nextOf(lane: LaneState): LaneState | undefined {
    const { admitsFrom, clock } = this.#parts;
    const now = clock.monotonic();
    const mayStart = lane.waiting > 0 && lane.hasRoom(now) && admitsFrom(lane.name) <= now;
    return mayStart ? lane : undefined;
  }
}
