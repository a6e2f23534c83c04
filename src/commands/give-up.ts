import { type Clock, systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { TROUBLE_WORDS, type Trouble, type TroubleKind } from '../queue/breaker.js';
import type { QueueStatus } from '../queue/request-queue.js';

/** How long a command bears a trouble of the peer. */
const GIVE_UP_MS: Readonly<Record<TroubleKind, number>> = {
  // Longer than a peer needs that is being restarted.
  unreachable: 15_000,
  // Longer than one that has just started answers with errors.
  failing: 60_000,
  // For another try: it is seldom that this mends itself.
  denied: 8_000,
};
/** Trouble that turns from one kind into another and back: as long as it takes for each kind once. */
const GIVE_UP_AT_LAST_MS = Object.values(GIVE_UP_MS).reduce((sum, ms) => sum + ms);
const LOOK_MS = 500;

/** The trouble of the peer, where it has lasted for too long. */
export function lastingTrouble(
  { reason, since, downSince = since }: QueueStatus['circuit'],
  now: number,
): Trouble | undefined {
  if (reason === undefined) return undefined;
  return now - since > GIVE_UP_MS[reason.kind] || now - downSince > GIVE_UP_AT_LAST_MS ? reason : undefined;
}

/** Calls `ending` off where the peer is in trouble for too long. Ends with it. */
export async function giveUpInTime(
  queue: () => QueueStatus,
  ending: AbortController,
  clock: Clock = systemClock,
): Promise<void> {
  while (!ending.signal.aborted) {
    const reason = lastingTrouble(queue().circuit, clock.now());
    if (reason !== undefined) ending.abort(peerInTrouble(reason));
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
