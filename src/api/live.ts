import { z } from 'zod';
import type { RecentEvent } from '../report/live.js';
import type { Sample } from '../report/statistics.js';
import type { LiveLine } from './live-feed.js';
import { manyLines, NOTHING } from './request.js';
import { status } from './status.js';

const sample: z.ZodType<Sample> = z.object({
  at: z.number(),
  confirmed: z.number(),
  waiting: z.number(),
  p50Ms: z.number().optional(),
  p95Ms: z.number().optional(),
});

const recentEvent: z.ZodType<RecentEvent> = z.object({
  id: z.number(),
  at: z.number(),
  level: z.enum(['info', 'warn', 'error']),
  message: z.string(),
  event: z.string().optional(),
});

const liveLine: z.ZodType<LiveLine> = z.union([
  z.object({ kind: z.literal('status'), status: status.line }),
  z.object({ kind: z.literal('samples'), samples: z.array(sample) }),
  z.object({ kind: z.literal('recents'), recents: z.array(recentEvent) }),
]);

/** Follows the daemon until it stops. */
export const live = manyLines({
  name: 'live',
  needs: 'daemon',
  question: NOTHING,
  line: liveLine,
  async *lots({ feed, live: daemon }) {
    for await (const line of feed.follow(daemon.stopping)) yield [line];
  },
});
