import type { UplinkSettings } from './deps.js';

/**
 * Longest delay of an item that has not failed, in ms: such as one whose file changed while it was
 * read.
 */
const MAX_DELAY_WITHOUT_FAILURE_MS = 10_000;

/** Returns the delay after a failure, in ms: `min`, doubled with each attempt, up to `max`. */
export function backoffMs(
  { push }: UplinkSettings,
  { attempts }: { readonly attempts: number },
): number {
  const { min, max } = push.backoff;
  return Math.min(max, min * 2 ** Math.min(30, attempts));
}

/**
 * Returns how long an item has still to wait until its `notBefore`, in ms; 0 if it is due. It is
 * for backoff only: a longer delay than any failure causes comes from a wrong clock and counts as
 * over. A wait that a rule demands belongs in `watch`, before the item is pending or removing.
 */
export function delayLeftMs(
  { push }: UplinkSettings,
  { notBefore }: { readonly notBefore: number },
  now: number,
): number {
  const leftMs = Math.max(0, notBefore - now);
  const longestMs = Math.max(MAX_DELAY_WITHOUT_FAILURE_MS, push.backoff.max);
  return leftMs > longestMs ? 0 : leftMs;
}
