import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

/**
 * The lanes of the queue, first the one that goes first.
 *
 * - `interactive`: a person waits for it. It passes the others, a pause, and an open circuit.
 * - `confirm`: look-ups of what the peer shows.
 * - `push`: documents on their way to the peer; the last shared slots are kept for them.
 * - `mirror`: downloads. They may take long and wait for our own disk, so they have slots of their own, and their latency says
 *   nothing about the peer.
 * - `audit`: look-ups of what was confirmed long ago.
 */
export const LANES = ['interactive', 'confirm', 'push', 'mirror', 'audit'] as const;
export type Lane = (typeof LANES)[number];

/** The lanes that share their slots; each of the others has as many as its concurrency says. */
export function isShared(lane: Lane): boolean {
  return lane !== 'interactive' && lane !== 'mirror';
}

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
  /** Most requests at a time, over the lanes that share their slots; 1 or more. */
  readonly maxConcurrency: number;
}

/** Every number the queue decides by; the unit stands in the name. */
export interface QueuePolicy {
  /**
   * Troubles without an answer in between (see Breaker), counted over all lanes, that open the circuit when the last one is
   * of this kind. One reset connection happens to every peer, so `unreachable` waits for the second; a refused
   * password is no accident.
   *
   * @default { unreachable: 2, failing: 5, denied: 1 }
   */
  readonly openAfter: { readonly unreachable: number; readonly failing: number; readonly denied: number };
  /** First wait before a probe, doubled by each that fails. @default 1000 */
  readonly probeMs: number;
  /** Longest wait before a probe. @default 60_000 */
  readonly probeMaxMs: number;
  /** First wait before a probe with refused credentials: peers lock out those who insist. @default 5000 */
  readonly deniedProbeMs: number;
  /** Longest wait before a probe with refused credentials. @default 300_000 */
  readonly deniedProbeMaxMs: number;
  /** Trouble that lasts is logged again after this long. @default 3_600_000 */
  readonly logAgainMs: number;
  /** First wait after `busy` without Retry-After, doubled by each that follows. @default 1000 */
  readonly busyMs: number;
  /** A peer that has been busy for this long is logged as trouble. @default 60_000 */
  readonly busyLogMs: number;
  /** Longest wait after `busy` without Retry-After. @default 60_000 */
  readonly busyMaxMs: number;
  /** Longest Retry-After that is believed. @default 3_600_000 */
  readonly retryAfterMaxMs: number;
  /** A lane that could have started something for this long goes next, whatever its priority. @default 10_000 */
  readonly patienceMs: number;
  /** How long a request may take to end after its signal aborted; then it is given up. @default 5000 */
  readonly abortMs: number;
  /** Latency counts as slow above this multiple of its smoothed minimum … @default 3 */
  readonly slowFactor: number;
  /** … and this much over it, so that the noise of a near peer does not count. @default 100 */
  readonly slowSlackMs: number;
}

export const DEFAULT_POLICY: QueuePolicy = Object.freeze({
  openAfter: Object.freeze({ unreachable: 2, failing: 5, denied: 1 }),
  probeMs: 1000,
  probeMaxMs: 60_000,
  deniedProbeMs: 5000,
  deniedProbeMaxMs: 300_000,
  logAgainMs: 3_600_000,
  busyMs: 1000,
  busyLogMs: 60_000,
  busyMaxMs: 60_000,
  retryAfterMaxMs: 3_600_000,
  patienceMs: 10_000,
  abortMs: 5000,
  slowFactor: 3,
  slowSlackMs: 100,
});

/** What the end of a request says about the peer; whoever makes the queue reads it from the error. */
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
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
}

/** What the queue itself refuses; the errors of requests pass through it unchanged. */
export class QueueError extends PeersyncError {}

/** The error of every request that the stop of the queue overtakes. */
export function queueStopped(): QueueError {
  return new QueueError({
    code: 'QUEUE_STOPPED',
    message: 'The queue was stopped before this request was answered.',
    hint: 'Nothing to do: it is sent again after the next start.',
  });
}

/** @throws QueueError QUEUE_OPTION for a rate or concurrency that is none */
export function checkLimits({ lanes, maxConcurrency }: QueueLimits): void {
  for (const name of LANES) {
    const { requestsPerSecond, concurrency } = lanes[name];
    check(`${name}.requestsPerSecond`, requestsPerSecond, requestsPerSecond > 0, 'a number above 0');
    checkCount(`${name}.concurrency`, concurrency);
  }
  checkCount('maxConcurrency', maxConcurrency);
}

function checkCount(name: string, value: number): void {
  check(name, value, Number.isInteger(value) && value >= 1, 'a whole number from 1 up');
}

function check(name: string, received: number, isValid: boolean, expected: string): void {
  if (isValid) return;
  throw new QueueError({
    code: 'QUEUE_OPTION',
    message: `${name} must be ${expected}; received ${received}.`,
    hint: `Set ${name} to ${expected}.`,
    details: { name, received },
  });
}
