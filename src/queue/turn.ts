import type { LaneState } from './lane.js';

export interface Turn {
  /** In order of priority. */
  readonly lanes: readonly LaneState[];
  /** Whether breaker and pause let a task of this lane start. */
  readonly admits: (lane: LaneState) => boolean;
  /** Shared slots there are, and those in use. */
  readonly limit: number;
  readonly running: number;
  /** The lane that was served last. */
  readonly last: LaneState | undefined;
  readonly patienceMs: number;
  readonly now: number;
}

/** From so many slots on two of them are kept for push: while one request is answered, the peer works on the other. */
const KEPT_FROM = 3;

/**
 * Whose turn it is at the shared slots: the lane of the highest priority that can start, but
 *
 * - a lane that waits longer than `patienceMs` goes first, so that none starves;
 * - the last free slots are for push until two of it run, or one where there are fewer than three slots; where there is but one
 *   slot at all, push and the others take turns.
 */
export function whoseTurn(turn: Turn): LaneState | undefined {
  if (turn.running >= turn.limit) return undefined;
  let first: LaneState | undefined;
  let push: LaneState | undefined;
  let hungriest: LaneState | undefined;
  let longest = turn.patienceMs;
  for (const lane of turn.lanes) {
    if (lane.waiting === 0 || !lane.hasRoom(turn.now) || !turn.admits(lane)) continue;
    first ??= lane;
    if (lane.name === 'push') push = lane;
    const hungry = lane.hungryFor(turn.now);
    if (hungry > longest) {
      longest = hungry;
      hungriest = lane;
    }
  }
  if (hungriest) return hungriest;
  const kept = (turn.limit >= KEPT_FROM ? 2 : 1) - (push?.running ?? 0);
  const isKept = kept > 0 && turn.limit - turn.running <= kept;
  const hadItsTurn = turn.limit === 1 && turn.last?.name === 'push';
  return push && isKept && !hadItsTurn ? push : first;
}
