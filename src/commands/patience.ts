import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { PEER_FAILURE_WORDS, type PeerFailure, type PeerFailureKind } from '../queue/breaker.js';
import type { QueueStatus, RequestQueue } from '../queue/request-queue.js';

/** The time that a command waits for a failing peer, by the kind of failure. */
const GIVE_UP_MS: Readonly<Record<PeerFailureKind, number>> = {
  // Longer than a restart of the peer.
  unreachable: 15_000,
  // Longer than a peer that has just started answers with errors.
  failing: 60_000,
  // Enough for another try. Such a failure rarely ends by itself.
  denied: 8_000,
  weak: 8_000,
};
/** The time that a command waits if one kind of failure follows another: once for each kind. */
const GIVE_UP_AT_LAST_MS = Object.values(GIVE_UP_MS).reduce((sum, ms) => sum + ms);
const LOOK_MS = 500;

/** Returns the failure of the peer if it has lasted for too long. */
export function lastingFailure(
  { reason, since, downSince = since }: QueueStatus['circuit'],
  now: number,
): PeerFailure | undefined {
  if (reason === undefined) return undefined;
  return now - since > GIVE_UP_MS[reason.kind] || now - downSince > GIVE_UP_AT_LAST_MS
    ? reason
    : undefined;
}

export function peerFailed({ kind, code, message, hint }: PeerFailure): PeersyncError {
  return new PeersyncError({
    code: code ?? 'PEER_FAILED',
    message: `The peer ${PEER_FAILURE_WORDS[kind]}: ${sentence(message)}`,
    hint: `${hint === undefined ? '' : `${sentence(hint)} `}Nothing is lost: the next run goes on from here.`,
    exitCode: kind === 'unreachable' ? EXIT.unreachable : EXIT.failure,
  });
}

/** Aborts `ending` if the peer has failed for too long. Resolves when `ending` aborts. */
export async function giveUpInTime(
  queue: Pick<RequestQueue, 'status'>,
  ending: AbortController,
): Promise<void> {
  while (!ending.signal.aborted) {
    const reason = lastingFailure(queue.status().circuit, systemClock.now());
    if (reason !== undefined) ending.abort(peerFailed(reason));
    await systemClock.sleep(LOOK_MS, ending.signal);
  }
}
