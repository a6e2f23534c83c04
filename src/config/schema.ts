import { z } from 'zod';
import {
  collection,
  duration,
  FOLDER_NAME,
  FOLDER_NAME_RIGHT,
  flag,
  folderUrl,
  oneOf,
  path,
  pattern,
  peerUrl,
  positivePattern,
  rate,
  size,
  text,
  wholeNumber,
} from './fields.js';
import { secretSchema } from './secret.js';

/** Ignored unless a folder says otherwise; shown to the user as the default of `ignore`. */
export const DEFAULT_IGNORE: readonly string[] = [
  // version control
  '.git',
  '.hg',
  '.svn',
  // editors: backups, swap files, autosaves and locks of vim, emacs and LibreOffice
  '*~',
  '.*.swp',
  '.*.swo',
  '.*.swx',
  '4913',
  '.#*',
  '\\#*#',
  '.~lock.*#',
  // files that are still being written
  '*.part',
  '*.crdownload',
  '*.tmp',
  // desktops
  '.DS_Store',
  'Thumbs.db',
];

const peer = z
  .strictObject({
    url: peerUrl().prefault('embedded').meta({
      description: 'The peer: `"embedded"`, or the base URL of a search service.',
      change: 'Give a base URL when you have a peer of your own; the embedded one needs nothing else.',
    }),
    dialect: oneOf(['standard']).default('standard').meta({
      description: 'How this kind of peer speaks the API.',
      change: 'Leave it; `standard` is the specification.',
    }),
    auth: z
      .strictObject({
        username: text('a user name without a colon', /^[^:\p{Cc}]+$/u).meta({
          description: 'The user that may push.',
          change: 'Use a user of the peer with administrator rights.',
        }),
        password: secretSchema.meta({
          description:
            'Where the password stands: `{ "env": "NAME" }`, `{ "file": "path" }` or `{ "credential": "name" }` ' +
            "(systemd's `LoadCredential=`); never the password itself.",
          change: 'Prefer `credential` under systemd, `file` (mode 0600) elsewhere.',
        }),
      })
      .optional()
      .meta({
        description: 'Credentials for the peer, sent only to `peer.url`; the embedded peer needs none.',
      }),
    tls: z
      .strictObject({
        ca: path('a PEM file with CA certificates').optional().meta({
          description: 'A PEM file with the certificates to trust instead of the system’s.',
          change: 'Set it when the peer’s certificate comes from your own authority.',
        }),
      })
      .prefault({})
      .meta({ description: 'For a peer with an https URL.' }),
    timeouts: z
      .strictObject({
        connect: duration('100ms', '10m').prefault('10s').meta({
          description: 'Longest wait for a connection (with TLS).',
          change: 'Raise it over slow or lossy links.',
        }),
        headers: duration('100ms', '1h').prefault('30s').meta({
          description: 'Longest wait for the first byte of an answer after the request was sent.',
          change: 'Raise it when the peer indexes before it answers (`push.synchronous`).',
        }),
        body: duration('100ms', '1h').prefault('60s').meta({
          description: 'Longest silence within an answer.',
          change: 'Rarely needed.',
        }),
        total: duration('1s', '1d').prefault('5m').meta({
          description: 'Longest time for one whole request.',
          change: 'Raise it for large files over slow links.',
        }),
      })
      .prefault({})
      .meta({ description: 'How long to wait for the peer before a request counts as failed.' }),
    maxAnswer: size('1 KiB', '1 GiB').prefault('16 MiB').meta({
      description: 'Largest answer that is read; a larger one is refused.',
      change: 'Raise it when a mirrored file or table is larger.',
    }),
    embedded: z
      .strictObject({
        dir: path('a directory').default('./data/peer').meta({
          description: 'Where the embedded peer keeps its index and its `admin-password`.',
          change: 'Put it on a disk with room for about twice your documents.',
        }),
        port: wholeNumber(0, 65_535).default(8386).meta({
          description: 'The port on loopback of the embedded peer and its search page; 0 takes any free one.',
          change: 'Change it when the port is in use.',
        }),
      })
      .prefault({})
      .meta({ description: 'Only for `peer.url` = `"embedded"`.' }),
  })
  .prefault({})
  .meta({ description: 'The search service that documents go to.' });

const rule = z
  .strictObject({
    match: positivePattern().meta({
      description: 'The files it is for: a pattern in gitignore syntax, relative to the folder.',
      change: 'The first rule that matches wins: put the special ones first.',
    }),
    collection: collection().optional().meta({
      description: 'The collection of these files instead of the folder’s.',
      change: 'Give either this or `skip`.',
    }),
    skip: z.literal(true, { error: 'true, or leave it out' }).optional().meta({
      description: '`true`: these files are passed over.',
      change: 'Give either this or `collection`.',
    }),
  })
  .meta({ oneOf: [{ required: ['collection'] }, { required: ['skip'] }] })
  .transform((given, context) => {
    const { match, collection: other, skip } = given;
    if (skip === true && other === undefined) return { match, skip };
    if (skip === undefined && other !== undefined) return { match, collection: other };
    context.issues.push({
      code: 'custom',
      message: 'either "collection" or "skip": true beside "match"',
      input: given,
    });
    return z.NEVER;
  });

const folder = z.strictObject({
  name: text(FOLDER_NAME_RIGHT, FOLDER_NAME).optional().meta({
    description: 'What commands and messages call the folder; the last name of `path` unless given.',
    change: 'Give one when two folders end in the same name.',
    default: 'last name of `path`',
  }),
  path: path('a folder to watch').meta({
    description: 'The folder on disk; peersync only reads there.',
    change: 'Required.',
  }),
  collection: collection().meta({
    description: 'The collection that its documents are tagged with.',
    change: 'Required. Letters, digits and `- _ . : / + @`; no spaces, no commas.',
  }),
  url: folderUrl().optional().meta({
    description:
      'The base of its documents’ URLs: a document’s URL is this and the percent-encoded relative path.',
    change:
      'Give the address where people can open the files, before the first push: it names the documents for ever.',
    default: '`file://` URL of `path`',
  }),
  include: z.array(pattern(), { error: 'a list of patterns' }).min(1).default(['*']).meta({
    description: 'The files that are taken: patterns in gitignore syntax.',
    change: 'Narrow it, such as `["*.md", "*.txt"]`, when only some kinds of files matter.',
  }),
  ignore: z
    .array(pattern(), { error: 'a list of patterns' })
    .default([...DEFAULT_IGNORE])
    .meta({
      description:
        'Files and directories that are left out: patterns in gitignore syntax, beside `.peersyncignore` files.',
      change: 'A list of your own replaces this one; repeat what you want to keep.',
    }),
  rules: z.array(rule, { error: 'a list of rules' }).default([]).meta({
    description: 'Other collections for some files, or none at all.',
    change: 'Use it when one tree feeds several collections.',
  }),
  settle: duration('0s', '1d').prefault('2s').meta({
    description: 'How long a file must be unchanged before it is read.',
    change: 'Raise it when programs write slowly, with pauses.',
  }),
  maxFileSize: size('1 B', '1 GiB').prefault('20 MiB').meta({
    description: 'Larger files are passed over.',
    change: 'Keep it below what the peer takes in one request.',
  }),
  followSymlinks: flag().default(false).meta({
    description: 'Whether symbolic links are followed; never out of the folder.',
    change: 'Set it when the tree is built of links.',
  }),
});

const folders = z
  .array(folder, {
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

const mirror = z
  .strictObject({
    root: path('a directory').default('./data/mirror').meta({
      description: 'The directory below which everything mirrored from the peer is written.',
      change: 'Point it where the readers of these files look.',
    }),
  })
  .prefault({})
  .meta({ description: 'What comes from the peer.' });

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
          description: 'The longest wait between two tries.',
          change: 'Shorten it when a peer that comes back must be noticed sooner.',
        }),
      })
      .prefault({})
      .meta({ description: 'How long to wait after a failure.' }),
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
    hold: duration('0s', '1d').prefault('0s').meta({
      description: 'How long an item must be seen before it counts as confirmed.',
      change: 'Raise it for a peer that shows documents and takes them back.',
    }),
  })
  .prefault({})
  .meta({ description: 'How it is made sure that documents are searchable.' });

const log = z
  .strictObject({
    level: oneOf(['debug', 'info', 'warn', 'error']).default('info').meta({
      description: 'What is written to the log.',
      change: '`debug` shows each decision; `--log-level` does the same for one run.',
    }),
  })
  .prefault({})
  .meta({ description: 'The log.' });

/**
 * The whole configuration: validation, defaults, JSON Schema and documentation come from this. Its output still has
 * relative paths and folders without a name or URL; loading completes them.
 */
export const configSchema = z.strictObject({
  $schema: z.string({ error: 'the address of a JSON Schema' }).optional().meta({
    description: 'Where an editor finds the JSON Schema of this file (`peersync schema` prints it).',
    change: 'For completion in editors.',
  }),
  peer,
  folders,
  watch,
  state,
  mirror,
  push,
  confirm,
  log,
});
