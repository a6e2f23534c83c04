import { z } from 'zod';
import { extractedBy } from '../lib/extracted-by.js';
import { LISTED_STATUSES, namedPaths } from '../report/items.js';
import type { WhyReport } from '../report/why.js';
import { oneLine } from './request.js';
import { evidence, failure, itemStatus, readingProgress } from './shapes.js';

const whyLine: z.ZodType<WhyReport> = z.object({
  file: z.string(),
  folder: z.string().exactOptional(),
  path: z.string().exactOptional(),
  status: z.enum([...LISTED_STATUSES, 'ignored', 'unknown', 'outside']),
  kind: z.enum(['directory', 'link', 'other', 'absent', 'mirrored']).exactOptional(),
  rule: z.string(),
  since: z.number().exactOptional(),
  url: z.string().optional(),
  collection: z.string().optional(),
  version: z
    .object({ size: z.number(), mtimeMs: z.number(), sha256: z.string().optional() })
    .exactOptional(),
  renamed: z.string().optional(),
  conversion: z.string().optional(),
  extracted: extractedBy.optional(),
  attempts: z.number().optional(),
  evidence: evidence.optional(),
  failure: failure.optional(),
  history: z.array(
    z.object({ status: itemStatus, at: z.number(), note: z.string().exactOptional() }),
  ),
  next: z.string(),
  nextAt: z.number().optional(),
  reading: z.object(readingProgress).optional(),
  upToDateAt: z.number().optional(),
});

/** Everything about one path: an absolute one, `FOLDER/path`, or a bare name. */
export const why = oneLine({
  name: 'why',
  needs: 'reading',
  question: z.object({ path: z.string() }),
  line: whyLine,
  answer: async ({ config, live, view }, { path }) => {
    // Loaded here: a command that asks a daemon starts faster without.
    const { explain } = await import('../report/why.js');
    const [absolute = ''] = await namedPaths(config, view.entries, [path]);
    return await explain(absolute, config, view, live);
  },
});
