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
  readonly state: Pick<State, 'meta' | 'setMeta'>;
  readonly commit: () => Promise<void>;
  readonly queue: Pick<RequestQueue, 'pause' | 'resume' | 'status' | 'onChange'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * A person pauses and resumes the work with the peer.
 *
 * `restore` at the start goes on with a pause of an earlier run. What is asked for is on disk before it is answered; a pause
 * that ended by itself is forgotten, which need not be on disk, for its end is in it.
 */
export class Pausing {
  readonly #deps: PausingDeps;
  #isPaused = false;

  constructor(deps: PausingDeps) {
    this.#deps = deps;
  }

  restore(): void {
    const { state, queue, clock, log } = this.#deps;
    queue.onChange(() => this.#followQueue());
    const paused = keptPause(state, clock.now());
    if (paused === undefined) return;
    this.#isPaused = true;
    queue.pause(paused);
    log.info({ event: 'paused', ...paused }, `${pausedText(paused, clock.now())}, as before the start`);
  }

  /** @param forMs how long, in ms; undefined until `resume` */
  async pause(forMs: number | undefined): Promise<Paused> {
    const { state, commit, queue, clock, log } = this.#deps;
    const paused = keepPause(state, clock.now(), forMs);
    this.#isPaused = true;
    queue.pause(paused);
    await commit();
    log.info({ event: 'paused', ...paused }, pausedText(paused, clock.now()));
    return paused;
  }

  /** @returns whether it was paused */
  async resume(): Promise<boolean> {
    const { state, commit, queue, clock, log } = this.#deps;
    const was = forgetPause(state, clock.now()) || this.#isPaused;
    this.#isPaused = false;
    await commit();
    queue.resume();
    if (was) log.info({ event: 'resumed' }, 'resumed: the work with the peer goes on');
    return was;
  }

  #followQueue(): void {
    const { queue, log, state } = this.#deps;
    if (!this.#isPaused || queue.status().paused !== undefined) return;
    this.#isPaused = false;
    state.setMeta(META, undefined);
    log.info({ event: 'resumed' }, 'the pause is over: the work with the peer goes on');
  }
}

/** As the begin of a sentence. */
function pausedText({ until }: Paused, now: number): string {
  const end = until === undefined ? 'until `peersync resume`' : `for ${durationText(until - now)}`;
  return `paused ${end}: nothing is sent to the peer, what changes on disk is read and waits`;
}
