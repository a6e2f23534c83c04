/**
 * The lanes of the door, first the one that goes first.
 *
 * - `interactive`: a person waits for it. Goes at once: past the others, a pause, and an open circuit.
 * - `confirm`: lookups of what the peer shows.
 * - `push`: documents on their way to the peer; one shared slot is always theirs.
 * - `mirror`: downloads. They may take long and wait for our own disk, so they have slots of their own, and their latency says
 *   nothing of the peer.
 * - `audit`: lookups of what was confirmed long ago.
 */
export const LANES = ['interactive', 'confirm', 'push', 'mirror', 'audit'] as const;
export type Lane = (typeof LANES)[number];

/** The lanes that share their slots; the others have as many as their concurrency says. */
export function isShared(lane: Lane): boolean {
  return lane !== 'interactive' && lane !== 'mirror';
}

export function eachLane<T>(make: (lane: Lane) => T): Record<Lane, T> {
  const entries = LANES.map((lane) => [lane, make(lane)] as const);
  return Object.fromEntries(entries) as Record<Lane, T>;
}
