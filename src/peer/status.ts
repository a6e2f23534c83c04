import { parseChallenges } from './challenge.js';
import { PeerError, type PeerErrorCode } from './errors.js';
import type { HttpAnswer } from './http.js';

/**
 * The error that the status of an answer stands for; undefined for success.
 *
 * A gateway's 502 and 504 say that the peer behind it was not there, 408 that the request came too slowly.
 */
export function statusError(answer: HttpAnswer): PeerError | undefined {
  const { status } = answer;
  if (status >= 200 && status < 300) return undefined;
  if (status === 403) return failure(answer, 'PEER_AUTH', 'does not allow this to the user (403)');
  if (status === 408) return failure(answer, 'PEER_TIMEOUT', 'waited too long for the request (408)');
  if (status === 404) return failure(answer, 'PEER_REFUSED', 'has no such page (404)');
  if (status === 413) return failure(answer, 'PEER_TOO_LARGE', 'finds the request too large (413)');
  if (status === 429) return failure(answer, 'PEER_BUSY', 'gets too many requests (429)');
  if (status === 503) return failure(answer, 'PEER_BUSY', 'cannot serve requests now (503)');
  if (status === 502)
    return failure(answer, 'PEER_UNREACHABLE', 'is a gateway that did not reach the peer (502)');
  if (status === 504)
    return failure(answer, 'PEER_TIMEOUT', 'is a gateway that got no answer of the peer (504)');
  if (status >= 500) return failure(answer, 'PEER_FAILED', `failed (${status})`);
  if (status >= 400) return failure(answer, 'PEER_REFUSED', `refused the request (${status})`);
  const to = answer.headers.location;
  return failure(
    answer,
    'PEER_ANSWER',
    `answered with ${status}${to === undefined ? '' : `, a redirect to ${to}`}`,
  );
}

/** The error for a 401 that cannot be answered, or not any more. */
export function refusedError(
  { url, status, headers, delivered }: HttpAnswer,
  hasCredentials: boolean,
): PeerError {
  const offered = parseChallenges(headers['www-authenticate']).map(({ scheme }) => scheme);
  const isSpoken = offered.some((scheme) => scheme === 'basic' || scheme === 'digest');
  const what = !hasCredentials
    ? 'asks for a user name and a password (401), and none is configured'
    : isSpoken
      ? 'did not accept the user name and the password (401)'
      : `asks for a kind of access that is not spoken here (401, ${offered.join(', ') || 'no challenge'})`;
  return new PeerError('PEER_AUTH', { url, what, status, delivered });
}

function failure(answer: HttpAnswer, code: PeerErrorCode, what: string): PeerError {
  const { url, status, body, delivered } = answer;
  const retryAfterMs = code === 'PEER_BUSY' ? retryAfter(answer) : undefined;
  return new PeerError(code, { url, what, status, answer: body, delivered, retryAfterMs });
}

/** Seconds, or a moment of the peer's clock (RFC 9110, 10.2.3). */
function retryAfter({ headers, peerAt, at }: HttpAnswer): number | undefined {
  const text = headers['retry-after'];
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - (peerAt ?? at));
}
