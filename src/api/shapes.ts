import { z } from 'zod';
import type { MirrorReport } from '../mirror/record.js';
import type { Paused } from '../queue/request-queue.js';
import { LISTED_STATUSES } from '../report/items.js';
import { type Condition, SEVERITIES } from '../report/status-report.js';
import type { Counts } from '../state/entries.js';
import type { Evidence, Failure } from '../state/entry.js';
import type { ScanReport } from '../watch/watcher.js';

// Shapes that the answers of several requests contain. Times and durations are numbers in ms, times
// since the epoch.

/** The name of a folder, a mirror or a file, as a question gives it. */
export const names = z.array(z.string()).min(1);

export const itemStatus = z.enum(LISTED_STATUSES);

export const counts: z.ZodType<Counts> = z.record(itemStatus, z.number());

export const failure: z.ZodType<Failure> = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string(),
});

export const lastingFailure = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string(),
  since: z.number(),
});

export const evidence: z.ZodType<Evidence> = z.object({
  kind: z.enum(['digest', 'lastModified', 'loadDate', 'size', 'present']),
  at: z.number(),
  shown: z.string(),
});

export const condition: z.ZodType<Condition> = z.object({
  code: z.string(),
  severity: z.enum(SEVERITIES),
  subject: z
    .string()
    .describe(
      'peer, state, disk, configuration, fleet, or the name of a folder, collection, mirror or machine.',
    ),
  message: z.string(),
  hint: z.string(),
  since: z.number().optional(),
});

/** The fields of a document that is being read. */
export const readingProgress = {
  since: z.number(),
  page: z.number().exactOptional().describe('The page that was read last.'),
  pages: z.number().exactOptional(),
};

export const paused: z.ZodType<Paused> = z.object({
  since: z.number(),
  until: z.number().exactOptional(),
});

export const scanReport: z.ZodType<ScanReport> = z.object({
  folder: z.string(),
  files: z.number(),
  directories: z.number(),
  durationMs: z.number(),
});

export const mirrorReport: z.ZodType<MirrorReport> = z.object({
  name: z.string(),
  kind: z.enum(['share', 'table', 'citations']),
  path: z.string(),
  table: z.string().optional(),
  share: z.string().optional(),
  rows: z.number().optional(),
  bytes: z.number().optional(),
  columns: z.array(z.string()).optional(),
  succeededAt: z.number().optional(),
  changedAt: z.number().optional(),
  nextAt: z.number().optional(),
  running: z.boolean().optional(),
  changed: z.boolean().optional().describe('Whether this run changed the file.'),
  isOver: z.boolean().optional(),
  absentSince: z.number().optional(),
  condition: lastingFailure
    .optional()
    .describe('What keeps the file from following the peer until it is accepted.'),
  failure: lastingFailure.optional(),
  failures: z.number().optional(),
  conflicts: z
    .array(
      z.object({
        pk: z.string(),
        column: z.string().exactOptional(),
        file: z.string(),
        at: z.number(),
      }),
    )
    .optional(),
  notes: z.array(z.string()).optional(),
});
