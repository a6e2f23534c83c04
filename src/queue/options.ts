import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/**
 * The lanes of the queue, first the one that goes first.
 *
 * - `interactive`: a person waits for it. It passes the others, a pause, and an open circuit.
 * - `confirm`: look-ups of what the peer shows.
 * - `push`: documents on their way to the peer. How many of these, and of look-ups, run at a time
 *   adapts to what the peer bears.
 * - `removal`: documents on their way out of the peer. A peer that fails at these alone goes on
 *   getting others.
 * - `mirror`: downloads. They may take long and wait for our own disk, so their latency says
 *   nothing about the peer.
 * - `audit`: look-ups of what was confirmed long ago.
 */
export const LANES = ['interactive', 'confirm', 'push', 'removal', 'mirror', 'audit'] as const;
export type Lane = (typeof LANES)[number];

export function eachLane<T>(make: (lane: Lane) => T): Record<Lane, T> {
  const entries = LANES.map((lane) => [lane, make(lane)] as const);
  return Object.fromEntries(entries) as Record<Lane, T>;
}

export interface LaneLimits {
  /** Starts a second, at most; more than 0, may be a fraction. From 10,000 on there is no limit. */
  readonly requestsPerSecond: number;
  /** Requests of this lane at a time, at most; 1 or more. */
  readonly concurrency: number;
}

/** The limits that a reload may change. */
export interface QueueLimits {
  readonly lanes: Readonly<Record<Lane, LaneLimits>>;
  /**
   * How long one request may run before something is wrong with it, in ms; mirror requests twelve
   * times as long.
   */
  readonly longestMs?: number;
}

/** Every number the queue decides by; the unit stands in the name. */
export const DEFAULT_POLICY = {
  /**
   * Troubles without an answer in between (see Breaker), counted over all lanes, that open the
   * circuit when the last one is of this kind. One reset connection happens to every peer, so
   * `unreachable` waits for the second; a refused password is no accident.
   */
  openAfter: { unreachable: 2, failing: 5, denied: 1, weak: 1, busy: 1 },
  /**
   * First and longest wait before a probe, doubled by each that fails, in ms; shortened by up to
   * half at random. Peers lock out those who insist on refused credentials. A peer that is busy may
   * name another wait (Retry-After).
   */
  waitMs: {
    unreachable: { first: 1000, longest: 60_000 },
    failing: { first: 1000, longest: 60_000 },
    denied: { first: 5000, longest: 300_000 },
    weak: { first: 5000, longest: 300_000 },
    busy: { first: 1000, longest: 60_000 },
  },
  /** From 0 to 1, for jitter. */
  random: Math.random,
  /**
   * Trouble that lasts, and a peer that goes on asking to wait, are logged again after this long.
   */
  logAgainMs: 3_600_000,
  /** Longest Retry-After that is believed. */
  retryAfterMaxMs: 3_600_000,
};
export type QueuePolicy = Readonly<typeof DEFAULT_POLICY>;

/**
 * What the end of a request says about the peer; whoever makes the queue reads it from the error.
 */
export type Outcome =
  /** The peer works, whatever it said to this request. */
  | { readonly kind: 'answered' }
  /** No answer came: refused, reset, timed out. */
  | { readonly kind: 'unreachable' }
  /** An answer that a working peer does not give: 5xx, garbage. */
  | { readonly kind: 'failing' }
  /** The peer asks to be left alone for a while: 429, or 503 with Retry-After. */
  | { readonly kind: 'busy'; readonly retryAfterMs?: number }
  /** The peer refused the credentials. */
  | { readonly kind: 'denied' }
  /** The peer asks for the password in a way that shows it to others: it was not sent. */
  | { readonly kind: 'weak' }
  /** The request was aborted by its caller; says nothing about the peer. */
  | { readonly kind: 'aborted' };

export interface RequestQueueOptions extends QueueLimits {
  /** What the error of a request says about the peer. */
  readonly classify: (error: unknown) => Outcome;
  /** Deviations from `DEFAULT_POLICY`. */
  readonly policy?: Partial<QueuePolicy>;
  readonly clock: Clock;
  readonly log: Logger;
  /** What the peer is called in the log. */
  readonly peerName: string;
}

/**
 * The error of every request that the stop of the queue overtakes. The errors of requests pass
 * through it unchanged.
 */
export function queueStopped(): PeersyncError {
  return new PeersyncError({
    code: 'QUEUE_STOPPED',
    message: 'The queue was stopped before this request was answered.',
    hint: 'Nothing to do: it is sent again after the next start.',
  });
}
