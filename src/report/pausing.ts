import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import type { Paused, RequestQueue } from '../queue/request-queue.js';
import type { State, StateView } from '../state/state.js';

const META = 'paused';
export const SHORTEST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 3_650 * 86_400_000;

/**
 * What a person paused, as the state keeps it; undefined also where its time is over. A pause that
 * begins ahead is of an earlier run whose clock was wrong: it begins now.
 */
export function keptPause(state: Pick<StateView, 'meta'>, now: number): Paused | undefined {
  const { since, until } = Object(state.meta(META)) as {
    readonly since?: unknown;
    readonly until?: unknown;
  };
  if (typeof since !== 'number') return undefined;
  const aheadMs = Math.max(0, since - now);
  if (typeof until !== 'number') return { since: since - aheadMs };
  return until > now ? { since: since - aheadMs, until: until - aheadMs } : undefined;
}

export interface PausingDeps {
  readonly state: Pick<State, 'meta' | 'setMeta' | 'commit'>;
  /** None where no daemon runs. */
  readonly queue?: RequestQueue | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * A person pauses the work with the peer; on disk before it is answered. @param forMs how long;
 * undefined until `resume`
 */
export async function pause(deps: PausingDeps, forMs: number | undefined): Promise<Paused> {
  const { clock, state } = deps;
  const now = clock.now();
  const since = keptPause(state, now)?.since ?? now;
  const paused = forMs === undefined ? { since } : { since, until: now + forMs };
  state.setMeta(META, paused);
  restorePause(deps, '');
  await state.commit('person');
  return paused;
}

/** Ends a pause; on disk before it is answered. @returns whether there was one */
export async function resume({ state, queue, clock }: PausingDeps): Promise<boolean> {
  const wasPaused = keptPause(state, clock.now()) !== undefined;
  state.setMeta(META, undefined);
  queue?.resume();
  await state.commit('person');
  return wasPaused;
}

/** Pauses the queue as the state has it: also a pause of an earlier run goes on. */
export function restorePause(
  { clock, log, queue, state }: PausingDeps,
  why = ', as before the start',
): void {
  const paused = keptPause(state, clock.now());
  if (paused === undefined) return;
  state.setMeta(META, { ...paused });
  queue?.pause(paused);
  const { until } = paused;
  const end =
    until === undefined ? 'until `peersync resume`' : `for ${durationText(until - clock.now())}`;
  const words = 'nothing is sent to the peer, what changes on disk is read and waits';
  log.info({ event: 'paused', ...paused }, `paused ${end}${why}: ${words}`);
}
