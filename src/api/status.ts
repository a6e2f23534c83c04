import { z } from 'zod';
import { LANES } from '../queue/options.js';
import type { QueueStatus } from '../queue/request-queue.js';
import type { FleetReport } from '../report/fleet.js';
import type { StatisticsReport } from '../report/statistics.js';
import type { StatusReport } from '../report/status-report.js';
import type { MassDeletion } from '../watch/mass-deletions.js';
import type { FolderStatus } from '../watch/watcher.js';
import { NOTHING, oneLine } from './request.js';
import {
  condition,
  counts,
  failure,
  lastingFailure,
  mirrorReport,
  paused,
  readingProgress,
  scanReport,
} from './shapes.js';

export const massDeletion: z.ZodType<MassDeletion> = z.object({
  files: z.number(),
  of: z.number(),
  examples: z.array(z.string()),
  since: z.number(),
  before: z.number(),
});

const lane = z.object({
  started: z.number(),
  failed: z.number(),
  running: z.number(),
  waiting: z.number(),
  p50LatencyMs: z.number().optional(),
});

const queue: z.ZodType<QueueStatus> = z.object({
  circuit: z.object({
    state: z.enum(['closed', 'open', 'half-open']),
    since: z.number(),
    downSince: z.number().exactOptional(),
    reason: z
      .object({
        kind: z.enum(['unreachable', 'failing', 'denied', 'weak']),
        code: z.string().optional(),
        message: z.string(),
        hint: z.string().optional(),
      })
      .exactOptional(),
    held: z.array(z.enum(LANES)),
    nextProbeAt: z.number().optional(),
    tries: z.number(),
  }),
  retryAfterUntil: z.number().optional(),
  paused: paused.optional(),
  concurrency: z.object({ running: z.number(), limit: z.number(), max: z.number() }),
  lanes: z.record(z.enum(LANES), lane),
});

const percentiles = z.object({
  count: z.number(),
  p50Ms: z.number().optional(),
  p95Ms: z.number().optional(),
  p99Ms: z.number().optional(),
});

const figures: z.ZodType<StatisticsReport> = z.object({
  timeToSearch: z.array(
    z.object({
      collection: z.string(),
      hour: percentiles,
      day: percentiles,
      waiting: z.number(),
      oldestSince: z.number().optional(),
    }),
  ),
  confirmedPerSecond: z.number(),
  lastConfirmedAt: z.number().optional(),
  alerts: z.array(lastingFailure.extend({ collection: z.string() })),
});

const folderStatus: z.ZodType<FolderStatus> = z.object({
  name: z.string(),
  state: z.enum(['scanning', 'watching', 'unwatched', 'held', 'degraded']),
  since: z.number(),
  failure: failure.optional(),
  lastScan: scanReport.and(z.object({ at: z.number() })).optional(),
  directoriesWatched: z.number(),
  settling: z.number(),
  unnamedProblems: z.number().optional(),
});

const worker = z.object({
  id: z.string(),
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  build: z.string(),
  idle: z
    .discriminatedUnion('reason', [
      z.object({ reason: z.literal('build') }),
      z.object({ reason: z.literal('folders'), folders: z.array(z.string()) }),
      z.object({ reason: z.literal('programs'), abilities: z.array(z.string()) }),
      z.object({ reason: z.literal('stopping') }),
    ])
    .optional()
    .describe('Why it takes no jobs.'),
  noPush: z
    .enum(['peer', 'urls', 'denied', 'unreachable'])
    .optional()
    .describe(
      'Why it does not push, or did not at its last attempt: another `peer.url` or `url` of a folder, or the peer did not let it in or was not reached.',
    ),
  slots: z.number().describe('The most jobs at a time.'),
  active: z.number(),
  done: z.number(),
  failed: z.number(),
  perSecond: z.number().optional().describe('Documents, over the last minute.'),
  seenAt: z.number(),
});

const fleet: z.ZodType<FleetReport> = z.object({
  address: z.string(),
  prefix: z.string(),
  build: z.string(),
  redis: z.enum(['connecting', 'there', 'loading', 'away']),
  failure: z
    .object({
      kind: z.enum(['redis', 'loading', 'owned']),
      message: z.string(),
      hint: z.string(),
      since: z.number(),
    })
    .optional(),
  waiting: z.number(),
  oldestSince: z.number().optional(),
  active: z.number(),
  workers: z.array(worker),
  lost: z.array(z.object({ id: z.string(), host: z.string(), seenAt: z.number() })),
  noneSince: z.number().optional(),
});

const statusLine: z.ZodType<StatusReport> = z.object({
  version: z.string(),
  running: z.boolean(),
  pid: z.number().optional(),
  startedAt: z.number().optional(),
  wallAheadMs: z.number().optional(),
  uplink: z
    .object({
      inFlight: z.number(),
      confirming: z.number(),
      timeToVisibleMs: z.number().optional(),
      documents: z
        .object({
          waiting: z.number(),
          reading: z.number(),
          longest: z.object({ file: z.string(), ...readingProgress }).exactOptional(),
          perMinute: z
            .object({ documents: z.number(), pages: z.number() })
            .exactOptional()
            .describe('The average of the last minutes.'),
        })
        .optional(),
      removalsFailing: z
        .object({ documents: z.number(), message: z.string(), hint: z.string() })
        .optional(),
      readersFailure: lastingFailure.optional(),
    })
    .optional(),
  figures: figures.optional(),
  configuration: z
    .object({
      takenUpAt: z.number(),
      file: z.string().optional(),
      refused: failure.and(z.object({ at: z.number() })).optional(),
    })
    .optional(),
  paused: paused.optional(),
  restart: z.array(z.string()).optional(),
  page: z.string().optional(),
  peer: z.object({
    url: z.string(),
    embedded: z.boolean().optional(),
    dialect: z.string().optional(),
    queue: queue.optional(),
  }),
  fleet: fleet.optional(),
  items: counts,
  pace: z.object({ perSecond: z.number(), leftMs: z.number().optional() }).optional(),
  folders: z.array(
    z.object({
      name: z.string(),
      path: z.string(),
      collection: z.string(),
      items: counts,
      watch: folderStatus.optional(),
      massDeletion: massDeletion.optional(),
    }),
  ),
  formerFolders: z.array(
    z.object({
      name: z.string(),
      documents: z.number(),
      message: z.string(),
      hint: z.string(),
    }),
  ),
  unseenAddresses: z.array(lastingFailure),
  mirrorRoot: z.string(),
  mirrors: z.array(mirrorReport),
  quarantined: z
    .array(z.object({ file: z.string(), code: z.string(), message: z.string() }))
    .describe('The first ones.'),
  problems: z.array(z.object({ folder: z.string(), path: z.string(), failure, since: z.number() })),
  truncated: z.record(z.string(), z.object({ total: z.number(), shown: z.number() })).optional(),
  stateFailure: failure.optional(),
  diskFailure: lastingFailure.extend({ path: z.string() }).optional(),
  stuck: z.array(z.object({ name: z.string(), what: z.string(), since: z.number() })),
  repairs: z.array(z.string()),
  repairAudit: z.object({ since: z.number(), checked: z.number(), of: z.number() }).optional(),
  conditions: z.array(condition).describe('What a person should know, the most severe first.'),
});

/** The state of everything: folders, items, the peer, mirrors and conditions. */
export const status = oneLine({
  name: 'status',
  needs: 'reading',
  question: NOTHING,
  line: statusLine,
  answer: async ({ config, live, view }) => {
    if (live !== undefined) return live.status();
    // Loaded here: a command that asks a daemon starts faster without.
    const { statusReport } = await import('../report/status.js');
    return statusReport(config, view, undefined);
  },
});
