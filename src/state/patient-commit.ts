import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/** Between two tries, in ms. */
const TRY_AGAIN_MS = 5_000;

/**
 * A commit that waits out a full disk: it says so once, tries again until there is space, and says when there is. Nothing acts
 * on what is not on disk, so everything simply waits meanwhile.
 *
 * @param signal ends the waiting: then the last failure is thrown
 */
export function patientCommit(
  commit: () => Promise<void>,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): () => Promise<void> {
  let waitsSince: number | undefined;
  return async () => {
    for (;;) {
      try {
        await commit();
        if (waitsSince !== undefined) {
          waitsSince = undefined;
          log.info({ event: 'space' }, 'there is space for the state again; the work goes on');
        }
        return;
      } catch (error) {
        if (!(error instanceof PeersyncError) || error.code !== 'STATE_FULL' || signal.aborted) throw error;
        if (waitsSince === undefined) {
          waitsSince = clock.now();
          log.error({ event: 'full', code: error.code }, `${error.message} ${error.hint}`);
        }
        await clock.sleep(TRY_AGAIN_MS, signal);
      }
    }
  };
}
