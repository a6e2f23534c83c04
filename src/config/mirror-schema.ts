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

/** The formats of table files that can be edited. `mirror/formats` has what each of them is. */
export const EDITABLE_FORMATS = ['csv', 'json', 'ndjson'] as const;

/** All formats of table files. */
export const TABLE_FORMATS = [...EDITABLE_FORMATS, 'xml'] as const;

export type EditableFormat = (typeof EDITABLE_FORMATS)[number];
export type TableFormat = (typeof TABLE_FORMATS)[number];

/** Returns the formats as the end of a sentence: "a, b or c". */
export function formatNames(
  formats: readonly TableFormat[],
  nameOf: (format: TableFormat) => string,
): string {
  const names = formats.map(nameOf);
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

const mirrorName = (usual: string) =>
  text('a name of 1 to 100 characters without control characters', /^[^\p{Cc}\p{Cs}]{1,100}$/u)
    .optional()
    .describe(
      `The name of the mirror in commands and messages. The default is ${usual}. Set it when two mirrors would have the same name.`,
    );

const target = (description: string) =>
  text(
    'a relative path below mirror.root, with one "/" between its parts, none of which is "." or ".."',
    /^(?=.{1,1000}$)(?:(?!\.{1,2}(?:\/|$))[^\p{Cc}/]+(?:\/(?!$)|$))+$/u,
  )
    .optional()
    .describe(`The path of the file below \`mirror.root\`${description}`);

/** Returns the error for a path without the variable that keeps its files apart. */
const missingVariable = (variable: string, files: string) => ({
  path: ['path'],
  error: `a path with "${variable}" in it: each ${files} needs a file of its own`,
});

/** Whether a path has no other variables than these. */
const hasOnly = (target: string | undefined, ...variables: readonly string[]) =>
  [...(target ?? '').matchAll(/\{\w*\}/g)].every(([variable]) => variables.includes(variable));

const every = (usual: string) =>
  duration('1s', '365d', usual).describe(
    'The time between two requests to the peer. It varies a little, so that not all mirrors ask at once. Shorten it for mirrors that change often, lengthen it for large ones.',
  );

const maxSize = size('1 KiB', '1 TiB', '1 GiB').describe(
  'The largest answer of the peer that is accepted. With a larger one, the old file stays and the mirror reports a condition. Raise it for tables and objects that really are that large.',
);

const versions = wholeNumber(0, 1000, 0).describe(
  'The number of earlier versions that stay beside the file, as `NAME.1` (the latest) and so on.',
);

const share = z
  .strictObject({
    name: mirrorName('`c`/`data`'),
    data: text(
      'the name of a shared object, or a pattern such as "dump/*"',
      /^[^\p{Cc}]{1,500}$/u,
    ).describe(
      'The name of the shared object (with a YaCy, the path of a file below `/share/`), or a pattern with `*` and `?`. Each object of the peer that matches the pattern is a mirror.',
    ),
    c: text('the group of a shared object', /^[^\p{Cc}]{1,500}$/u)
      .optional()
      .describe('The group of the shared object, if the peer has groups.'),
    path: target(
      '. With a pattern, `{data}` stands for the name that matches, made safe. The default is `shares/`, `c` and `data`.',
    ),
    every: every('15m'),
    maxSize,
    versions,
  })
  .refine(
    (given) => !isWildcard(given.data) || (given.path ?? '{data}').includes('{data}'),
    missingVariable('{data}', 'object that the pattern matches'),
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
      'The name of the table, or a pattern with `*` and `?`. Each table of the peer that matches the pattern is a mirror.',
    ),
    path: target(
      '. `{table}` stands for the name of the table, made safe. The default is `tables/{table}.FORMAT`.',
    ),
    format: oneOf(TABLE_FORMATS, 'csv').describe(
      `The format of the file: ${formatNames(TABLE_FORMATS, (format) => `\`${format}\``)}. Take \`ndjson\` for programs, \`csv\` for spreadsheets.`,
    ),
    columns: columnNames
      .optional()
      .describe(
        'The columns, in this order. The key always comes first. The default is all columns.',
      ),
    sortBy: columnNames
      .optional()
      .describe('The columns by which the rows are sorted, as text. The default is the key.'),
    search: text('the words to search for')
      .optional()
      .describe('A search of the peer that narrows the rows. The default is all rows.'),
    count: optionalNumber(1, 100_000_000).describe(
      'The most rows that the peer is asked for. The default is all rows.',
    ),
    every: every('15m'),
    maxSize,
    versions,
    newline: oneOf(['lf', 'crlf'], 'lf').describe(
      'The end of a line (CSV only). Set `crlf` for programs that take RFC 4180 literally.',
    ),
    neutralise: flag(false).describe(
      "Whether a ' is put before cells that a spreadsheet would take for a formula (CSV only). Switch it on when people open the file in a spreadsheet and strangers write the table.",
    ),
    edit: flag(false).describe(
      'Whether the table is two-way: your changes to the file are written to the peer. Switch it on for tables that are kept by hand.',
    ),
    deletes: flag(false).describe(
      'Whether, with `edit`, a line removed from the file deletes the row in the peer. Switch it on when rows are also removed by hand.',
    ),
    maxDeletes: wholeNumber(1, 1_000_000, 10).describe(
      'The most rows that `deletes` deletes at once. More rows wait for `mirror accept`. Raise it where large clean-ups are usual.',
    ),
  })
  .refine(
    (given) => !isWildcard(given.table) || (given.path ?? '{table}').includes('{table}'),
    missingVariable('{table}', 'table that the pattern matches'),
  )
  .refine((given) => hasOnly(given.path, '{table}'), {
    path: ['path'],
    error: 'a path with no variable but "{table}"',
  })
  .refine((given) => !given.columns?.includes('pk'), {
    path: ['columns'],
    error: 'columns without "pk" (the key always comes first)',
  })
  .refine(({ columns = [] }) => new Set(columns).size === columns.length, {
    path: ['columns'],
    error: 'each column once',
  })
  .refine((given) => !given.neutralise || given.format === 'csv', {
    path: ['neutralise'],
    error: 'false, or "format": "csv" beside it (spreadsheets read no formulas from other formats)',
  })
  .refine((given) => given.newline === 'lf' || given.format === 'csv', {
    path: ['newline'],
    error: '"lf", or "format": "csv" beside it (lines of the other formats end with LF)',
  })
  .refine((given) => !given.deletes || given.edit, {
    path: ['deletes'],
    error: 'false, or "edit": true beside it (only an edited file deletes rows in the peer)',
  })
  .refine((given) => !given.edit || EDITABLE_FORMATS.some((format) => format === given.format), {
    path: ['format'],
    error: `${formatNames(EDITABLE_FORMATS, JSON.stringify)} (files in other formats cannot be edited)`,
  })
  .refine((given) => !given.edit || !given.neutralise, {
    path: ['neutralise'],
    error: 'false beside "edit" (the marks would be written to the peer)',
  })
  .refine((given) => !given.edit || given.search === undefined, {
    path: ['search'],
    error: 'no "search" beside "edit" (rows that are not found would look removed)',
  })
  .refine((given) => !given.edit || given.count === undefined, {
    path: ['count'],
    error: 'no "count" beside "edit" (rows beyond it would look removed)',
  })
  .transform(({ name, path: given, ...rest }) => ({
    ...rest,
    name: name ?? rest.table,
    path: given ?? `tables/{table}.${rest.format}`,
  }));

const citations = z
  .strictObject({
    name: mirrorName('`citations/` and the folder'),
    folder: text('the name of a watched folder').describe('The name of the watched folder.'),
    path: target(
      ' for each confirmed file. `{folder}` and `{path}` are those of the watched file. The default is `citations/{folder}/{path}.json`.',
    ),
    filter: z
      .boolean({ error: 'true or false' })
      .optional()
      .describe('Whether the file has only the sentences that occur in other documents.'),
    ch: optionalNumber(1, 10_000).describe(
      'The number of common sentences from which on another document counts as similar. By default, the peer decides.',
    ),
    every: every('1d'),
  })
  .refine(
    (given) => (given.path ?? '{path}').includes('{path}'),
    missingVariable('{path}', 'document'),
  )
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
export const mirrorSchema = section(
  'Tables, shared objects and citations of the peer that become files.',
  {
    root: directory('./data/mirror').describe(
      'The directory below which all mirrored files are written. Set it to where the readers of these files look.',
    ),
    requestsPerSecond: rate().describe(
      'The most requests a second for mirrors. The default is `20`, and no limit for the embedded peer. Lower it to spare the peer.',
    ),
    shares: z
      .array(share, { error: 'a list of shared objects' })
      .default([])
      .describe('The shared objects that are mirrored.'),
    tables: z
      .array(table, { error: 'a list of tables' })
      .default([])
      .describe('The tables that are mirrored.'),
    citations: z
      .array(citations, { error: 'a list of folders' })
      .default([])
      .describe('The folders whose citations are mirrored: one file for each confirmed document.'),
  },
);
