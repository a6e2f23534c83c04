import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/**
 * The lanes of the queue, in order of priority.
 *
 * - `interactive`: a person waits for the answer. It overtakes the other lanes and ignores pauses,
 *   an open circuit and the Retry-After of the peer.
 * - `confirm`: look-ups of documents that were pushed or removed lately, and requests to commit the
 *   index. Like `push`, it has an adaptive concurrency limit.
 * - `push`: documents sent to the peer.
 * - `removal`: removals of documents from the peer. A peer that fails only at these still receives
 *   documents.
 * - `mirror`: downloads. They may take long and wait for the local disk, so their latency says
 *   nothing about the peer.
 * - `audit`: look-ups of documents that were confirmed or removed long ago. Those that a person
 *   asks for are in `interactive`.
 */
export const LANES = ['interactive', 'confirm', 'push', 'removal', 'mirror', 'audit'] as const;
export type Lane = (typeof LANES)[number];

export function eachLane<T>(make: (lane: Lane) => T): Record<Lane, T> {
  const entries = LANES.map((lane) => [lane, make(lane)] as const);
  return Object.fromEntries(entries) as Record<Lane, T>;
}

export interface LaneLimits {
  /**
   * Maximum number of starts per second; above 0, may be a fraction. From 10,000 on there is no
   * limit.
   */
  readonly requestsPerSecond: number;
  /** Maximum number of requests of this lane that run at a time; 1 or more. */
  readonly concurrency: number;
}

/** The limits that a reload may change. */
export interface QueueLimits {
  readonly lanes: Readonly<Record<Lane, LaneLimits>>;
  /**
   * Longest time of one request before the health check fails, in ms; `mirror` requests may take
   * twelve times as long.
   */
  readonly longestMs?: number;
}

/** The policy of the queue. Units are in the names. */
export const DEFAULT_POLICY = {
  /**
   * Number of strikes that open the circuit. Strikes of every kind and lane count; the circuit
   * opens when there are as many as the kind of the latest strike needs (see Breaker). One reset
   * connection is normal, so `unreachable` takes two; a refused password is no accident.
   */
  openAfter: { unreachable: 2, failing: 5, denied: 1, weak: 1, busy: 1 },
  /**
   * First and longest wait before a probe, in ms. Each failed probe doubles the wait; jitter
   * shortens it by up to half. `denied` starts higher because peers lock out clients that repeat
   * refused credentials. For `busy` this is the wait without a Retry-After.
   */
  waitMs: {
    unreachable: { first: 1000, longest: 60_000 },
    failing: { first: 1000, longest: 60_000 },
    denied: { first: 5000, longest: 300_000 },
    weak: { first: 5000, longest: 300_000 },
    busy: { first: 1000, longest: 60_000 },
  },
  /** Returns a random number from 0 to 1, for jitter. */
  random: Math.random,
  /** Interval at which a lasting failure, or a peer that stays busy, is logged again. */
  logAgainMs: 3_600_000,
  /** Longest Retry-After that is honoured. */
  retryAfterMaxMs: 3_600_000,
};
export type QueuePolicy = Readonly<typeof DEFAULT_POLICY>;

/** The outcome of a request, as far as it says something about the peer. */
export type Outcome =
  /** The peer works, whatever it said to this request. */
  | { readonly kind: 'answered' }
  /** No answer came: refused, reset, timed out. */
  | { readonly kind: 'unreachable' }
  /** An answer that a working peer does not give: 5xx, garbage. */
  | { readonly kind: 'failing' }
  /** The peer asks to wait: 429 or 503. It may say how long (Retry-After). */
  | { readonly kind: 'busy'; readonly retryAfterMs?: number }
  /** The peer refused the credentials. */
  | { readonly kind: 'denied' }
  /** The peer asks for the password in an unsafe way. The password was not sent. */
  | { readonly kind: 'weak' }
  /** The request was aborted by its caller; says nothing about the peer. */
  | { readonly kind: 'aborted' };

export interface RequestQueueOptions extends QueueLimits {
  /** Returns what an error says about the peer. */
  readonly classify: (error: unknown) => Outcome;
  /** Overrides of `DEFAULT_POLICY`. */
  readonly policy?: Partial<QueuePolicy>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Name of the peer in the log. */
  readonly peerName: string;
}

/**
 * Returns the error of a request that had not started when the queue stopped. Errors of the
 * requests themselves pass through the queue unchanged.
 */
export function queueStopped(): PeersyncError {
  return new PeersyncError({
    code: 'QUEUE_STOPPED',
    message: 'The queue was stopped before this request was answered.',
    hint: 'Nothing to do: it is sent again after the next start.',
  });
}
