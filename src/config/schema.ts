import { z } from 'zod';
import { DEFAULT_IGNORE } from '../lib/default-ignore.js';
import {
  collection,
  directory,
  duration,
  FOLDER_NAME,
  FOLDER_NAME_RIGHT,
  flag,
  folderUrl,
  oneOf,
  optionalDuration,
  optionalNumber,
  path,
  pattern,
  peerUrl,
  rate,
  secretSchema,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';
import { fleetSchema } from './fleet-schema.js';
import { mirrorSchema } from './mirror-schema.js';
import { isLoopback, parseListen } from './url.js';

const rule = z
  .strictObject({
    match: pattern()
      .refine(
        (value) => !value.startsWith('!'),
        'a pattern without "!" in front (write "\\\\!" for a name that begins with "!")',
      )
      .describe(
        'The files that the rule applies to: a pattern in gitignore syntax, relative to the folder. The first rule that matches wins, so put the special ones first.',
      ),
    collection: collection()
      .optional()
      .describe(
        "The collection of these files, instead of the folder's. Give either this or `skip`.",
      ),
    skip: z
      .literal(true, { error: 'true (or leave the key out)' })
      .optional()
      .describe('`true` skips these files.'),
  })
  .meta({ oneOf: [{ required: ['collection'] }, { required: ['skip'] }] })
  .refine(
    (given) => (given.skip === undefined) !== (given.collection === undefined),
    'either "collection" or "skip": true beside "match"',
  );

/** One entry of `folders` in the configuration file. */
const folderSchema = z.strictObject({
  name: text(FOLDER_NAME_RIGHT, FOLDER_NAME)
    .optional()
    .describe(
      'The name of the folder in commands and messages. The default is the last part of `path`. Set it when two paths end in the same name.',
    ),
  path: path('a folder to watch').describe(
    'The folder on disk. peersync only reads there. If it does not exist yet, the folder is held until it does. It may be a symbolic link. If the link is later pointed elsewhere, the folder is held until `rescan FOLDER`.',
  ),
  collection: collection().describe(
    'The collection that its documents are tagged with: letters, digits and `- _ . : / + @`. Spaces and commas are not allowed, because the peer reads a comma as a separator.',
  ),
  url: folderUrl()
    .optional()
    .describe(
      "The base of the documents' URLs. The URL of a document is this base and the percent-encoded relative path. The default is the `file://` URL of `path`. Set it to the address where people can open the files, before the first push: it names the documents for ever.",
    ),
  include: z
    .array(pattern(), { error: 'a list of at least one pattern, such as ["*"]' })
    .min(1)
    .default(['*'])
    .describe(
      'The files that are taken: patterns in gitignore syntax. Set it, for example to `["*.md", "*.txt"]`, when only some kinds of files matter.',
    ),
  ignore: z
    .array(pattern(), { error: 'a list of patterns' })
    .default([])
    .describe(
      'Files and directories that are left out, in addition to `.peersyncignore` files and `ignoreDefaults`: patterns in gitignore syntax. A pattern with `!` in front lets in what the defaults leave out, such as `"!.env.example"`.',
    ),
  ignoreDefaults: flag(true).describe(
    `Whether the usual secrets, caches and files of editors are left out. These are private keys (by name and by content), and in upper and lower case ${DEFAULT_IGNORE.map((pattern) => `\`${pattern}\``).join(' ')}. Switch it off only where nothing in the folder is secret.`,
  ),
  rules: z
    .array(rule, { error: 'a list of rules' })
    .default([])
    .describe(
      'Rules that give some files another collection, or skip them. Use them when one tree feeds several collections.',
    ),
  settle: duration('0s', '1d', '2s').describe(
    'How long a file must be unchanged before it is read. Raise it when programs write slowly, with pauses.',
  ),
  maxFileSize: size('1 B', '1 GiB', '20 MiB').describe(
    'The largest file that is pushed. Larger files are skipped. Keep it below what the peer takes in one request.',
  ),
  extract: z
    .enum(['auto', 'always'], { error: '"auto" or "always"' })
    .default('auto')
    .describe(
      'When peersync extracts the text of PDF, office documents, EPUB, RTF, e-mail, mail folders and archives and sends that. `always` does so for every peer. `auto` does so for a peer that takes only text. For a YaCy, `auto` extracts only what a YaCy reads badly (e-mail, mail folders, archives, EPUB, Excel, PowerPoint), and sends the other files as they are.',
    ),
  onDelete: z
    .enum(['remove', 'keep'], { error: '"remove" or "keep"' })
    .optional()
    .describe(
      'What happens to the document when its file is removed, or becomes empty, binary or too large: `remove` removes it from the peer, `keep` leaves it there. The default is `remove` with the embedded peer, also when `peersync peer` runs it as a process of its own. With any other peer it is `keep`.',
    ),
  followSymlinks: flag(false).describe(
    'Whether symbolic links are followed, though never out of the folder. Set it when the tree is built of links.',
  ),
});

// A description first says what the value is, and then when to change it. Editors show it, and
// src/config/README.md contains it.

/** The values of `peer.dialect`: `auto`, and the names in `peer/dialects/dialects.ts`. */
export const DIALECT_NAMES = ['auto', 'standard', 'yacy'] as const;
/** The values of `peer.dialect` with the embedded peer. */
const EMBEDDED_DIALECTS: ReadonlySet<(typeof DIALECT_NAMES)[number]> = new Set([
  'auto',
  'standard',
]);

const peer = section('The search service that documents go to.', {
  url: peerUrl()
    .prefault('embedded')
    .describe('The peer: `"embedded"` for the built-in one, or the base URL of a search service.'),
  dialect: oneOf(DIALECT_NAMES, 'auto').describe(
    'The dialect of the API that the peer speaks: `standard` is the specification, `yacy` is a YaCy peer, and `auto` detects it. Change it only if something between here and the peer makes the peer look like another kind.',
  ),
  auth: z
    .strictObject({
      username: text('a user name without a colon', /^[^:\p{Cc}]+$/u).describe(
        'A user of the peer with administrator rights.',
      ),
      password: secretSchema.describe(
        'The place of the password, never the password itself: `{ "env": "NAME" }`, `{ "file": "path" }` or `{ "credential": "name" }` (systemd\'s `LoadCredential=`). Prefer `credential` under systemd, and `file` (mode 0600) elsewhere.',
      ),
      allowBasic: flag(false).describe(
        'Whether peersync may send the password in plain text (Basic) over http to another machine, where anyone on the way can read it. Over https, to this machine and by Digest, it is sent in any case. Set it only for a network that you trust.',
      ),
    })
    .optional()
    .describe(
      'The credentials for the peer. They are sent only to `peer.url`. The embedded peer needs none.',
    ),
  tls: section('For a peer with an https URL.', {
    ca: path('a PEM file with CA certificates')
      .optional()
      .describe(
        "A PEM file with certificates to trust, in addition to those of Node. Set it when the peer's certificate comes from your own authority.",
      ),
  }),
  timeouts: section('How long to wait for the peer before a request counts as failed.', {
    connect: duration('100ms', '10m', '10s').describe(
      'The longest wait for a connection, TLS included. Raise it on slow or lossy links.',
    ),
    headers: duration('100ms', '1h', '30s').describe(
      'The longest wait for the first byte of an answer after the request was sent. Raise it when the peer indexes before it answers (`push.synchronous`).',
    ),
    body: duration('100ms', '1h', '60s').describe('The longest pause within an answer.'),
    total: duration('1s', '1d', '5m').describe(
      'The longest time for one whole request. Shared objects and tables, which stream, have twelve times as long. Raise it for large files over slow links.',
    ),
  }),
  maxAnswer: size('1 KiB', '1 GiB', '16 MiB').describe(
    'The largest answer that is read into memory. A larger one is refused. Raise it when the editor page of a table, or a citation, is larger. Shared objects and tables stream and have limits of their own: `maxSize`, `--max-size`.',
  ),
  embedded: section('Only for `peer.url` = `"embedded"`.', {
    dir: directory('./data/peer').describe(
      'The directory for the index of the embedded peer and its `admin-password`. Put it on a disk with room for about twice your documents.',
    ),
    port: wholeNumber(0, 65_535, 8386).describe(
      'The loopback port of the embedded peer and its search page. 0 takes any free port. Change it when the port is in use.',
    ),
    requireAuth: flag(false).describe(
      'Whether everything on the embedded peer needs the password of its administrator, including the search page and shared objects. Set it when other people have accounts on this machine.',
    ),
    originals: flag(true).describe(
      'Whether the pages of the embedded peer open the files of confirmed documents, read-only. Everyone who may search sees the whole files then, not only their text. Set it to false where the text is enough.',
    ),
  }),
}).refine(({ url, dialect }) => url !== 'embedded' || EMBEDDED_DIALECTS.has(dialect), {
  path: ['dialect'],
  error:
    '"auto" or "standard", which the embedded peer speaks (for a YaCy, give its URL in peer.url)',
});

const watch = section('How changes on disk are noticed.', {
  hints: flag(true).describe(
    'Whether peersync uses file system events (inotify). Switch it off on network file systems, which send none, and shorten `rescan`.',
  ),
  rescan: duration('1s', '30d', '1h').describe(
    'The time between two full scans of every folder, with and without events. Shorten it where events do not work.',
  ),
});

const state = section('The state on disk, which survives a restart.', {
  dir: directory('./data/state').describe(
    'The directory for the state, with its lock and its control socket. Use a local disk, and one directory for each running peersync.',
  ),
  keepGone: duration('0s', '3650d', '90d').describe(
    'How long the state keeps a removed file. Shorten it when very many files come and go.',
  ),
});

const push = section('How documents are pushed.', {
  maxItems: wholeNumber(1, 1000, 50).describe(
    'The most files in one batch. Lower it when the peer is slow or refuses large requests.',
  ),
  maxBytes: size('1 KiB', '1 GiB', '8 MiB').describe(
    'The most content in one batch. A larger file travels alone. Lower it when the peer answers 413.',
  ),
  linger: duration('0s', '1m', '250ms').describe(
    'How long a batch that is not full waits for more files. Raise it for fewer and larger requests. `0s` gives the least delay.',
  ),
  requestsPerSecond: rate().describe(
    'The most push requests a second. The default is `20`, and no limit for the embedded peer. Lower it to spare the peer.',
  ),
  concurrency: wholeNumber(1, 64, 4).describe(
    'The most push requests at the same time. peersync adapts below this limit. Raise it for a fast peer far away.',
  ),
  attempts: wholeNumber(1, 100, 5).describe(
    'How often a version is pushed before it is quarantined. Raise it when the peer is known to lose documents.',
  ),
  synchronous: flag(false).describe(
    'Whether the peer is asked to index before it answers. This is slow. Set it for few documents that must be searchable at once.',
  ),
  commit: flag(false).describe(
    'Whether the peer is asked to make each push visible at once. This is costly for the peer. Set it as you would set `synchronous`.',
  ),
  backoff: section('How long one file waits for a retry after its push failed.', {
    min: duration('10ms', '1h', '1s').describe(
      'The wait after the first failure. It doubles with each further one.',
    ),
    max: duration('10ms', '1d', '5m').describe(
      'The longest wait between two pushes of one file that fails. An unreachable peer is tried at least once a minute, regardless of this.',
    ),
  }).refine(({ min, max }) => min <= max, {
    path: ['min'],
    error: 'at most push.backoff.max ("5m" by default)',
  }),
});

const documents = section('How documents (PDF, office documents and the like) are read.', {
  concurrency: optionalNumber(1, 64).describe(
    'The most documents that are read at the same time, each by a process of its own with up to 352 MiB of memory. The default is one less than the processor cores, at least 1, and no more than fit into half of the memory. Lower it to leave more of the machine to others.',
  ),
  cacheSize: size('128 MiB', '1 TiB', '1 GiB').describe(
    'The most disk space for the texts of documents, which are kept in `extracts` below `state.dir`, so that no document is read twice. Those that were not used for longest are removed. Raise it when you move large collections of documents about.',
  ),
  ocr: oneOf(['auto', 'off'], 'auto').describe(
    'Whether scans and pictures are read by OCR. `auto` does so if `tesseract` is installed, and `pdftoppm` for scans in PDF (Debian: `tesseract-ocr` and `poppler-utils`). A page takes 2 to 3 seconds of a processor core. Set `off` for folders of photographs.',
  ),
  languages: z
    .array(
      text('a language as tesseract names it, such as "eng" or "deu"', /^[A-Za-z0-9_/-]{2,40}$/),
    )
    .min(1, { error: 'at least one language' })
    .max(10, { error: 'at most 10 languages' })
    .optional()
    .describe(
      'The languages of scans and pictures, as tesseract names them: `["deu", "eng"]`. The default is those of the locale that are installed, or else `eng`. Each one makes OCR slower. `tesseract --list-langs` prints those that are installed.',
    ),
  dpi: wholeNumber(70, 1200, 300).describe(
    'The resolution in which pages of a PDF are drawn for OCR, in dots per inch. Raise it for tiny print.',
  ),
  maxPages: wholeNumber(1, 100_000, 1000).describe(
    'The most pages of one document that are read by OCR. The others are left out, and `peersync why PATH` says so.',
  ),
  pageTimeout: duration('1s', '1h', '2m').describe(
    'The longest time for one page of OCR, and for one document that another program reads. Other pages are read without it. Raise it for large maps and drawings.',
  ),
  commands: z
    .record(
      text('an extension such as ".dwg"', /^\.[A-Za-z0-9_+-]{1,20}$/),
      z
        .tuple([text('the name or the path of a program')], z.string({ error: 'an argument' }))
        .refine(([, ...args]) => args.some((word) => word.includes('{file}')), {
          error: 'an argument with {file}, which stands for the path of the file',
        }),
    )
    .default({})
    .describe(
      'Programs that write the text of a kind of file to their standard output, by extension: `{ ".dwg": ["dwg2text", "{file}"] }`. `{file}` stands for the path of a copy. No shell is involved. They come before the readers that are built in.',
    ),
});

const confirm = section('How peersync confirms that documents are searchable.', {
  timeout: duration('1s', '30d', '10m').describe(
    'How long the peer may take to show an accepted file before it is pushed again. Raise it for a peer with a long indexing queue.',
  ),
  requestsPerSecond: rate().describe(
    'The most look-ups a second. The default is `200`, and no limit for the embedded peer. Lower it to spare the peer.',
  ),
  concurrency: wholeNumber(1, 64, 8).describe(
    'The most look-ups at the same time. peersync adapts below this limit. Raise it for a fast peer far away.',
  ),
  maxInterval: duration('100ms', '1d', '1m').describe(
    'The longest pause between two look-ups of one file. Raise it together with `timeout`.',
  ),
  hold: optionalDuration('0s', '1d').describe(
    'How long after a push the answers of the peer prove nothing. A file is looked up when that time is over. If it is shown only later, it must still be shown after the same time again. The default is `"0s"`, and `"20s"` for a YaCy. Raise it for a peer that shows documents and takes them back later than that.',
  ),
}).refine(({ hold = -1, timeout }) => hold < timeout, {
  path: ['hold'],
  error: 'less than confirm.timeout ("10m" by default): otherwise nothing could be confirmed',
});

const audit = section('How peersync notices that the peer lost documents.', {
  every: duration('0s', '3650d', '7d').describe(
    'The time in which every confirmed file is looked up once more. A document that vanished from the peer is pushed again. With a YaCy, every removed file is looked up, too, and a document that is back is removed again. `0s` switches the audit off. After the state lost changes, everything is looked up once immediately, regardless of this. Shorten it for a peer that crashes or is cleaned up often. `peersync verify` looks immediately.',
  ),
});

const LISTEN = '"off", or an IP address and a port such as "127.0.0.1:8385" or "[::1]:8385"';

const status = section('The status page and the addresses for monitoring.', {
  listen: text(LISTEN)
    .refine((value) => value === 'off' || parseListen(value) !== undefined, LISTEN)
    .default('127.0.0.1:8385')
    .describe(
      'The address of the status page, `/metrics`, `/healthz` and `/readyz`. `"off"` switches them off. Change the port when it is in use. An address that others can reach needs a `token`.',
    ),
  token: secretSchema
    .optional()
    .describe(
      'The place of the token that the page asks for. When `listen` is not a loopback address, a token is required and must have at least 16 characters. Set one also when other people have accounts on this machine.',
    ),
}).refine(({ listen, token }) => token !== undefined || !isOpen(listen), {
  path: ['listen'],
  error:
    'a loopback address such as "127.0.0.1:8385", or a status.token beside it (others could reach the page)',
});

function isOpen(listen: string): boolean {
  const place = parseListen(listen);
  return place !== undefined && !isLoopback(place);
}

const alerts = section(
  'Targets. A missed target is a condition in `status`, on the page and in the metrics.',
  {
    timeToSearch: optionalDuration('1s', '30d').describe(
      'The target for the time from *at rest* to *confirmed*. A collection misses it when more than 5 % of its files of the last hour took longer, or when one file waits longer. Set it to what you promise your users.',
    ),
  },
);

const log = section('The log of the running daemon.', {
  level: oneOf(['debug', 'info', 'warn', 'error'], 'info').describe(
    'The least level that is logged. `debug` shows each decision. `--log-level` does the same for one run.',
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
        'The address of the JSON Schema of this file, for editors. `peersync schema` prints it.',
      ),
    peer,
    folders: z
      .array(folderSchema, {
        error:
          'a list of at least one folder, such as [{ "path": "./inbox", "collection": "inbox" }]',
      })
      .min(1)
      .describe('The watched folders. Neither their paths nor their URLs may overlap.'),
    watch,
    state,
    mirror: mirrorSchema,
    documents,
    push,
    confirm,
    audit,
    status,
    alerts,
    fleet: fleetSchema,
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
