import type { Paused } from '../queue/request-queue.js';
import type { StateView } from '../state/state.js';

/** The name under which the state saves a pause. */
export const PAUSE_META = 'paused';

/**
 * Returns the pause that the state has saved; undefined if there is none, or its time is over. A
 * pause that begins in the future comes from an earlier run whose clock was wrong: it begins now,
 * and its end moves with its beginning. A new field of a pause has to be copied here.
 */
export function savedPause(state: Pick<StateView, 'meta'>, now: number): Paused | undefined {
  const saved: { readonly since?: unknown; readonly until?: unknown } = Object(
    state.meta(PAUSE_META),
  );
  const { since, until } = saved;
  if (typeof since !== 'number') return undefined;
  const aheadMs = Math.max(0, since - now);
  if (typeof until !== 'number') return { since: since - aheadMs };
  return until > now ? { since: since - aheadMs, until: until - aheadMs } : undefined;
}
