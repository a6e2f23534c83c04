import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { Outcome } from '../queue/options.js';

/**
 * The outcome of a request that failed with this error. Other codes of PeerError mean that the peer
 * answered. PEER_BUSY is not here, because its outcome has the Retry-After of the peer.
 */
const OUTCOMES: Readonly<Partial<Record<PeerErrorCode, Exclude<Outcome['kind'], 'busy'>>>> = {
  PEER_UNREACHABLE: 'unreachable',
  PEER_TIMEOUT: 'unreachable',
  PEER_AUTH: 'denied',
  PEER_AUTH_WEAK: 'weak',
  PEER_FAILED: 'failing',
  PEER_REFUSED: 'failing',
  PEER_ANSWER: 'failing',
  PEER_ANSWER_TOO_LARGE: 'failing',
  PEER_SOURCE: 'aborted',
  PEER_ABORTED: 'aborted',
};

/**
 * Returns what the error of a request says about the peer. The queue decides from it whether the
 * circuit opens; neither the queue nor the peer's client imports the other. An error of another
 * class than PeerError says nothing about the peer.
 */
export function classify(error: unknown): Outcome {
  if (!(error instanceof PeerError)) return { kind: 'aborted' };
  const { code, retryAfterMs } = error;
  if (code === 'PEER_BUSY')
    return { kind: 'busy', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return { kind: OUTCOMES[code] ?? 'answered' };
}
