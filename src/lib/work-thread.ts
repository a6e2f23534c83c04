import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, Worker } from 'node:worker_threads';
import { systemClock, type Timer } from './clock.js';

/** Left alone the heap of a thread would grow to tens of megabytes before it is looked after. */
const YOUNG_MB = 4;
/** A thread that has nothing to do for so long is ended, in ms: it takes 10 to 20 MB. */
const IDLE_MS = 30_000;

/**
 * How far a thread steps back behind the event loop. Measured with 100,000 files that are new, on
 * two cores: 67 to 105 blocks of more than 14 ms and 42 ms at most, instead of 176 to 204 and 107
 * to 197 ms, most of which the event loop had waited for a core.
 */
const BACKGROUND_NICE = 5;

/** One life of the thread, and the orders that it has not answered, in turn. */
interface Running {
  readonly worker: Worker;
  readonly waiting: {
    readonly resolve: (value: never) => void;
    readonly reject: (error: Error) => void;
  }[];
}

/**
 * A thread for work that would block the event loop. It starts with the first order, does orders in
 * turn, ends when it had nothing to do for a while, and starts anew with the next order, also after
 * it broke down; what it had not answered by then is rejected.
 */
export class WorkThread {
  #running: Running | undefined;
  #idle: Timer | undefined;

  /**
   * @param program a module that calls `serve`
   * @param onBreakdown hears of an error that ended the thread
   */
  constructor(
    private readonly program: URL,
    private readonly onBreakdown: (error: Error) => void = () => {},
  ) {}

  /** How many orders it has not answered. */
  get waiting(): number {
    return this.#running?.waiting.length ?? 0;
  }

  /** The caller knows what this work answers. */
  ask<T>(work: string, order: unknown): Promise<T> {
    const { worker, waiting } = this.#start();
    return new Promise<T>((resolve, reject) => {
      waiting.push({ resolve, reject });
      worker.postMessage({ work, order });
    });
  }

  /** Ends it at once; what it had not answered is rejected. */
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
 * Answers the orders of a WorkThread, in the thread and in turn, each by the function of that name.
 */
export function serve(work: Readonly<Record<string, (order: never) => unknown>>): void {
  giveWay();
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
      // What breaks ends the thread, also one that lets rejected promises be.
      setImmediate(() => {
        throw error;
      });
    }
  });
}

/**
 * Lets the event loop go first where there are fewer cores than threads. On Linux alone a thread
 * has a priority of its own.
 */
export function giveWay(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + BACKGROUND_NICE));
  } catch {
    // Where it may not, as in the unit for a user, threads compete.
  }
}
