import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** How long a stop may take in all, in ms: requests under way have 13 s of it. */
const GRACE_MS = 20_000;
/** The same where a disk is known to hang, in ms. */
const SHORT_GRACE_MS = 3_000;

export interface ShutdownDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether a disk is known not to answer. */
  readonly isDiskSilent: () => boolean;
}

/** The steps of a stop: what was begun last is ended first. */
export class ShutdownSteps {
  readonly #deps: ShutdownDeps;
  readonly #steps: { readonly what: string; readonly end: () => Promise<void> | void }[] = [];

  constructor(deps: ShutdownDeps) {
    this.#deps = deps;
  }

  add(what: string, end: () => Promise<void> | void): void {
    this.#steps.push({ what, end });
  }

  /**
   * Takes all steps, also where some fail.
   *
   * @throws what failed, an AggregateError when that was more than one thing; STOP_GAVE_UP when the grace was over first, and
   *   then the rest is left as it is
   */
  async all(): Promise<void> {
    const { clock, log, isDiskSilent } = this.#deps;
    const failures: unknown[] = [];
    const steps = this.#steps.splice(0).reverse();
    const [first] = steps;
    let [current, isOver] = [first?.what, false];
    const ending = (async () => {
      for (const { what, end } of steps) {
        if (isOver) return;
        current = what;
        try {
          await end();
        } catch (error) {
          log.error({ what, error: messageOf(error) }, `stopping the ${what} failed: ${messageOf(error)}`);
          failures.push(error);
        }
      }
      current = undefined;
    })();
    const grace = new AbortController();
    const graceMs = isDiskSilent() ? SHORT_GRACE_MS : GRACE_MS;
    await Promise.race([ending, clock.sleep(graceMs, grace.signal)]);
    grace.abort();
    isOver = true;
    if (current !== undefined)
      throw new PeersyncError({
        code: 'STOP_GAVE_UP',
        message: `Stopped without waiting any longer for the ${current}.`,
        hint: 'Nothing is lost: the next start looks up what was under way. See whether a disk hangs.',
      });
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'the daemon did not stop cleanly');
  }
}
