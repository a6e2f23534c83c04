import { z } from 'zod';
import type { Deviation, Verified, Verifying } from '../uplink/verify.js';
import { manyLines } from './request.js';

const deviation: z.ZodType<Deviation> = z.object({
  kind: z
    .enum(['lost', 'back'])
    .describe('Confirmed and not shown any more; removed and shown again.'),
  file: z.string(),
  url: z.string(),
  why: z.string(),
  repaired: z.boolean(),
});

const verified: z.ZodType<Verified> = z.object({
  kind: z.literal('verified'),
  checked: z.number(),
  removed: z.number().describe('How many of those were removed items.'),
  lost: z.number(),
  back: z.number(),
  failed: z.number(),
});

const verifying: z.ZodType<Verifying> = z.object({
  kind: z.literal('verifying'),
  checked: z.number(),
  of: z.number().exactOptional(),
  lost: z.number(),
  back: z.number(),
});

/** The lines that `peersync verify --json` prints. */
export const verifyOutput = z.union([deviation, verified]);

/** Looks items up in the peer once more: a random sample, or all of them. */
export const verifyItems = manyLines({
  name: 'verify',
  needs: 'daemon',
  question: z.object({
    /** The number of items. @default all */
    sample: z.number().optional(),
    /** Whether lost documents are pushed again, and documents that are back are removed again. */
    repair: z.boolean().default(false),
  }),
  line: z.union([deviation, verified, verifying]),
  async *lots({ live }, { repair, sample }) {
    // Loaded here: a command that asks a daemon starts faster without.
    const { itemsToVerify, verify } = await import('../uplink/verify.js');
    const { clock, current, log, parts } = live;
    const { client: peer, dialect, queue, state } = parts;
    const { items, of } = await itemsToVerify(state, sample);
    const deps = { state, queue, peer, dialect, settings: current.config, clock, log };
    for await (const line of verify(items, deps, { lane: 'interactive', repair, of })) yield [line];
  },
});
