import { z } from 'zod';
import type { ReloadReport } from '../report/live.js';
import { NOTHING, oneLine } from './request.js';

const reloadLine: z.ZodType<ReloadReport> = z.object({
  changes: z.array(z.string()),
  restart: z.array(z.string()).describe('Keys that wait for a restart.'),
});

/** Lets the daemon load its changed configuration. The answer begins when that is done. */
export const reload = oneLine({
  name: 'reload',
  needs: 'daemon',
  question: NOTHING,
  line: reloadLine,
  answer: async ({ live }) => await live.reload(),
});
