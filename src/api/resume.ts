import { z } from 'zod';
import { PAUSE_META, savedPause } from '../report/pause.js';
import type { PauseDeps } from './pause.js';
import { NOTHING, oneLine } from './request.js';

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
