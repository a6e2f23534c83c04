import { z } from 'zod';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import type { Paused, RequestQueue } from '../queue/request-queue.js';
import { PAUSE_META, savedPause } from '../report/status-report.js';
import type { State } from '../state/state.js';
import { NOTHING, oneLine } from './request.js';
import { paused } from './shapes.js';

export const SHORTEST_PAUSE_MS = 1_000;
export const LONGEST_PAUSE_MS = 3_650 * 86_400_000;

interface PauseDeps {
  readonly state: Pick<State, 'meta' | 'setMeta' | 'commit'>;
  /** Undefined where no daemon runs. */
  readonly queue?: RequestQueue | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Sends nothing to the peer, for some time or until `resume`. */
export const pause = oneLine({
  name: 'pause',
  field: 'paused',
  needs: 'writing',
  question: z.object({
    /** The duration, in ms. @default until `resume` */
    forMs: z.number().min(SHORTEST_PAUSE_MS).max(LONGEST_PAUSE_MS).optional(),
  }),
  line: paused,
  answer: async ({ clock, live, log, state }, { forMs }) =>
    await pauseWork({ clock, log, state, queue: live?.parts.queue }, forMs),
});

/**
 * Pauses the work with the peer. The pause is on disk when this resolves.
 *
 * @param forMs how long; undefined until `resumeWork`
 */
export async function pauseWork(deps: PauseDeps, forMs: number | undefined): Promise<Paused> {
  const { clock, state } = deps;
  const now = clock.now();
  const since = savedPause(state, now)?.since ?? now;
  const pause = forMs === undefined ? { since } : { since, until: now + forMs };
  state.setMeta(PAUSE_META, pause);
  applyPause(deps, '');
  await state.commit('person');
  return pause;
}

/** Pauses the queue as the state has saved it, also if an earlier run saved it. */
export function restorePause(deps: PauseDeps): void {
  applyPause(deps, ', as before the start');
}

/** @param why ends the first clause of the log line */
function applyPause({ clock, log, queue, state }: PauseDeps, why: string): void {
  const pause = savedPause(state, clock.now());
  if (pause === undefined) return;
  state.setMeta(PAUSE_META, { ...pause });
  queue?.pause(pause);
  const { until } = pause;
  const end =
    until === undefined ? 'until `peersync resume`' : `for ${durationText(until - clock.now())}`;
  const effect = 'nothing is sent to the peer, what changes on disk is read and waits';
  log.info({ event: 'paused', ...pause }, `paused ${end}${why}: ${effect}`);
}

/** Ends a pause. */
export const resume = oneLine({
  name: 'resume',
  needs: 'writing',
  question: NOTHING,
  line: z.object({ wasPaused: z.boolean() }),
  answer: async ({ clock, live, log, state }) => {
    const queue = live?.parts.queue;
    return { wasPaused: await resumeWork({ clock, log, state, queue }) };
  },
});

/**
 * Ends a pause. That is on disk when this resolves.
 *
 * @returns whether there was a pause
 */
export async function resumeWork({ state, queue, clock }: PauseDeps): Promise<boolean> {
  const wasPaused = savedPause(state, clock.now()) !== undefined;
  state.setMeta(PAUSE_META, undefined);
  queue?.resume();
  await state.commit('person');
  return wasPaused;
}

/** Asks a peer that failed at once, without waiting for the next try. */
export const tryNow = oneLine({
  name: 'try',
  needs: 'daemon',
  question: NOTHING,
  line: z.object({}),
  answer: ({ live }) => {
    live.parts.queue.tryNow();
    return {};
  },
});
