import PQueue, { type Queue, type QueueAddOptions } from 'p-queue';
import type { LaneState } from './lane.js';

type Run = () => Promise<unknown>;
export type EntryOptions = QueueAddOptions & { readonly lane: LaneState };
export type Engine = PQueue<Queue<Run, EntryOptions>, EntryOptions>;

/**
 * A p-queue that is served from lanes: it starts tasks and counts slots, `next` says which lane may start one now.
 *
 * To p-queue the queue looks empty while no lane may, so it has to be woken (`wake`) when that changes by anything but
 * the end of a task: it is built for a queue that only its own tasks change.
 */
export function engine(next: () => LaneState | undefined): Engine {
  class Lanes implements Queue<Run, EntryOptions> {
    get size(): number {
      return next() === undefined ? 0 : 1;
    }

    enqueue(run: Run, options?: Partial<EntryOptions>): void {
      options?.lane?.tasks.enqueue(run, options);
    }

    dequeue(): Run | undefined {
      return next()?.tasks.dequeue();
    }

    /** Never asked: p-queue counts by priority here, and the lanes are what has priority. */
    filter(): Run[] {
      return [];
    }

    /** Never asked, for the same reason. */
    setPriority(): void {}
  }
  return new PQueue<Queue<Run, EntryOptions>, EntryOptions>({ concurrency: 1, queueClass: Lanes });
}

/** Sets the number of slots and starts everything that may start. */
export function wake(queue: Engine, slots: number): void {
  queue.concurrency = slots;
}
