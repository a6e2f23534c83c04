import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** Grace period of the requests that are in flight when the daemon stops, in ms. */
export const STOP_GRACE_MS = 8_000;
/** Maximum duration of a whole stop, in ms. It includes `STOP_GRACE_MS`. */
const STOP_LIMIT_MS = 20_000;
/** The same if a disk is known not to respond. */
const STOP_LIMIT_SILENT_DISK_MS = 3_000;

interface Step {
  /** Name of the part that the step stops. */
  readonly what: string;
  readonly stop: () => Promise<void> | void;
}

/** The steps of a stop. The part that was started last is stopped first. */
export class Shutdown {
  readonly #stopping = new AbortController();
  /** Aborts when the daemon begins to stop. */
  readonly signal: AbortSignal = this.#stopping.signal;
  readonly #steps: Step[] = [];

  constructor(
    readonly clock: Clock,
    readonly log: Logger,
  ) {}

  add(what: string, stop: () => Promise<void> | void): void {
    this.#steps.push({ what, stop });
  }

  /**
   * Runs every step, even if earlier ones fail.
   *
   * @throws the failure, or an AggregateError if there were several; STOP_GAVE_UP if the limit was
   *   reached first, and then the remaining steps are skipped
   */
  async all(isDiskSilent = false): Promise<void> {
    this.#stopping.abort();
    const failures: unknown[] = [];
    const limit = new AbortController();
    let isOver = false;
    const over = this.clock
      .sleep(isDiskSilent ? STOP_LIMIT_SILENT_DISK_MS : STOP_LIMIT_MS, limit.signal)
      .then(() => {
        isOver = true;
      });
    for (const { what, stop } of this.#steps.splice(0).reverse()) {
      const stopped = Promise.resolve()
        .then(stop)
        .catch((error: unknown) => {
          this.log.error({ what }, `stopping the ${what} failed: ${messageOf(error)}`);
          failures.push(error);
        });
      await Promise.race([stopped, over]);
      if (isOver) throw gaveUp(what);
    }
    limit.abort();
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'the daemon did not stop cleanly');
  }
}

function gaveUp(what: string): PeersyncError {
  return new PeersyncError({
    code: 'STOP_GAVE_UP',
    message: `Stopped without waiting any longer for the ${what}.`,
    hint: 'Nothing is lost: the next start looks up what was under way. See whether a disk hangs.',
  });
}
