import {
  LANES,
  type Lane,
  type LaneLimits,
  type Outcome,
  type QueuePolicy,
  type RequestQueueOptions,
} from '../../src/queue/options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { FakeClock } from '../support/fake-clock.js';
import { loggerTo } from '../support/logger.js';

/** An error that says by itself how it is classified. */
export class Bad extends Error {
  constructor(
    readonly outcome: Outcome,
    message: string = outcome.kind,
    readonly code?: string,
  ) {
    super(message);
  }
}

export function bad(kind: Exclude<Outcome['kind'], 'answered' | 'busy'>): Bad {
  return new Bad({ kind });
}

/** Collects the log as a person reads it: `warn: the sentence`. */
function keepingLogger() {
  const logged: string[] = [];
  return { logged, log: loggerTo(logged) };
}

/** Limits that are the same for all lanes except `deviations`. */
export function lanesOf(
  limits: LaneLimits,
  deviations: Partial<Record<Lane, LaneLimits>> = {},
): Record<Lane, LaneLimits> {
  const same = Object.fromEntries(LANES.map((lane) => [lane, limits])) as Record<Lane, LaneLimits>;
  return { ...same, ...deviations };
}

export const UNLIMITED: LaneLimits = { requestsPerSecond: 100_000, concurrency: 100 };

/** Limits without a rate, with the same concurrency for each lane. */
export function slots(concurrency: number): Record<Lane, LaneLimits> {
  return lanesOf({ ...UNLIMITED, concurrency });
}

/** Returns waits that are the same for every kind of failure. */
export function waitMs(first: number, longest: number): QueuePolicy['waitMs'] {
  const wait = { first, longest };
  return { unreachable: wait, failing: wait, denied: wait, weak: wait, busy: wait };
}

/** Makes a queue on a fake clock, with its log. Jitter is off: waits have their full length. */
export function openQueue(options: Partial<RequestQueueOptions> = {}) {
  const clock = new FakeClock();
  const { logged, log } = keepingLogger();
  const queue = new RequestQueue({
    lanes: lanesOf(UNLIMITED),
    classify: (error) => (error instanceof Bad ? error.outcome : { kind: 'answered' }),
    clock,
    log,
    peerName: 'peer',
    ...options,
    policy: { random: () => 1, ...options.policy },
  });
  return { queue, clock, logged };
}

/** Tasks that end when the test says so, and record when they started. */
export class Gate {
  readonly order: string[] = [];
  readonly #open = new Map<string, { end: () => void; fail: (error: unknown) => void }>();

  task(name: string): () => Promise<string> {
    return () =>
      new Promise((resolve, reject) => {
        this.order.push(name);
        this.#open.set(name, { end: () => resolve(name), fail: reject });
      });
  }

  get running(): string[] {
    return [...this.#open.keys()];
  }

  end(name: string): void {
    this.#take(name).end();
  }

  fail(name: string, error: unknown): void {
    this.#take(name).fail(error);
  }

  #take(name: string) {
    const open = this.#open.get(name);
    if (!open) throw new Error(`${name} does not run; running: ${this.running.join(', ')}`);
    this.#open.delete(name);
    return open;
  }
}

/** Advances the clock millisecond by millisecond, for queues with rates. */
export async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let i = 0; i < ms; i += 1) await clock.advance(1);
  await settle();
}

/** Lets the callbacks of settled promises run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
