import { setImmediate } from 'node:timers/promises';
import { type Clock, systemClock } from './clock.js';

// Long work is cut into slices, so that it does not hold the event loop. A loop of cheap, even
// steps counts them (`inSlices`, `Pace`). A loop whose steps vary measures the time (`Yielder`).
// Work that must not be cut has a size of its own, with its measurement beside it.

/** The number of cheap steps in a slice: records read, names compared, rows copied. */
export const SLICE_ITEMS = 1_000;
/** The length of a measured slice, in ms. Nothing may hold the event loop for more than 20 ms. */
const SLICE_MS = 8;

/** Lets the event loop run once: pending I/O and timers are served first. */
export function nextTurn(): Promise<void> {
  return setImmediate();
}

/** Yields items in slices. The event loop runs after each full slice. */
export async function* inSlices<T>(
  items: Iterable<T>,
  size: number = SLICE_ITEMS,
): AsyncGenerator<readonly T[], void> {
  let slice: T[] = [];
  for (const item of items) {
    slice.push(item);
    if (slice.length < size) continue;
    yield slice;
    slice = [];
    await nextTurn();
  }
  if (slice.length > 0) yield slice;
}

/** Yields items one by one. The event loop runs after every `size` of them. */
export async function* withPauses<T>(
  items: Iterable<T>,
  size: number = SLICE_ITEMS,
): AsyncGenerator<T, void> {
  for await (const slice of inSlices(items, size)) yield* slice;
}

/** Counts the steps of several loops that are one piece of work. */
export class Pace {
  #steps = 0;

  constructor(private readonly size: number = SLICE_ITEMS) {}

  /** Counts a step. @returns whether the slice is over, and `nextTurn` is due */
  step(): boolean {
    this.#steps = (this.#steps + 1) % this.size;
    return this.#steps === 0;
  }
}

/** Measures how long work has held the event loop. */
export class Yielder {
  #began: number;

  constructor(private readonly clock: Pick<Clock, 'now'> = systemClock) {
    this.#began = clock.now();
  }

  /** Whether the slice is over. */
  get isDue(): boolean {
    return this.clock.now() - this.#began >= SLICE_MS;
  }

  /** Lets the event loop run if the slice is over. */
  async turn(): Promise<void> {
    if (!this.isDue) return;
    await nextTurn();
    this.#began = this.clock.now();
  }
}
