import { z } from 'zod';
import { NOTHING, oneLine } from './request.js';

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
