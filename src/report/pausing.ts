import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import type { Paused, RequestQueue } from '../queue/request-queue.js';
import type { State, StateView } from '../state/state.js';

const META = 'paused';
export const SHORTEST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 3_650 * 86_400_000;

/** What a person paused, as the state keeps it; undefined also where its time is over. */
export function keptPause(state: Pick<StateView, 'meta'>, now: number): Paused | undefined {
  const kept = state.meta(META);
  if (typeof kept !== 'object' || kept === null || !('since' in kept)) return undefined;
  const { since, until } = kept;
  if (typeof since !== 'number') return undefined;
  if (typeof until !== 'number') return { since };
  return until > now ? { since, until } : undefined;
}

/** Keeps a pause that begins now, or goes on; to be committed. @param forMs how long from now; undefined until it is ended */
export function keepPause(
  state: Pick<State, 'meta' | 'setMeta'>,
  now: number,
  forMs: number | undefined,
): Paused {
  const since = keptPause(state, now)?.since ?? now;
  const paused = forMs === undefined ? { since } : { since, until: now + forMs };
  state.setMeta(META, paused);
  return paused;
}

/** Forgets a pause; to be committed. @returns whether there was one */
export function forgetPause(state: Pick<State, 'meta' | 'setMeta'>, now: number): boolean {
  const paused = keptPause(state, now);
  state.setMeta(META, undefined);
  return paused !== undefined;
}

export interface PausingDeps {
  readonly state: Pick<State, 'meta' | 'setMeta' | 'commit'>;
  readonly queue: Pick<RequestQueue, 'pause' | 'resume'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A person pauses the work with the peer; on disk before it is answered. @param forMs how long; undefined until `resume` */
export async function pause(
  { state, queue, clock, log }: PausingDeps,
  forMs: number | undefined,
): Promise<Paused> {
  const paused = keepPause(state, clock.now(), forMs);
  queue.pause(paused);
  await state.commit();
  log.info({ event: 'paused', ...paused }, pausedText(paused, clock.now()));
  return paused;
}

/** Ends a pause; on disk before it is answered. @returns whether there was one */
export async function resume({ state, queue, clock }: PausingDeps): Promise<boolean> {
  const wasPaused = forgetPause(state, clock.now());
  await state.commit();
  queue.resume();
  return wasPaused;
}

/** Goes on with a pause of an earlier run. */
export function restorePause({ state, queue, clock, log }: PausingDeps): void {
  const paused = keptPause(state, clock.now());
  if (paused === undefined) return;
  queue.pause(paused);
  log.info({ event: 'paused', ...paused }, `${pausedText(paused, clock.now())}, as before the start`);
}

/** As the begin of a sentence. */
function pausedText({ until }: Paused, now: number): string {
  const end = until === undefined ? 'until `peersync resume`' : `for ${durationText(until - now)}`;
  return `paused ${end}: nothing is sent to the peer, what changes on disk is read and waits`;
}
