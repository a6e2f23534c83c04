import { amountText } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { QueueStatus } from '../queue/request-queue.js';
import type { Counts } from '../state/entries.js';

/**
 * The speed at which waiting files become searchable. It is known only while files wait and move.
 */
export interface Pace {
  /** Files confirmed a second, over the last half minute or since the backlog more than doubled. */
  readonly perSecond: number;
  /**
   * The time until all waiting files are confirmed, in ms. Undefined while a folder is scanned,
   * because more files may be found.
   */
  readonly leftMs?: number | undefined;
}

interface PaceFacts {
  readonly items: Pick<Counts, 'pending' | 'accepted'>;
  readonly confirmedPerSecond: number;
  readonly queue: QueueStatus | undefined;
  readonly isScanning: boolean;
}

/** @param now in ms since the epoch, of the daemon's clock */
export function paceOf(facts: PaceFacts, now: number): Pace | undefined {
  const { confirmedPerSecond, isScanning, items, queue } = facts;
  const waiting = items.pending + items.accepted;
  if (waiting === 0 || confirmedPerSecond === 0 || isHeldUp(queue, now)) return undefined;
  const perSecond = Number(confirmedPerSecond.toPrecision(3));
  if (isScanning) return { perSecond };
  // Rounded to seconds, so that a status changes only when something else does.
  return { perSecond, leftMs: Math.ceil(waiting / confirmedPerSecond) * 1_000 };
}

/** Returns whether no file can move now: the peer is away or asked to wait, or a person paused. */
export function isHeldUp(queue: QueueStatus | undefined, now: number): boolean {
  if (queue === undefined) return true;
  const { circuit, paused, retryAfterUntil = 0 } = queue;
  const isAway = circuit.held.includes('push') || circuit.held.includes('confirm');
  return paused !== undefined || retryAfterUntil > now || isAway;
}

/** Less is over before it is read, in ms. */
const WORTH_TELLING_MS = 10_000;

/** A pace for a person: `38.2 a second, about 2m 10s to go`. */
export function paceText({ perSecond, leftMs = 0 }: Pace): string {
  const left = leftMs > WORTH_TELLING_MS ? `, about ${durationText(leftMs)} to go` : '';
  return `${amountText(perSecond)} a second${left}`;
}
