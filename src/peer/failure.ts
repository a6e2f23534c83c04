import { messageOf, systemCode } from '../lib/errors.js';
import { ConnectTimeout } from './connection.js';
import { type Delivered, PeerError } from './errors.js';
import type { Failed, Reason } from './exchange.js';
import { errors } from './undici.js';

export interface FailureParts {
  /** Of the request. */
  readonly url: string;
  readonly delivered: Delivered;
}

/**
 * The error that a failed exchange stands for.
 *
 * @param parts `maxBytes`: the limit of the answer
 */
export function failureError(
  { reason, status, begin, phase }: Failed,
  { url, delivered, maxBytes }: FailureParts & { readonly maxBytes: number },
): PeerError {
  const parts = { url, delivered, status };
  switch (reason.kind) {
    case 'timeout': {
      const what = `did not give ${reason.what} within ${reason.ms} ms`;
      return new PeerError('PEER_TIMEOUT', { ...parts, what });
    }
    case 'aborted':
      return calledOff(parts, reason.cause);
    case 'tooLarge': {
      const what = `answered with more than ${maxBytes} bytes`;
      return new PeerError('PEER_ANSWER_TOO_LARGE', { ...parts, what, answer: begin });
    }
    case 'error':
      return connectionError(reason.error, parts, BROKE_OFF[phase]);
  }
}

/** The error for a request that nobody waits for any more. */
export function calledOff({ url, delivered }: FailureParts, cause?: unknown): PeerError {
  const what = 'is not waited for: the request was called off';
  return new PeerError('PEER_ABORTED', { url, what, delivered, cause });
}

/** The error for an answer that broke off while it was read: it is no whole answer, and that does not say that the peer is away. */
export function cutShort({ reason, status, begin }: Failed, { url, delivered }: FailureParts): PeerError {
  const cause = reason.kind === 'error' ? reason.error : undefined;
  const what = BROKE_OFF.receiving;
  return new PeerError('PEER_ANSWER', { url, what, status, answer: begin, delivered, cause });
}

/** By what had happened before. */
const BROKE_OFF = {
  connecting: 'cannot be reached',
  sending: 'broke the connection while the request was sent (is it too large?)',
  waiting: 'broke the connection without an answer',
  receiving: 'broke the connection in the middle of its answer',
} as const;

interface ConnectionErrorParts extends FailureParts {
  readonly status: number | undefined;
}

function connectionError(error: unknown, parts: ConnectionErrorParts, how: string): PeerError {
  if (error instanceof PeerError) return error;
  if (error instanceof ConnectTimeout) {
    return new PeerError('PEER_TIMEOUT', {
      ...parts,
      what: `cannot be reached: ${error.message}`,
      cause: error,
    });
  }
  const code = systemCode(error) ?? '';
  const isEnd = error instanceof errors.HTTPParserError && !('data' in error && error.data);
  if (!isEnd && (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError)) {
    const answer = 'data' in error && error.data ? Buffer.from(String(error.data)) : undefined;
    const what = `did not answer in HTTP (${error.message})`;
    return new PeerError('PEER_ANSWER', { ...parts, what, answer, cause: error });
  }
  const what = `${how}: ${described(error, code)}`;
  return new PeerError('PEER_UNREACHABLE', { ...parts, what, cause: error });
}

/** Several attempts (IPv6, IPv4) come as one AggregateError without a text of its own. The library's own codes tell nobody anything. */
function described(error: unknown, code: string): string {
  const messages = error instanceof AggregateError ? error.errors.map(messageOf) : [messageOf(error)];
  const text = [...new Set(messages)].filter(Boolean).join('; ') || code;
  return text.includes(code) || code.startsWith('UND_') ? text : `${text} (${code})`;
}

const BROKEN = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']);

/** Whether a connection that stood broke without another reason. */
export function isBroken(reason: Reason): boolean {
  return reason.kind === 'error' && BROKEN.has(systemCode(reason.error) ?? '');
}
