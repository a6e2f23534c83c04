import { type Clock, wallAheadMs } from '../lib/clock.js';
import { durationText } from '../lib/duration-text.js';
import type { Logger } from '../lib/logger.js';
import type { Paused, RequestQueue } from '../queue/request-queue.js';
import type { State, StateView } from '../state/state.js';

const META = 'paused';
export const SHORTEST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 3_650 * 86_400_000;

/**
 * What a person paused, as the state keeps it; undefined also where its time is over. One that began in the future did so
 * before the clock was set back, and begins now.
 */
export function keptPause(state: Pick<StateView, 'meta'>, now: number): Paused | undefined {
  const kept = state.meta(META);
  if (typeof kept !== 'object' || kept === null || !('since' in kept)) return undefined;
  const { since } = kept;
  const until = 'until' in kept ? kept.until : undefined;
  if (typeof since !== 'number') return undefined;
  const aheadMs = Math.max(0, since - now);
  if (typeof until !== 'number') return { since: since - aheadMs };
  return until - aheadMs > now ? { since: since - aheadMs, until: until - aheadMs } : undefined;
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

export interface PausingParts {
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
 * that ended by itself is forgotten, which need not be on disk, for its end is in it. It is kept with the dates of the wall
 * clock, which the next run begins with; `stop` keeps it anew where somebody has set that clock since.
 */
export class Pausing {
  readonly #parts: PausingParts;
  #isPaused = false;

  constructor(parts: PausingParts) {
    this.#parts = parts;
  }

  restore(): void {
    const { state, queue, clock, log } = this.#parts;
    queue.onChange(() => this.#followQueue());
    const paused = keptPause(state, clock.now());
    if (paused === undefined) return;
    this.#isPaused = true;
    // One from the future begins now, and only once.
    state.setMeta(META, { ...paused });
    queue.pause(paused);
    log.info({ event: 'paused', ...paused }, `${pausedText(paused, clock.now())}, as before the start`);
  }

  /** @param forMs how long, in ms; undefined until `resume` */
  async pause(forMs: number | undefined): Promise<Paused> {
    const { state, commit, queue, clock, log } = this.#parts;
    const paused = moved(keepPause(state, clock.wall(), forMs), -wallAheadMs(clock));
    this.#isPaused = true;
    queue.pause(paused);
    await commit();
    log.info({ event: 'paused', ...paused }, pausedText(paused, clock.now()));
    return paused;
  }

  /** @returns whether it was paused */
  async resume(): Promise<boolean> {
    const { state, commit, queue, clock, log } = this.#parts;
    const was = forgetPause(state, clock.wall()) || this.#isPaused;
    this.#isPaused = false;
    await commit();
    queue.resume();
    if (was) log.info({ event: 'resumed' }, 'resumed: the work with the peer goes on');
    return was;
  }

  async stop(): Promise<void> {
    const { clock, commit, queue, state } = this.#parts;
    const { paused } = queue.status();
    const aheadMs = wallAheadMs(clock);
    if (!this.#isPaused || paused === undefined || aheadMs === 0) return;
    state.setMeta(META, { ...moved(paused, aheadMs) });
    await commit();
  }

  #followQueue(): void {
    const { queue, log, state } = this.#parts;
    if (!this.#isPaused || queue.status().paused !== undefined) return;
    this.#isPaused = false;
    state.setMeta(META, undefined);
    log.info({ event: 'resumed' }, 'the pause is over: the work with the peer goes on');
  }
}

function moved({ since, until }: Paused, byMs: number): Paused {
  return until === undefined ? { since: since + byMs } : { since: since + byMs, until: until + byMs };
}

/** As the begin of a sentence. */
function pausedText({ until }: Paused, now: number): string {
  const end = until === undefined ? 'until `peersync resume`' : `for ${durationText(until - now)}`;
  return `paused ${end}: nothing is sent to the peer, what changes on disk is read and waits`;
}
