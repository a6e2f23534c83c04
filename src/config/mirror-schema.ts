import { z } from 'zod';
import { isWildcard } from '../lib/text.js';
import {
  directory,
  duration,
  flag,
  oneOf,
  optionalNumber,
  rate,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';

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
  'Largest answer of the peer. A larger one is not taken: the old file stays, and the mirror reports a condition. Raise it for what is really that large.',
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
