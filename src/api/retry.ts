import { join } from 'node:path';
import { z } from 'zod';
import { nextTurn, Pace } from '../lib/slices.js';
import { scopesOf } from '../report/items.js';
import { retryItems } from '../uplink/retry.js';
import { oneLine } from './request.js';
import { names } from './shapes.js';

/** Another try of everything, or of these files and directories with all below them. */
export const retry = oneLine({
  name: 'retry',
  needs: 'writing',
  question: z.union([z.object({ all: z.literal(true) }), z.object({ paths: names })]),
  line: z.object({
    retried: z.number(),
    toRead: z
      .number()
      .describe('Files that were skipped or could not be read, and are read again.'),
  }),
  answer: async ({ clock, config, live, state }, asked) => {
    const scopes =
      'paths' in asked ? await scopesOf(config, state.entries, asked.paths) : undefined;
    const extracts = join(config.state.dir, 'extracts');
    const { toRead, retried } = await retryItems({ clock, extracts, state }, scopes);
    await state.commit('person');
    // These files count as changed or new, so they are read again when they are looked at. If there
    // are very many, the watcher lists their directories instead.
    const pace = new Pace();
    for (const key of toRead) {
      if (pace.step()) await nextTurn();
      live?.parts.watcher.lookSoon(key, 'ifChanged');
    }
    live?.parts.queue.tryNow();
    return { retried, toRead: toRead.length };
  },
});
