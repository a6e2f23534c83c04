import type { SteadyTime } from './steady-time.js';

/** Items are told apart by when they were at rest only as finely as this, in ms. */
const STEP_MS = 5_000;

interface Queue {
  count: number;
  /** How many were at rest in each step. */
  readonly steps: Map<number, number>;
  /** The first of them; undefined where it has to be looked for. */
  first: number | undefined;
  /** No step was later than this one since the queue was last empty. */
  last: number;
}

/**
 * How many items wait, by collection, and since when the first of them does. It holds a number for each step of time in
 * which something began to wait, and not the items.
 */
export class Waiting {
  readonly #queues = new Map<string, Queue>();

  enters(collection: string, restSince: number): void {
    const queue = this.#queueOf(collection);
    const step = Math.floor(restSince / STEP_MS);
    queue.count += 1;
    queue.steps.set(step, (queue.steps.get(step) ?? 0) + 1);
    queue.last = queue.count === 1 ? step : Math.max(queue.last, step);
    if (queue.count === 1 || (queue.first !== undefined && step < queue.first)) queue.first = step;
  }

  leaves(collection: string, restSince: number): void {
    const queue = this.#queueOf(collection);
    const step = Math.floor(restSince / STEP_MS);
    const left = (queue.steps.get(step) ?? 0) - 1;
    queue.count -= 1;
    if (left > 0) {
      queue.steps.set(step, left);
      return;
    }
    queue.steps.delete(step);
    if (queue.first === step) queue.first = undefined;
  }

  clear(): void {
    this.#queues.clear();
  }

  collections(): Iterable<string> {
    return this.#queues.keys();
  }

  count(collection: string): number {
    return this.#queues.get(collection)?.count ?? 0;
  }

  /** About when the one that has waited longest was at rest, in steady time: up to 5 s later than it was. */
  oldestSince(collection: string, time: Pick<SteadyTime, 'of' | 'isOfLatest'>): number | undefined {
    const queue = this.#queues.get(collection);
    if (queue === undefined || queue.count === 0) return undefined;
    if (queue.first === undefined) {
      let first = Number.POSITIVE_INFINITY;
      for (const step of queue.steps.keys()) first = Math.min(first, step);
      queue.first = first;
    }
    // As a rule the first one is the oldest.
    const [first, last] = [queue.first * STEP_MS, queue.last * STEP_MS];
    if (time.isOfLatest(first) && time.isOfLatest(last)) return time.of(first) + STEP_MS;
    return oldestOf(queue, time);
  }

  #queueOf(collection: string): Queue {
    const known = this.#queues.get(collection);
    if (known !== undefined) return known;
    const queue: Queue = { count: 0, steps: new Map(), first: undefined, last: 0 };
    this.#queues.set(collection, queue);
    return queue;
  }
}

/** Where some are from before the clock was set, the first step need not be the oldest. */
function oldestOf({ steps }: Queue, time: Pick<SteadyTime, 'of'>): number {
  let oldest = Number.POSITIVE_INFINITY;
  for (const step of steps.keys()) {
    // One end of a step may be from before the clock was set, and the other from after: the item is at the later one.
    const since = Math.max(time.of(step * STEP_MS), time.of((step + 1) * STEP_MS - 1) + 1);
    oldest = Math.min(oldest, since);
  }
  return oldest;
}
