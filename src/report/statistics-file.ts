import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from '../lib/atomic.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';

const NAME = 'figures.json';

const sample = z.object({
  at: z.number(),
  confirmed: z.number(),
  accepted: z.number(),
  waiting: z.number(),
  p50Ms: z.number().optional(),
  p95Ms: z.number().optional(),
});

const term = z.tuple([z.number(), z.number(), z.number(), z.number()]).readonly();

/** What outlives a restart. Nothing but statistics depends on it. Times are steady ones of the run that wrote it. */
const kept = z.object({
  version: z.literal(2),
  /** How far the wall clock was ahead of steady time at the end; the next run begins with the wall clock. */
  wallAheadMs: z.number(),
  watches: z.record(z.string(), z.array(term).readonly()),
  samples: z.array(sample).readonly(),
  collections: z.record(z.string(), z.array(z.tuple([z.number(), z.string()]).readonly()).readonly()),
  lastConfirmedAt: z.number().optional(),
});

export type KeptStatistics = z.infer<typeof kept>;

/** Reads what an earlier run kept; undefined when there is nothing, or nothing that this version can use. */
export async function readStatistics(dir: string, log: Logger): Promise<KeptStatistics | undefined> {
  try {
    await removeUnfinished(dir);
    const { data } = kept.safeParse(JSON.parse(await readFile(join(dir, NAME), 'utf8')));
    if (data === undefined)
      log.debug({ dir }, 'the kept figures are damaged or of another version, and begin anew');
    return data;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      log.debug({ dir }, `the kept figures cannot be read and begin anew: ${messageOf(error)}`);
    return undefined;
  }
}

export async function writeStatistics(dir: string, statistics: KeptStatistics): Promise<void> {
  await writeFileAtomic(join(dir, NAME), `${JSON.stringify(statistics)}\n`);
}

/** A kill in the middle of a write leaves an unfinished file. */
async function removeUnfinished(dir: string): Promise<void> {
  for (const name of await readdir(dir))
    if (name.startsWith(`${NAME}.`) && name.endsWith('.tmp')) await rm(join(dir, name), { force: true });
}
