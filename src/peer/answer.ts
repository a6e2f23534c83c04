import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { type Delivered, PeerError, type PeerErrorCode } from './errors.js';

/**
 * The `accept` header for records. Every form can be read. JSON is preferred, because it carries
 * any text unchanged.
 */
export const ACCEPT_RECORDS =
  'application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.8, */*;q=0.1';

/** The status line and the headers of an answer. */
export interface AnswerHead {
  /** The URL of the request. */
  readonly url: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * When the headers arrived, by the steady clock (`Clock.now`), in ms since the epoch. If the wall
   * clock was set since the start, it leads that clock: see `wallAheadMs` before you compare this
   * time with `peerAt`.
   */
  readonly at: number;
  /** The `Date` header, in ms since the epoch (whole seconds); undefined if there is none. */
  readonly peerAt: number | undefined;
  /** The time from the start of the request to the headers of the answer, in ms. */
  readonly tookMs: number;
  /** Whether the peer received the body of the request; `no` if the request had no body. */
  readonly delivered: Delivered;
}

/** A complete answer. */
export interface HttpAnswer extends AnswerHead {
  readonly body: Buffer;
}

/** An answer whose body is read while it arrives. */
export interface StreamedAnswer extends AnswerHead {
  /**
   * The body. It can be read once. It ends only if the answer is complete; otherwise it throws
   * PeerError. A slow reader slows the peer down.
   */
  readonly chunks: AsyncIterable<Buffer>;
}

/**
 * The code and the text of the error for a status. Other statuses are handled by `statusError`. A
 * gateway sends 502 and 504 if it cannot reach the peer behind it. With 408, this client sent the
 * request too slowly.
 */
const STATUSES: Readonly<Record<number, readonly [PeerErrorCode, string]>> = {
  403: ['PEER_AUTH', 'does not allow this to the user (403)'],
  404: ['PEER_REFUSED', 'has no such page (404)'],
  408: ['PEER_TIMEOUT', 'waited too long for the request (408)'],
  413: ['PEER_TOO_LARGE', 'finds the request too large (413)'],
  429: ['PEER_BUSY', 'gets too many requests (429)'],
  502: ['PEER_UNREACHABLE', 'is a gateway that did not reach the peer (502)'],
  503: ['PEER_BUSY', 'cannot serve requests now (503)'],
  504: ['PEER_TIMEOUT', 'is a gateway that got no answer of the peer (504)'],
};

/** Returns the error for the status of an answer; undefined for a success. */
export function statusError(answer: HttpAnswer): PeerError | undefined {
  const { url, status, headers, body, delivered } = answer;
  if (isSuccess(status)) return undefined;
  const to = headers.location === undefined ? '' : `, a redirect to ${headers.location}`;
  const [code, what] =
    STATUSES[status] ??
    (status >= 500
      ? (['PEER_FAILED', `failed (${status})`] as const)
      : status >= 400
        ? (['PEER_REFUSED', `refused the request (${status})`] as const)
        : (['PEER_ANSWER', `answered with ${status}${to}`] as const));
  const retryAfterMs = code === 'PEER_BUSY' ? retryAfter(answer) : undefined;
  return new PeerError(code, { url, what, status, answer: body, delivered, retryAfterMs });
}

/** Returns the answer if its status is a success. @throws PeerError otherwise */
export function succeeded(answer: HttpAnswer): HttpAnswer {
  const error = statusError(answer);
  if (error !== undefined) throw error;
  return answer;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/**
 * Returns the delay of `Retry-After` in ms. The header has seconds, or a date by the peer's clock
 * (RFC 9110, 10.2.3).
 */
function retryAfter({ headers, peerAt, at }: AnswerHead): number | undefined {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - (peerAt ?? at));
}

/** Returns the error for a complete answer whose content is not as expected. */
export function unusable({ url, status, body, delivered }: HttpAnswer, fault: string): PeerError {
  const what = isErrorPage(body.toString('latin1', 0, 65_536))
    ? `${fault}, but shows an error page`
    : fault;
  return new PeerError('PEER_ANSWER', { url, what, status, answer: body, delivered });
}

/** Whether the text is a server's error page. Its content has nothing to do with the request. */
function isErrorPage(text: string): boolean {
  return /HTTP ERROR:? \d{3}/.test(text);
}

/**
 * Decodes a body as UTF-8, which peers use whatever they declare. A body that is no UTF-8 is
 * decoded as ISO 8859-1.
 */
export function decoded(body: Buffer): string {
  return isUtf8(body) ? UTF8.decode(body) : body.toString('latin1');
}

const UTF8 = new TextDecoder();

/** The fault of an answer that is nested more deeply than is read. */
export const TOO_DEEP = 'gave an answer that is nested too deeply';

/**
 * Thrown when an answer cannot be read. The message completes a sentence whose subject is the peer.
 */
export class Unreadable extends Error {
  constructor(
    what: string,
    readonly code: PeerErrorCode = 'PEER_ANSWER',
  ) {
    super(what);
  }
}

/** Returns the result of `read`. If that throws Unreadable, throws the PeerError of this answer. */
export function readable<T>(answer: HttpAnswer, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable) throw unusable(answer, error.message);
    throw error;
  }
}
