import { type Clock, systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/sentence.js';
import type { DoorStatus } from '../queue/door.js';
import type { Trouble, TroubleKind } from '../queue/outcome.js';
import { TROUBLE_WORDS } from '../queue/words.js';

/** How long a command bears a trouble of the peer. */
export const GIVE_UP_MS: Readonly<Record<TroubleKind, number>> = {
  // Longer than a peer needs that is being restarted.
  unreachable: 15_000,
  // Longer than one that has just started answers with errors.
  failing: 60_000,
  // For another try: it is seldom that this mends itself.
  denied: 8_000,
};
const LOOK_MS = 500;

/** Calls `ending` off where the peer is in trouble for too long. Ends with it. */
export async function giveUpInTime(
  door: () => DoorStatus,
  ending: AbortController,
  clock: Clock = systemClock,
): Promise<void> {
  while (!ending.signal.aborted) {
    const { reason, since } = door().circuit;
    if (reason !== undefined && clock.now() - since > GIVE_UP_MS[reason.kind])
      ending.abort(peerInTrouble(reason));
    await clock.sleep(LOOK_MS, ending.signal);
  }
}

export function peerInTrouble({ kind, code, message, hint }: Trouble): PeersyncError {
  return new PeersyncError({
    code: code ?? 'PEER_FAILED',
    message: `The peer ${TROUBLE_WORDS[kind]}: ${sentence(message)}`,
    hint: `${hint === undefined ? '' : `${sentence(hint)} `}Nothing is lost: the next run goes on from here.`,
    exitCode: kind === 'unreachable' ? EXIT.unreachable : EXIT.failure,
  });
}
