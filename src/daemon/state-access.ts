import { messageOf } from '../lib/errors.js';
import { listStateFiles, lockState, StateError } from '../state/directory.js';
import { State } from '../state/state.js';
import type { OpenDeps } from './options.js';

/**
 * Pause between two writes of the state, in ms. In a first sync it takes 6 % of the processor time
 * off: more items share a sync. A single file is confirmed up to 24 ms later.
 */
const PAUSE_MS = 8;

/**
 * Locks the state directory and reads the state.
 *
 * If the lock disappears, perhaps with the directory, the state is *lost*: nothing is written any
 * more, and `onFailure` receives STATE_LOST. The stop that follows writes the state anew if the
 * directory can be used.
 *
 * @throws StateError, or the PeersyncError of a lock that another process holds
 */
export async function openState(deps: OpenDeps): Promise<State> {
  const { clock, current, log, onFailure, shutdown } = deps;
  const { dir } = current.config.state;
  const lock = await lockState(dir, { clock });
  shutdown.add('lock', () => lock.release());
  const waitsUntil = deps.waitWhileDiskFull ? shutdown.signal : undefined;
  const state = await State.open(dir, { clock, log, waitsUntil, policy: { pauseMs: PAUSE_MS } });
  let isLost = false;
  shutdown.add('state', () => (isLost ? closeLostState(state, deps) : state.close()));
  lock.onHeartbeat = (isOwn) => {
    if (isOwn) void state.checkJournal().catch(onFailure);
    if (isOwn || isLost) return;
    isLost = true;
    const lost = new StateError(
      'STATE_LOST',
      { dir },
      { details: { dir, detail: 'its lock is not there any more' } },
    );
    state.lose(lost);
    onFailure(lost);
  };
  return state;
}

/** Writes a lost state anew and closes it, so that the next start continues from there. */
async function closeLostState(state: State, { clock, current, log }: OpenDeps): Promise<void> {
  const { dir } = current.config.state;
  try {
    const lock = await lockState(dir, { clock });
    try {
      const { journal, snapshot } = await listStateFiles(dir);
      if (journal.length + snapshot.length > 0)
        throw new StateError(
          'STATE_LOST',
          { dir },
          { details: { dir, detail: 'there is another state in it by now' } },
        );
      await state.writeAnew();
      await state.close();
    } finally {
      await lock.release();
    }
    log.warn(
      { event: 'state-anew' },
      `What is known was written anew into ${dir}: the next start goes on from there.`,
    );
  } catch (error) {
    await state.close().catch(() => undefined);
    log.error(
      { event: 'state-lost' },
      `What is known could not be written anew into ${dir}, and the next start reads what is there: ${messageOf(error)}`,
    );
  }
}
