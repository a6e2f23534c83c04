import { z } from 'zod';
import {
  directory,
  duration,
  flag,
  oneOf,
  optionalDuration,
  path,
  peerUrl,
  rate,
  secretSchema,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';
import { folderSchema } from './folder-schema.js';
import { mirrorSchema } from './mirror-schema.js';
import { isLoopback, parseListen } from './url.js';

// A description first says what the value is, and then when to change it. Editors show it, and
// src/config/README.md contains it.

const peer = section('The search service that documents go to.', {
  url: peerUrl()
    .prefault('embedded')
    .describe(
      'The peer: `"embedded"`, which needs nothing else, or the base URL of a search service.',
    ),
  dialect: oneOf(['auto', 'standard', 'yacy'], 'auto').describe(
    'How this kind of peer speaks the API: `standard` is the specification, `yacy` a YaCy peer, `auto` what the peer turns out to be. Leave it, unless something between here and the peer makes it look like another kind.',
  ),
  auth: z
    .strictObject({
      username: text('a user name without a colon', /^[^:\p{Cc}]+$/u).describe(
        'The user that may push: one of the peer with administrator rights.',
      ),
      password: secretSchema.describe(
        'Where the password stands: `{ "env": "NAME" }`, `{ "file": "path" }` or `{ "credential": "name" }` (systemd\'s `LoadCredential=`); never the password itself. Prefer `credential` under systemd, `file` (mode 0600) elsewhere.',
      ),
      allowBasic: flag(false).describe(
        'Whether the password may travel in plain text (Basic) over http to another machine: everyone between can read it. Over https, to this machine and by Digest it always may. Set it only for a network that you trust.',
      ),
    })
    .optional()
    .describe('Credentials for the peer, sent only to `peer.url`; the embedded peer needs none.'),
  tls: section('For a peer with an https URL.', {
    ca: path('a PEM file with CA certificates')
      .optional()
      .describe(
        "A PEM file with certificates to trust besides those that Node brings along. Set it when the peer's certificate comes from your own authority.",
      ),
  }),
  timeouts: section('How long to wait for the peer before a request counts as failed.', {
    connect: duration('100ms', '10m', '10s').describe(
      'Longest wait for a connection (with TLS). Raise it over slow or lossy links.',
    ),
    headers: duration('100ms', '1h', '30s').describe(
      'Longest wait for the first byte of an answer after the request was sent. Raise it when the peer indexes before it answers (`push.synchronous`).',
    ),
    body: duration('100ms', '1h', '60s').describe('Longest silence within an answer.'),
    total: duration('1s', '1d', '5m').describe(
      'Longest time for one whole request; twelve times as long for shared objects and tables, which stream. Raise it for large files over slow links.',
    ),
  }),
  maxAnswer: size('1 KiB', '1 GiB', '16 MiB').describe(
    'Largest answer that is held in memory; a larger one is refused. Raise it when the editor of a table, or a citation, is larger. What streams (shared objects, tables) has limits of its own: `maxSize`, `--max-size`.',
  ),
  embedded: section('Only for `peer.url` = `"embedded"`.', {
    dir: directory('./data/peer').describe(
      'Where the embedded peer keeps its index and its `admin-password`. Put it on a disk with room for about twice your documents.',
    ),
    port: wholeNumber(0, 65_535, 8386).describe(
      'The port on loopback of the embedded peer and its search page; 0 takes any free one. Change it when the port is in use.',
    ),
    requireAuth: flag(false).describe(
      'Whether everything on the embedded peer needs its administrator, the search page and shared objects too. Set it when other people have accounts on this machine.',
    ),
  }),
}).refine(({ url, dialect }) => url !== 'embedded' || dialect !== 'yacy', {
  path: ['dialect'],
  error:
    '"auto" or "standard", which the embedded peer speaks: give the URL of your YaCy peer in peer.url',
});

const watch = section('How changes on disk are noticed.', {
  hints: flag(true).describe(
    'Whether the file system is asked to tell of changes (inotify). Switch it off on network file systems, which tell nothing, and shorten `rescan`.',
  ),
  rescan: duration('1s', '30d', '1h').describe(
    'How often every folder is scanned as a whole, hints or not. Shorten it where hints do not work.',
  ),
});

const state = section('What survives a restart.', {
  dir: directory('./data/state').describe(
    'Where peersync remembers everything, with its lock and its control socket. Use a local disk; one directory for each running peersync.',
  ),
  keepGone: duration('0s', '3650d', '90d').describe(
    'How long a removed file is remembered. Shorten it when very many files come and go.',
  ),
});

const push = section('How documents are sent.', {
  maxItems: wholeNumber(1, 1000, 50).describe(
    'Most items in one request. Lower it when the peer is slow or refuses large requests.',
  ),
  maxBytes: size('1 KiB', '1 GiB', '8 MiB').describe(
    'Most content in one request; a larger file travels alone. Lower it when the peer answers 413.',
  ),
  linger: duration('0s', '1m', '250ms').describe(
    'How long a batch that is not full waits for more items. Raise it for fewer, larger requests; `0s` for the least delay.',
  ),
  requestsPerSecond: rate().describe(
    'Most push requests a second: `20` unless given, and no limit for the embedded peer. Lower it to spare the peer.',
  ),
  concurrency: wholeNumber(1, 64, 4).describe(
    'Most push requests at the same time; adapts below this. Raise it for a fast peer far away.',
  ),
  attempts: wholeNumber(1, 100, 5).describe(
    'How often a version is tried before it is quarantined. Raise it when the peer is known to lose documents.',
  ),
  synchronous: flag(false).describe(
    'Asks the peer to index before it answers. For few documents that must be searchable at once; slow.',
  ),
  commit: flag(false).describe(
    'Asks the peer to make each push visible at once. As for `synchronous`; costly for the peer.',
  ),
  backoff: section('How long one file waits after its push failed.', {
    min: duration('10ms', '1h', '1s').describe(
      'The wait after the first failure; it doubles from there.',
    ),
    max: duration('10ms', '1d', '5m').describe(
      'The longest wait between two pushes of one file that fails. A peer that is away is tried at most a minute apart whatever this is.',
    ),
  }).refine(({ min, max }) => min <= max, {
    path: ['min'],
    error: 'at most push.backoff.max, "5m" unless given',
  }),
});

const confirm = section('How it is made sure that documents are searchable.', {
  timeout: duration('1s', '30d', '10m').describe(
    'How long an accepted item may stay unseen before it is pushed again. Raise it for a peer with a long indexing queue.',
  ),
  requestsPerSecond: rate().describe(
    'Most look-ups a second: `200` unless given, and no limit for the embedded peer. Lower it to spare the peer.',
  ),
  concurrency: wholeNumber(1, 64, 8).describe(
    'Most look-ups at the same time; adapts below this. Raise it for a fast peer far away.',
  ),
  maxInterval: duration('100ms', '1d', '1m').describe(
    'Longest pause between two look-ups of one item. Raise it with `timeout`.',
  ),
  hold: optionalDuration('0s', '1d').describe(
    'How long after its push an item must be seen to count as confirmed; a later first sight must hold as long. `"0s"` unless given, `"20s"` for a YaCy peer. Raise it for a peer that shows documents and takes them back later than that.',
  ),
}).refine(({ hold = -1, timeout }) => hold < timeout, {
  path: ['hold'],
  error: 'less than confirm.timeout, "10m" unless given: nothing could be confirmed',
});

const audit = section('How it is noticed that the peer lost what it had.', {
  every: duration('0s', '3650d', '7d').describe(
    'In what time every confirmed item is looked up once more; what vanished from the peer is pushed again. Of a YaCy every removed item, too: what is back is removed again. `0s`: never. After the state lost changes everything is looked up once at once, whatever this is. Shorten it for a peer that crashes or is cleaned up often; `peersync verify` looks at once.',
  ),
});

const LISTEN = '"off", or an IP address and a port such as "127.0.0.1:8385" or "[::1]:8385"';

const status = section('The status page and what monitoring reads.', {
  listen: text(LISTEN)
    .refine((value) => value === 'off' || parseListen(value) !== undefined, LISTEN)
    .default('127.0.0.1:8385')
    .describe(
      'Where the status page, `/metrics`, `/healthz` and `/readyz` are served; `"off"`: nowhere. Change the port when it is in use; an address that others reach needs a `token`.',
    ),
  token: secretSchema
    .optional()
    .describe(
      'Where the token stands that the page asks for. Needed, with at least 16 characters, when `listen` is not a loopback address; useful when others have accounts on this machine.',
    ),
}).refine(({ listen, token }) => token !== undefined || !isOpen(listen), {
  path: ['listen'],
  error:
    'a loopback address such as "127.0.0.1:8385", or a status.token beside it: others could reach the page',
});

function isOpen(listen: string): boolean {
  const place = parseListen(listen);
  return place !== undefined && !isLoopback(place);
}

const alerts = section(
  'When peersync raises an alarm by itself: in `status`, on the page and in the metrics.',
  {
    timeToSearch: optionalDuration('1s', '30d').describe(
      'An alarm is raised for a collection when 5 % of its files of the last hour took longer from at rest to confirmed, or one waits longer. Set it to what you promise your users.',
    ),
  },
);

const log = section('What peersync says while it runs.', {
  level: oneOf(['debug', 'info', 'warn', 'error'], 'info').describe(
    'What is written to the log. `debug` shows each decision; `--log-level` does the same for one run.',
  ),
});

/**
 * The schema of the whole configuration. Validation, defaults, JSON Schema and documentation come
 * from it. Its output may still have relative paths, and folders without a name or URL: loading
 * completes them.
 */
export const configSchema = z
  .strictObject({
    $schema: z
      .string({ error: 'the address of a JSON Schema' })
      .optional()
      .describe(
        'Where an editor finds the JSON Schema of this file (`peersync schema` prints it).',
      ),
    peer,
    folders: z
      .array(folderSchema, {
        error:
          'a list of at least one folder, such as [{ "path": "./inbox", "collection": "inbox" }]',
      })
      .min(1)
      .describe('The watched folders; their paths and their URLs must not overlap.'),
    watch,
    state,
    mirror: mirrorSchema,
    push,
    confirm,
    audit,
    status,
    alerts,
    log,
  })
  .meta({ title: 'peersync configuration' });

/** The part of a JSON Schema that we read. */
export interface JsonSchema {
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly pattern?: string;
  readonly anyOf?: readonly JsonSchema[];
}

/** Returns the JSON Schema (draft 2020-12) of the configuration file. */
export function jsonSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: 'input' }) as JsonSchema;
}

/**
 * Returns the schema of the key at `path`, such as `['folders', 0, 'settle']`; undefined for an
 * unknown key.
 */
export function describeKey(
  root: JsonSchema,
  path: readonly PropertyKey[],
): JsonSchema | undefined {
  let node: JsonSchema | undefined = root;
  for (const step of path)
    node = typeof step === 'number' ? node?.items : node?.properties?.[String(step)];
  return node;
}
