import { join } from 'node:path';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/deps.js';
import { lanesOf, waitMs } from '../queue/queue-setup.js';
import { afterwards } from './afterwards.js';
import { FakeClock } from './fake-clock.js';
import { FakePeer } from './fake-peer.js';
import { loggerTo } from './logger.js';
import { temporaryDirectory } from './temp.js';
import { until } from './wait.js';

/** Time for running requests to end when the world stops, in ms. */
const GRACE_MS = 100;

export interface BaseOptions {
  /** @default the time of the system. A fake peer gets the same clock. */
  readonly clock?: Clock | undefined;
  /** The directory of all files. @default a temporary one */
  readonly directory?: string;
}

/**
 * The parts that every world has: a peer, a clock, a log, and below a temporary directory a state,
 * with a queue that has no rates. The end of the test stops it.
 */
export abstract class BaseWorld<P> {
  readonly clock: Clock;
  readonly directory: string;
  readonly stateDir: string;
  /** The log: `warn: mirror prices: …`. */
  readonly logged: string[] = [];
  protected readonly log = loggerTo(this.logged);
  /** The error with which a part failed that runs in the background; thrown by `stop`. */
  failure: unknown;
  /** By how much a fake clock goes on between two looks at a condition, in ms. */
  tickMs = 100;
  #opened: { readonly state: State; readonly queue: RequestQueue } | undefined;

  constructor(
    readonly peer: P,
    { clock = systemClock, directory = temporaryDirectory() }: BaseOptions,
  ) {
    this.clock = clock;
    if (peer instanceof FakePeer) peer.clock = clock;
    this.directory = directory;
    this.stateDir = join(directory, 'state');
    afterwards('test', () => this.stop());
  }

  /** Opens the state and a queue. */
  protected async openState(): Promise<void> {
    const { clock, log } = this;
    const state = await State.open(this.stateDir, { clock, log });
    const queue = new RequestQueue({
      lanes: lanesOf({ requestsPerSecond: 100_000, concurrency: 4 }),
      classify,
      clock,
      log,
      peerName: 'the peer',
      policy: { waitMs: waitMs(20, 50) },
    });
    this.#opened = { state, queue };
  }

  /** Stops the part that uses the state and the queue. */
  protected abstract stopPart(): Promise<void>;

  /** Stops everything, as at the end of a run of the daemon; nothing if it is stopped. */
  async stop(): Promise<void> {
    if (this.#opened === undefined) return;
    const { state, queue } = this.#opened;
    const stopped = Promise.all([this.stopPart(), queue.stop(GRACE_MS)]);
    if (this.clock instanceof FakeClock) await this.clock.advance(GRACE_MS);
    await stopped;
    this.#opened = undefined;
    await state.close();
    if (this.failure !== undefined) throw this.failure;
  }

  get state(): State {
    return this.#parts.state;
  }

  get queue(): RequestQueue {
    return this.#parts.queue;
  }

  get circuit(): string {
    return this.queue.status().circuit.state;
  }

  /** Waits for a condition, and lets time pass meanwhile where that stands still otherwise. */
  until(condition: () => boolean, what: string): Promise<void> {
    const { clock } = this;
    const isSo = async () => {
      if (clock instanceof FakeClock) await clock.advance(this.tickMs);
      return condition();
    };
    return until(isSo, what);
  }

  get #parts() {
    if (this.#opened === undefined) throw new Error('the world is stopped');
    return this.#opened;
  }
}
