import { z } from 'zod';
import { isWildcard } from '../lib/text.js';
import { DEFAULT_IGNORE } from './default-ignore.js';
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
import { isLoopback, parseListen } from './url.js';

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
    .describe(
      'The peer: `"embedded"`, which needs nothing else, or the base URL of a search service.',
    ),
  dialect: oneOf(DIALECT_NAMES, 'auto').describe(
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
}).refine(({ url, dialect }) => url !== 'embedded' || EMBEDDED_DIALECTS.has(dialect), {
  path: ['dialect'],
  error:
    '"auto" or "standard", which the embedded peer speaks: give the URL of your YaCy peer in peer.url',
});

const rule = z
  .strictObject({
    match: pattern()
      .refine(
        (value) => !value.startsWith('!'),
        'a pattern without "!" (write "\\\\!" where a name begins with "!")',
      )
      .describe(
        'The files it is for: a pattern in gitignore syntax, relative to the folder. The first rule that matches wins: put the special ones first.',
      ),
    collection: collection()
      .optional()
      .describe(
        "The collection of these files instead of the folder's. Give either this or `skip`.",
      ),
    skip: z
      .literal(true, { error: 'true, or leave it out' })
      .optional()
      .describe('`true`: these files are skipped.'),
  })
  .meta({ oneOf: [{ required: ['collection'] }, { required: ['skip'] }] })
  .refine(
    (given) => (given.skip === undefined) !== (given.collection === undefined),
    'either "collection" or "skip": true beside "match"',
  );

const folder = z.strictObject({
  name: text(FOLDER_NAME_RIGHT, FOLDER_NAME)
    .optional()
    .describe(
      'What commands and messages call the folder; the last name of `path` unless given. Give one when two folders end in the same name.',
    ),
  path: path('a folder to watch').describe(
    'The folder on disk; peersync only reads there. It may be made later: the folder is held until it is there. It may be a symbolic link; where that is pointed elsewhere later, the folder is held until `rescan FOLDER`.',
  ),
  collection: collection().describe(
    'The collection that its documents are tagged with: letters, digits and `- _ . : / + @`; no spaces and no commas, which separate collections for the peer.',
  ),
  url: folderUrl()
    .optional()
    .describe(
      "The base of its documents' URLs: a document's URL is this and the percent-encoded relative path; the `file://` URL of `path` unless given. Give the address where people can open the files, before the first push: it names the documents for ever.",
    ),
  include: z
    .array(pattern(), { error: 'a list of at least one pattern, such as ["*"]' })
    .min(1)
    .default(['*'])
    .describe(
      'The files that are taken: patterns in gitignore syntax. Narrow it, such as `["*.md", "*.txt"]`, when only some kinds of files matter.',
    ),
  ignore: z
    .array(pattern(), { error: 'a list of patterns' })
    .default([])
    .describe(
      'Files and directories that are left out: patterns in gitignore syntax, beside `.peersyncignore` files and `ignoreDefaults`. A pattern with `!` in front takes back what the defaults leave out, such as `"!.env.example"`.',
    ),
  ignoreDefaults: flag(true).describe(
    `Whether the usual secrets, caches and files of editors are left out: private keys, by name and by content, and, whatever the case of letters, ${DEFAULT_IGNORE.map((pattern) => `\`${pattern}\``).join(' ')}. Switch it off only where nothing in the folder is secret.`,
  ),
  rules: z
    .array(rule, { error: 'a list of rules' })
    .default([])
    .describe(
      'Other collections for some files, or none at all. Use it when one tree feeds several collections.',
    ),
  settle: duration('0s', '1d', '2s').describe(
    'How long a file must be unchanged before it is read. Raise it when programs write slowly, with pauses.',
  ),
  maxFileSize: size('1 B', '1 GiB', '20 MiB').describe(
    'Larger files are skipped. Keep it below what the peer takes in one request.',
  ),
  extract: z
    .enum(['auto', 'always'], { error: '"auto" or "always"' })
    .default('auto')
    .describe(
      'How PDF, office documents, books, RTF and e-mail travel: `auto` sends their text to a peer that takes only text, and a YaCy the text of those that it reads badly (e-mail, EPUB, Excel, PowerPoint) and the others as they are; `always` sends their text to every peer.',
    ),
  onDelete: z
    .enum(['remove', 'keep'], { error: '"remove" or "keep"' })
    .optional()
    .describe(
      'What becomes of the document when its file is removed, or becomes empty, binary or too large: `remove` removes it from the peer too, `keep` leaves it there. Unless given, `remove` with the embedded peer, also where `peersync peer` runs it as a process of its own, and `keep` with any other.',
    ),
  followSymlinks: flag(false).describe(
    'Whether symbolic links are followed; never out of the folder. Set it when the tree is built of links.',
  ),
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

const mirrorName = (usual: string) =>
  text('a name of 1 to 100 characters without control characters', /^[^\p{Cc}\p{Cs}]{1,100}$/u)
    .optional()
    .describe(
      `What \`status\`, \`mirror\` and \`mirror accept\` call it; ${usual} unless given. Give one where two mirrors would be called the same.`,
    );

const target = (description: string) =>
  text(
    'a relative path below mirror.root, with one "/" between its parts, none of which is "." or ".."',
    /^(?=.{1,1000}$)(?:(?!\.{1,2}(?:\/|$))[^\p{Cc}/]+(?:\/(?!$)|$))+$/u,
  )
    .optional()
    .describe(`Where the file stands below \`mirror.root\`${description}`);

/** Returns the error for a path without the variable that keeps its files apart. */
const telling = (variable: string, files: string) => ({
  path: ['path'],
  error: `a path with "${variable}" in it: each ${files} needs a file of its own`,
});

/** Whether a path has no other variables than these. */
const hasOnly = (target: string | undefined, ...variables: readonly string[]) =>
  [...(target ?? '').matchAll(/\{\w*\}/g)].every(([variable]) => variables.includes(variable));

const every = (usual: string) =>
  duration('1s', '365d', usual).describe(
    'How often the peer is asked; a little is added or taken off so that not all ask at once. Shorten it for what changes often, lengthen it for what is large.',
  );

const maxSize = size('1 KiB', '1 TiB', '1 GiB').describe(
  'Largest answer of the peer; a larger one raises an alarm and the old file stays. Raise it for what is really that large.',
);

const versions = wholeNumber(0, 1000, 0).describe(
  'How many earlier versions stay beside the file, as `NAME.1` (the latest) and so on.',
);

const share = z
  .strictObject({
    name: mirrorName('`c`/`data`'),
    data: text(
      'the name of a shared object, or a pattern such as "dump/*"',
      /^[^\p{Cc}]{1,500}$/u,
    ).describe(
      'The name of the shared object (of a YaCy, the path of a file below `/share/`), or a pattern with `*` and `?` over all that the peer lists; each that matches is a mirror.',
    ),
    c: text('the group of a shared object', /^[^\p{Cc}]{1,500}$/u)
      .optional()
      .describe('The group that it stands in, where the peer has groups.'),
    path: target(
      '; of a pattern, `{data}` is the name that it matches, made safe. `shares/`, `c` and `data` unless given.',
    ),
    every: every('15m'),
    maxSize,
    versions,
  })
  .refine(
    (given) => !isWildcard(given.data) || (given.path ?? '{data}').includes('{data}'),
    telling('{data}', 'object that the pattern matches'),
  )
  .transform(({ name, path: given, ...rest }) => {
    const group = rest.c === undefined ? '' : `${rest.c}/`;
    const usual = `shares/${group}${isWildcard(rest.data) ? '{data}' : rest.data}`;
    return { ...rest, name: name ?? `${group}${rest.data}`, path: given ?? usual };
  });

const columnNames = z
  .array(text('the name of a column, or "pk" for the key'), { error: 'a list of column names' })
  .min(1);

const table = z
  .strictObject({
    name: mirrorName('the table'),
    table: text(
      'the name of a table, or a pattern such as "prices-*"',
      /^[^\p{Cc}]{1,500}$/u,
    ).describe(
      'The table, or a pattern with `*` and `?` over the tables that the peer has; each that matches is a mirror.',
    ),
    path: target(
      '; `{table}` is the name of the table, made safe. `tables/{table}.FORMAT` unless given.',
    ),
    format: oneOf(['csv', 'json', 'ndjson', 'xml'], 'csv').describe(
      'What the file is written as: `ndjson` for programs, `csv` for spreadsheets.',
    ),
    columns: columnNames
      .optional()
      .describe(
        'Which columns, in this order; the key always comes first. All of them unless given.',
      ),
    sortBy: columnNames
      .optional()
      .describe('Columns by which the rows are sorted, as text; by key unless given.'),
    search: text('the words to search for')
      .optional()
      .describe('Only rows that the peer finds by this.'),
    count: optionalNumber(1, 100_000_000).describe(
      'Most rows that the peer is asked for; all unless given.',
    ),
    every: every('15m'),
    maxSize,
    versions,
    newline: oneOf(['lf', 'crlf'], 'lf').describe(
      'What ends a line (CSV only): `crlf` for programs that take RFC 4180 by the letter.',
    ),
    neutralise: flag(false).describe(
      "Puts a ' before cells that a spreadsheet would take for a formula (CSV only). Switch it on when people open the file in a spreadsheet and strangers write the table.",
    ),
    edit: flag(false).describe(
      'Two-way: what you change in the file is written to the peer. Switch it on for tables that are kept by hand.',
    ),
    deletes: flag(false).describe(
      'With `edit`: a line removed from the file removes the row in the peer. Switch it on when rows are also removed by hand.',
    ),
    maxDeletes: wholeNumber(1, 1_000_000, 10).describe(
      'With `deletes`: more rows than this at once wait for `mirror accept`. Raise it where large clean-ups are usual.',
    ),
  })
  .refine(
    (given) => !isWildcard(given.table) || (given.path ?? '{table}').includes('{table}'),
    telling('{table}', 'table that the pattern matches'),
  )
  .refine((given) => hasOnly(given.path, '{table}'), {
    path: ['path'],
    error: 'a path with no variable but "{table}"',
  })
  .refine((given) => !given.columns?.includes('pk'), {
    path: ['columns'],
    error: 'columns without "pk": the key comes first by itself',
  })
  .refine(({ columns = [] }) => new Set(columns).size === columns.length, {
    path: ['columns'],
    error: 'each column once',
  })
  .refine((given) => !given.neutralise || given.format === 'csv', {
    path: ['neutralise'],
    error: 'false, or "format": "csv": spreadsheets take no formulas from other formats',
  })
  .refine((given) => given.newline === 'lf' || given.format === 'csv', {
    path: ['newline'],
    error: '"lf", or "format": "csv": lines of the other formats end with LF',
  })
  .refine((given) => !given.deletes || given.edit, {
    path: ['deletes'],
    error:
      'false, or "edit": true beside it: rows are removed in the peer only where the file is edited',
  })
  .refine((given) => !given.edit || given.format !== 'xml', {
    path: ['format'],
    error: '"csv", "json" or "ndjson": what is edited is not XML',
  })
  .refine((given) => !given.edit || !given.neutralise, {
    path: ['neutralise'],
    error: 'false beside "edit": the marks would be written to the peer',
  })
  .refine((given) => !given.edit || given.search === undefined, {
    path: ['search'],
    error: 'nothing beside "edit": rows that are not found would look removed',
  })
  .refine((given) => !given.edit || given.count === undefined, {
    path: ['count'],
    error: 'nothing beside "edit": rows that were not asked for would look removed',
  })
  .transform(({ name, path: given, ...rest }) => ({
    ...rest,
    name: name ?? rest.table,
    path: given ?? `tables/{table}.${rest.format}`,
  }));

const citations = z
  .strictObject({
    name: mirrorName('`citations/` and the folder'),
    folder: text('the name of a watched folder').describe('The watched folder.'),
    path: target(
      ' for each confirmed item; `{folder}` and `{path}` are those of the item. `citations/{folder}/{path}.json` unless given.',
    ),
    filter: z
      .boolean({ error: 'true or false' })
      .optional()
      .describe('Only sentences that occur in other documents.'),
    ch: optionalNumber(1, 10_000).describe(
      'From how many common sentences on another document counts as similar; the peer decides unless given.',
    ),
    every: every('1d'),
  })
  .refine((given) => (given.path ?? '{path}').includes('{path}'), telling('{path}', 'document'))
  .refine((given) => hasOnly(given.path, '{folder}', '{path}'), {
    path: ['path'],
    error: 'a path with no variables but "{folder}" and "{path}"',
  })
  .transform(({ name, path: given, ...rest }) => ({
    ...rest,
    name: name ?? `citations/${rest.folder}`,
    path: given ?? 'citations/{folder}/{path}.json',
  }));

/** The `mirror` section of the configuration file. */
export const mirrorSchema = section('What comes from the peer.', {
  root: directory('./data/mirror').describe(
    'The directory below which everything mirrored from the peer is written. Point it where the readers of these files look.',
  ),
  requestsPerSecond: rate().describe(
    'Most requests a second for mirrors: `20` unless given, and no limit for the embedded peer. Lower it to spare the peer.',
  ),
  shares: z
    .array(share, { error: 'a list of shared objects' })
    .default([])
    .describe('Shared objects that are kept as files.'),
  tables: z
    .array(table, { error: 'a list of tables' })
    .default([])
    .describe('Tables that are kept as files.'),
  citations: z
    .array(citations, { error: 'a list of folders' })
    .default([])
    .describe(
      'Folders whose documents get a file each with what the peer knows of their citations.',
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
      .array(folder, {
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
