import { errors } from 'undici';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Weakness } from './access.js';
import type { AnswerHead } from './answer.js';
import { parseChallenges } from './auth.js';
import { type Delivered, PeerError, type PeerErrorCode } from './errors.js';

/** The phases of an exchange. `Exchange` says what begins and ends each. */
export type Phase = 'connecting' | 'sending' | 'waiting' | 'receiving';

/** Whether the peer has the body of a request that fails in this phase. */
export const DELIVERED: Readonly<Record<Phase, Delivered>> = {
  connecting: 'no',
  sending: 'no',
  waiting: 'maybe',
  receiving: 'yes',
};

/** Names the failure of a connection in this phase, as the end of a sentence about the peer. */
const BROKEN: Readonly<Record<Phase, string>> = {
  connecting: 'cannot be reached',
  sending: 'broke the connection while the request was sent (is it too large?)',
  waiting: 'broke the connection without an answer',
  receiving: 'broke the connection in the middle of its answer',
};

/** The state of an exchange when it failed. */
export interface FailedExchange {
  readonly url: string;
  readonly phase: Phase;
  readonly delivered: Delivered;
  /** The HTTP status, if the headers of the answer arrived. */
  readonly status: number | undefined;
  /** The first bytes of the answer's body, if any arrived. */
  readonly answer: Buffer | undefined;
  /** Whether the answer is read while it arrives. */
  readonly isStreamed: boolean;
  /** Limit for opening a connection, in ms. */
  readonly connectMs: number;
}

/**
 * Returns the error for an exchange that failed.
 *
 * @param what the end of a sentence whose subject is the URL
 */
export function exchangeError(
  failed: FailedExchange,
  code: PeerErrorCode,
  what: string,
  cause?: unknown,
): PeerError {
  const { url, delivered, status, answer } = failed;
  return new PeerError(code, { url, what, delivered, status, answer, cause });
}

/** Returns the error for an exchange that was ended by undici, the system or the body. */
export function connectionError(failed: FailedExchange, error: unknown): PeerError {
  if (error instanceof PeerError) return error;
  const { url, delivered, connectMs } = failed;
  if (error instanceof errors.ClientDestroyedError) return calledOff(url, delivered, error);
  if (error instanceof errors.ConnectTimeoutError) {
    const what = `cannot be reached: no connection after ${connectMs} ms`;
    return exchangeError(failed, 'PEER_TIMEOUT', what, error);
  }
  return notHttpError(failed, error) ?? brokenError(failed, error);
}

/** The error for an answer that does not begin as HTTP does; undefined for any other error. */
function notHttpError(failed: FailedExchange, error: unknown): PeerError | undefined {
  if (failed.phase === 'receiving') return undefined;
  const isOverflow = error instanceof errors.HeadersOverflowError;
  const isUnparsed = error instanceof errors.HTTPParserError;
  if (!isOverflow && !isUnparsed) return undefined;
  const data = 'data' in error ? error.data : undefined;
  // Without data, the connection ended before an answer began.
  if (isUnparsed && !data) return undefined;
  const answer = data ? Buffer.from(String(data)) : undefined;
  const what = `did not answer in HTTP (${error.message})`;
  return exchangeError({ ...failed, answer }, 'PEER_ANSWER', what, error);
}

function brokenError(failed: FailedExchange, error: unknown): PeerError {
  const what = `${BROKEN[failed.phase]}: ${described(error)}`;
  const isCutShort = failed.phase === 'receiving' && failed.isStreamed;
  if (isCutShort) return exchangeError(failed, 'PEER_ANSWER', what, error);
  // The peer is away, and the beginning of its answer does not say why.
  return exchangeError({ ...failed, answer: undefined }, 'PEER_UNREACHABLE', what, error);
}

/**
 * The text of an error. An AggregateError stands for several attempts (IPv6, IPv4) and has no text
 * of its own. Codes of the system are added; those of undici say nothing to a person.
 */
function described(error: unknown): string {
  const code = systemCode(error) ?? '';
  const attempts = error instanceof AggregateError ? error.errors : [error];
  const messages = new Set(attempts.map(messageOf));
  const text = [...messages].filter(Boolean).join('; ') || code;
  return text.includes(code) || code.startsWith('UND_') ? text : `${text} (${code})`;
}

/** Returns the error for a request that was aborted. */
export function calledOff(url: string, delivered: Delivered, cause?: unknown): PeerError {
  const what = 'is not waited for: the request was called off';
  return new PeerError('PEER_ABORTED', { url, what, delivered, cause });
}

/** Waits for work that others may wait for, too. The signal ends only this wait. */
export function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  /** The URL of the waiting request, for the error. */
  url: string,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(calledOff(url, 'no', signal?.reason));
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
  });
}

/** Returns the error for a 401: credentials are missing, refused, or of no supported scheme. */
export function refusedError(head: AnswerHead, hasCredentials: boolean): PeerError {
  const { url, status, delivered } = head;
  const what = refusal(head, hasCredentials);
  return new PeerError('PEER_AUTH', { url, what, status, delivered });
}

function refusal({ headers }: AnswerHead, hasCredentials: boolean): string {
  if (!hasCredentials) return 'asks for a user name and a password (401), and none is configured';
  const offered = parseChallenges(headers['www-authenticate']).map(({ scheme }) => scheme);
  const isSupported = offered.includes('basic') || offered.includes('digest');
  if (isSupported) return 'did not accept the user name and the password (401)';
  const schemes = offered.join(', ') || 'no challenge';
  return `asks for a kind of access that is not spoken here (401, ${schemes})`;
}

/**
 * Returns the error for a 401 whose challenge is not answered, because that would expose the
 * password.
 */
export function weakError(head: AnswerHead, { what, hint }: Weakness): PeerError {
  const { url, status, delivered } = head;
  return new PeerError('PEER_AUTH_WEAK', { url, what, hint, status, delivered });
}
