import { z } from 'zod';
import { optionalNumber, path, secretSchema, text } from './fields.js';
import { parseRedisUrl } from './url.js';

/** The steps that workers can do. */
export const SHARED_STEPS = ['extract', 'push'] as const;
export type SharedStep = (typeof SHARED_STEPS)[number];

const REDIS =
  'the address of a Redis or Valkey such as "redis://127.0.0.1:6379", "rediss://redis.example.org:6380/2" or "unix:///run/redis/redis.sock", without a password';

/** The section `fleet` of the configuration file. */
export const fleetSchema = z
  .strictObject({
    redis: text(REDIS)
      .refine((value) => parseRedisUrl(value) !== undefined, REDIS)
      .describe(
        'The Redis or Valkey that owner and workers share: `redis://`, `rediss://` (TLS) or `unix://`, perhaps with the number of a database as its path.',
      ),
    username: text('a user name of Redis without blanks', /^\S{1,100}$/)
      .optional()
      .describe('The user of Redis. The default is its user `default`.'),
    password: secretSchema
      .optional()
      .describe(
        'The place of the password of Redis, never the password itself, as in `peer.auth.password`. Set one: whoever can write to this Redis decides what becomes searchable.',
      ),
    ca: path('a PEM file with CA certificates')
      .optional()
      .describe('A PEM file with certificates to trust, for `rediss://`.'),
    prefix: text(
      'letters, digits, "-" and "_", such as "peersync"',
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,40}$/,
    )
      .default('peersync')
      .describe(
        'What all keys in Redis begin with. Two peersyncs that share a Redis need two prefixes. The workers of one have the same.',
      ),
    share: z
      .array(z.enum(SHARED_STEPS), { error: '["extract"] or ["extract", "push"]' })
      .min(1, { error: 'at least one of "extract" and "push"' })
      .default(['extract'])
      .describe(
        'The work that is shared: `extract` (the text of documents) and `push` (reading files and pushing them). Add `push` if files are on a disk that one machine cannot read fast enough. The peer then gets no more requests than before.',
      ),
    concurrency: optionalNumber(1, 64).describe(
      'The most documents that one worker reads at the same time. The default is that of `documents.concurrency` on the machine of the worker.',
    ),
  })
  .optional()
  .describe(
    'Other machines that help with the work (`peersync worker`), over a Redis. Without it, this machine does everything.',
  );
