import { HealthCheck } from '../lib/health.js';
import { PeerError } from '../peer/errors.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { State } from '../state/state.js';

/** The longest time without a request, in ms. The merge of a large table takes seconds. */
const LONGEST_SILENCE_MS = 15 * 60_000;

/** Errors about one request. The peer works, so that other requests need not wait. */
const REQUEST_ERRORS = ['PEER_ANSWER', 'PEER_ANSWER_TOO_LARGE', 'PEER_REFUSED'];

/** The way of mirrors to the peer and to the state, with the health check of their runs. */
export class MirrorRequests {
  /** Fails if a run does neither a request nor a commit for a long time. */
  readonly health: HealthCheck;
  /** The requests and commits that have begun. They have health checks of their own. */
  #pending = 0;

  /** @param isBusy whether a mirror runs */
  constructor(
    private readonly queue: Pick<RequestQueue, 'run'>,
    private readonly state: Pick<State, 'commit'>,
    isBusy: () => boolean,
  ) {
    this.health = new HealthCheck('mirror runs', 'mirrors under way ask the peer for nothing', {
      limitMs: LONGEST_SILENCE_MS,
      busy: () => isBusy() && this.#pending === 0,
    });
  }

  /** Runs one request when the queue allows it. A long answer is read within the request. */
  async run<T>(
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const options = signal && { signal };
    const answer = await this.#track(() =>
      this.queue.run('mirror', (signal) => answerOf(work(signal)), options),
    );
    return answer();
  }

  /** Resolves when all changes of the state are on disk. */
  async commit(): Promise<void> {
    await this.#track(() => this.state.commit());
  }

  async #track<T>(work: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    try {
      return await work();
    } finally {
      this.#pending -= 1;
      this.health.progress();
    }
  }
}

/** Wraps errors about the one request as answers. The queue counts only the other errors. */
async function answerOf<T>(work: Promise<T>): Promise<() => T> {
  try {
    const value = await work;
    return () => value;
  } catch (error) {
    if (!(error instanceof PeerError) || !REQUEST_ERRORS.includes(error.code)) throw error;
    return () => {
      throw error;
    };
  }
}
