import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, Worker } from 'node:worker_threads';
import { systemClock, type Timer } from './clock.js';

/**
 * The largest young generation of a thread, in MB. Otherwise it would grow to tens of megabytes
 * before it is collected.
 */
const YOUNG_MB = 4;
/** The time after which an idle thread is ended, in ms. A thread takes 10 to 20 MB. */
const IDLE_MS = 30_000;

/**
 * The difference between the priority of a thread and that of the event loop. Measured with 100,000
 * new files on two cores: the event loop was blocked for more than 14 ms 67 to 105 times, and for
 * 42 ms at most. Without it: 176 to 204 times, and 107 to 197 ms at most. Most of that was waiting
 * for a core.
 */
const BACKGROUND_NICE = 5;

/** A running thread, and the orders that it has not answered yet, oldest first. */
interface Running {
  readonly worker: Worker;
  readonly waiting: {
    readonly resolve: (value: never) => void;
    readonly reject: (error: Error) => void;
  }[];
}

/**
 * A thread for work that would block the event loop.
 *
 * - *Not running*: the first order starts the thread.
 * - *Working*: the thread answers its orders one after another.
 * - *Idle*: it has answered all orders. An order within 30 s makes it work again. Otherwise it is
 *   ended.
 *
 * `close`, or an error in the thread, ends it and rejects the orders without an answer. The next
 * order starts a new thread.
 */
export class WorkThread {
  #running: Running | undefined;
  #idle: Timer | undefined;

  /**
   * @param program a module that calls `serve`
   * @param onBreakdown called with an error that ended the thread
   */
  constructor(
    private readonly program: URL,
    private readonly onBreakdown: (error: Error) => void = () => {},
  ) {}

  /** The number of orders without an answer. */
  get waiting(): number {
    return this.#running?.waiting.length ?? 0;
  }

  /** Sends an order to the function named `work`. The caller knows the type of its answer. */
  ask<T>(work: string, order: unknown): Promise<T> {
    const { worker, waiting } = this.#start();
    return new Promise<T>((resolve, reject) => {
      waiting.push({ resolve, reject });
      worker.postMessage({ work, order });
    });
  }

  /** Ends the thread at once, and rejects the orders without an answer. */
  async close(): Promise<void> {
    this.#idle?.cancel();
    const running = this.#running;
    this.#running = undefined;
    await running?.worker.terminate();
  }

  #start(): Running {
    this.#idle?.cancel();
    if (this.#running !== undefined) return this.#running;
    const worker = new Worker(this.program, {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const running: Running = { worker, waiting: [] };
    // Orders are answered in turn.
    worker.on('message', (value: unknown) => {
      running.waiting.shift()?.resolve(value as never);
      if (running.waiting.length > 0) return;
      this.#idle?.cancel();
      this.#idle = systemClock.after(IDLE_MS, () => void this.close(), { background: true });
    });
    const end = (error: Error): void => {
      if (this.#running === running) this.#running = undefined;
      for (const { reject } of running.waiting.splice(0)) reject(error);
    };
    worker.on('error', this.onBreakdown);
    worker.on('error', end);
    worker.on('exit', () => end(new Error('the thread ended')));
    this.#running = running;
    return running;
  }
}

/**
 * Answers the orders of a WorkThread, inside the thread. Each order is answered by the function
 * with its name, one after another.
 */
export function serve(work: Readonly<Record<string, (order: never) => unknown>>): void {
  lowerPriority();
  let before: unknown;
  parentPort?.on('message', async (message: { readonly work: string; readonly order: never }) => {
    const does = work[message.work];
    if (does === undefined) throw new Error(`the thread does not know the work "${message.work}"`);
    const earlier = before;
    const answer = (async () => {
      await earlier;
      return await does(message.order);
    })();
    before = answer;
    try {
      parentPort?.postMessage(await answer);
    } catch (error) {
      // Thrown outside the promise, so that the error ends the thread even if rejected promises are
      // ignored.
      setImmediate(() => {
        throw error;
      });
    }
  });
}

/**
 * Lowers the priority of this thread, so that the event loop gets a core first. Only Linux has
 * priorities for threads.
 */
export function lowerPriority(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + BACKGROUND_NICE));
  } catch {
    // Without the permission, as in a unit for a user, the threads compete.
  }
}
