import { PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/text.js';
import { PeerError } from '../peer/errors.js';
import type { Outcome } from '../queue/options.js';
import type { Place } from '../state/entries.js';
import type { Trouble } from '../state/entry.js';
import { placeName } from './parts.js';

export function troubleOf(error: PeersyncError): Trouble {
  return { code: error.code, message: error.message, hint: error.hint };
}

/**
 * What a failed push says about the items in it.
 *
 * - `stale`: a file could not be read, or changed, under the body, which was not completed;
 * - `untaken`: the peer certainly took nothing (it could not be reached, it refused to talk, or there is no such page):
 *   push again;
 * - `doubt`: no answer came, the peer may have taken them: look up before pushing again;
 * - `blame`: the peer answered badly, or broke the connection before it had the whole; one of the items may be the
 *   reason: split.
 */
export type PushFailure =
  | { readonly kind: 'stale'; readonly item: number }
  | { readonly kind: 'untaken' | 'doubt' | 'blame'; readonly error: PeersyncError };

/** @param begun whether the request had left the queue; a queue that stops may give it up halfway */
export function pushFailure(error: unknown, begun: boolean): PushFailure {
  if (!(error instanceof PeersyncError)) throw error;
  if (!(error instanceof PeerError)) return { kind: begun ? 'doubt' : 'untaken', error };
  switch (error.code) {
    case 'PEER_SOURCE':
      return { kind: 'stale', item: error.item ?? 0 };
    case 'PEER_AUTH':
      // What stands before a peer may forbid (403) a single document for what is in it.
      return { kind: error.status === 403 ? 'blame' : 'untaken', error };
    case 'PEER_BUSY':
      return { kind: 'untaken', error };
    case 'PEER_UNREACHABLE':
    case 'PEER_TIMEOUT':
    case 'PEER_ABORTED':
      if (error.delivered !== 'no') return { kind: 'doubt', error };
      return { kind: wasCut(error) ? 'blame' : 'untaken', error };
    default:
      return { kind: isAnotherPage(error) ? 'untaken' : 'blame', error };
  }
}

const CUT = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']);

/** The connection stood and broke before the request was whole: so do peers that find it too large. */
function wasCut(error: PeerError): boolean {
  return CUT.has(systemCode(error.cause) ?? '');
}

/** Whatever answered, it is not the page that was asked for: a wrong address, or a gateway whose peer is away. */
function isAnotherPage({ status = 0 }: PeerError): boolean {
  return (status >= 300 && status < 400) || status === 404 || status === 405 || status === 410;
}

/** Tells the person that a file is given up, and why. */
export function sayQuarantined(log: Logger, place: Place, trouble: Trouble): void {
  log.warn(
    { event: 'quarantined', folder: place.folder, path: place.path, code: trouble.code },
    `quarantined ${placeName(place)}: ${sentence(trouble.message)} ${trouble.hint}`,
  );
}

/** What an error of the peer client says about the peer, for the queue. */
export function classify(error: unknown): Outcome {
  if (!(error instanceof PeerError)) return { kind: 'aborted' };
  switch (error.code) {
    case 'PEER_UNREACHABLE':
    case 'PEER_TIMEOUT':
      return { kind: 'unreachable' };
    case 'PEER_AUTH':
      return { kind: 'denied' };
    case 'PEER_BUSY':
      return {
        kind: 'busy',
        ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
      };
    case 'PEER_FAILED':
    case 'PEER_REFUSED':
    case 'PEER_ANSWER':
    case 'PEER_ANSWER_TOO_LARGE':
      return { kind: 'failing' };
    case 'PEER_SOURCE':
    case 'PEER_ABORTED':
      return { kind: 'aborted' };
    default:
      return { kind: 'answered' };
  }
}
