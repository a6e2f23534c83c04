import { z } from 'zod';
import { duration, flag, oneOf, path, rate, size, wholeNumber } from './fields.js';
import { folderSchema } from './schema-folder.js';
import { mirrorSchema } from './schema-mirror.js';
import { peerSchema } from './schema-peer.js';
import { alertsSchema, statusSchema } from './schema-service.js';

const folders = z
  .array(folderSchema, {
    error: 'a list of at least one folder, such as [{ "path": "./inbox", "collection": "inbox" }]',
  })
  .min(1)
  .meta({ description: 'The watched folders; their paths and their URLs must not overlap.' });

const watch = z
  .strictObject({
    hints: flag().default(true).meta({
      description: 'Whether the file system is asked to tell of changes (inotify).',
      change: 'Switch it off on network file systems, which tell nothing, and shorten `rescan`.',
    }),
    rescan: duration('1s', '30d').prefault('1h').meta({
      description: 'How often every folder is scanned as a whole, hints or not.',
      change: 'Shorten it where hints do not work.',
    }),
  })
  .prefault({})
  .meta({ description: 'How changes on disk are noticed.' });

const state = z
  .strictObject({
    dir: path('a directory').default('./data/state').meta({
      description: 'Where peersync remembers everything, with its lock and its control socket.',
      change: 'Use a local disk; one directory for each running peersync.',
    }),
    keepGone: duration('0s', '3650d').prefault('90d').meta({
      description: 'How long a removed file is remembered.',
      change: 'Shorten it when very many files come and go.',
    }),
  })
  .prefault({})
  .meta({ description: 'What survives a restart.' });

const push = z
  .strictObject({
    maxItems: wholeNumber(1, 1000).default(50).meta({
      description: 'Most items in one request.',
      change: 'Lower it when the peer is slow or refuses large requests.',
    }),
    maxBytes: size('1 KiB', '1 GiB').prefault('8 MiB').meta({
      description: 'Most content in one request; a larger file travels alone.',
      change: 'Lower it when the peer answers 413.',
    }),
    linger: duration('0s', '1m').prefault('250ms').meta({
      description: 'How long a batch that is not full waits for more items.',
      change: 'Raise it for fewer, larger requests; `0s` for the least delay.',
    }),
    requestsPerSecond: rate().default(20).meta({
      description: 'Most push requests a second.',
      change: 'Lower it to spare the peer.',
    }),
    concurrency: wholeNumber(1, 64).default(4).meta({
      description: 'Most push requests at the same time; adapts below this.',
      change: 'Raise it for a fast peer far away.',
    }),
    attempts: wholeNumber(1, 100).default(5).meta({
      description: 'How often a version is tried before it is quarantined.',
      change: 'Raise it when the peer is known to lose documents.',
    }),
    synchronous: flag().default(false).meta({
      description: 'Asks the peer to index before it answers.',
      change: 'For few documents that must be searchable at once; slow.',
    }),
    commit: flag().default(false).meta({
      description: 'Asks the peer to make each push visible at once.',
      change: 'As for `synchronous`; costly for the peer.',
    }),
    backoff: z
      .strictObject({
        min: duration('10ms', '1h').prefault('1s').meta({
          description: 'The wait after the first failure; it doubles from there.',
          change: 'Rarely needed.',
        }),
        max: duration('10ms', '1d').prefault('5m').meta({
          description: 'The longest wait between two pushes of one file that fails.',
          change: 'Rarely needed; a peer that is away is tried at most a minute apart whatever this is.',
        }),
      })
      .prefault({})
      .meta({ description: 'How long one file waits after its push failed.' }),
  })
  .prefault({})
  .meta({ description: 'How documents are sent.' });

const confirm = z
  .strictObject({
    timeout: duration('1s', '30d').prefault('10m').meta({
      description: 'How long an accepted item may stay unseen before it is pushed again.',
      change: 'Raise it for a peer with a long indexing queue.',
    }),
    requestsPerSecond: rate().default(200).meta({
      description: 'Most look-ups a second.',
      change: 'Lower it to spare the peer.',
    }),
    concurrency: wholeNumber(1, 64).default(8).meta({
      description: 'Most look-ups at the same time; adapts below this.',
      change: 'Raise it for a fast peer far away.',
    }),
    maxInterval: duration('100ms', '1d').prefault('1m').meta({
      description: 'Longest pause between two look-ups of one item.',
      change: 'Raise it with `timeout`.',
    }),
    hold: duration('0s', '1d').optional().meta({
      description:
        'How long after its push an item must be seen to count as confirmed; a later first sight must hold as long.',
      change: 'Raise it for a peer that shows documents and takes them back later than that.',
      otherwise: '`"0s"`; `"20s"` for a YaCy peer',
    }),
  })
  .prefault({})
  .meta({ description: 'How it is made sure that documents are searchable.' });

const audit = z
  .strictObject({
    every: duration('0s', '3650d').prefault('7d').meta({
      description:
        'In what time every confirmed item is looked up once more; what vanished from the peer is pushed again. `0s`: never.',
      change: 'Shorten it for a peer that crashes or is cleaned up often; `peersync verify` looks at once.',
    }),
  })
  .prefault({})
  .meta({ description: 'How it is noticed that the peer lost what it had.' });

const log = z
  .strictObject({
    level: oneOf(['debug', 'info', 'warn', 'error']).default('info').meta({
      description: 'What is written to the log.',
      change: '`debug` shows each decision; `--log-level` does the same for one run.',
    }),
  })
  .prefault({})
  .meta({ description: 'What peersync says while it runs.' });

/**
 * The whole configuration: validation, defaults, JSON Schema and documentation come from this. Its output still has
 * relative paths and folders without a name or URL; loading completes them.
 */
export const configSchema = z.strictObject({
  $schema: z.string({ error: 'the address of a JSON Schema' }).optional().meta({
    description: 'Where an editor finds the JSON Schema of this file (`peersync schema` prints it).',
    change: 'For completion in editors.',
  }),
  peer: peerSchema,
  folders,
  watch,
  state,
  mirror: mirrorSchema,
  push,
  confirm,
  audit,
  status: statusSchema,
  alerts: alertsSchema,
  log,
});
