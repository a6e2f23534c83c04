import { z } from 'zod';
import { duration, flag, oneOf, path, rate, size, text, wholeNumber } from './fields.js';

const name = (of: string) =>
  text('a name of 1 to 100 characters without control characters', /^[^\p{Cc}\p{Cs}]{1,100}$/u)
    .optional()
    .meta({
      description: `What \`status\`, \`mirror\` and \`mirror accept\` call it; ${of} unless given.`,
      change: 'Give one where two mirrors would be called the same.',
    });

const target = (of: string) =>
  text(
    'a relative path below mirror.root, with one "/" between its parts, none of which is "." or ".."',
    /^(?=.{1,1000}$)(?:(?!\.{1,2}(?:\/|$))[^\p{Cc}/]+(?:\/(?!$)|$))+$/u,
  )
    .optional()
    .meta({ description: `Where the file stands below \`mirror.root\`; ${of} unless given.` });

const every = (usual: string) =>
  duration('1s', '365d').prefault(usual).meta({
    description: 'How often the peer is asked; a little is added or taken off so that not all ask at once.',
    change: 'Shorten it for what changes often, lengthen it for what is large.',
  });

const maxSize = size('1 KiB', '1 TiB').prefault('1 GiB').meta({
  description: 'Largest answer of the peer; a larger one raises an alarm and the old file stays.',
  change: 'Raise it for what is really that large.',
});

const versions = wholeNumber(0, 1000).default(0).meta({
  description: 'How many earlier versions stay beside the file, as `NAME.1` (the latest) and so on.',
  change: 'Raise it where history matters.',
});

const share = z.strictObject({
  name: name('`c`/`data`'),
  data: text('the name of a shared object, or a pattern such as "dump/*"', /^[^\p{Cc}]{1,500}$/u).meta({
    description:
      'The name of the shared object (of a YaCy, the path of a file below `/share/`), or a pattern with `*` and `?` over all that the peer lists; each that matches is a mirror.',
  }),
  c: text('the group of a shared object', /^[^\p{Cc}]{1,500}$/u)
    .optional()
    .meta({
      description: 'The group that it stands in, where the peer has groups.',
    }),
  path: target('`shares/`, `c` and `data`').meta({
    description:
      'Where the file stands below `mirror.root`; of a pattern, `{data}` is the name that it matches, made safe. `shares/`, `c` and `data` unless given.',
  }),
  every: every('15m'),
  maxSize,
  versions,
});

const table = z.strictObject({
  name: name('the table'),
  table: text('the name of a table, or a pattern such as "prices-*"', /^[^\p{Cc}]{1,500}$/u).meta({
    description:
      'The table, or a pattern with `*` and `?` over the tables that the peer has; each that matches is a mirror.',
  }),
  path: target('`tables/{table}.FORMAT`').meta({
    description:
      'Where the file stands below `mirror.root`; `{table}` is the name of the table, made safe. `tables/{table}.FORMAT` unless given.',
  }),
  format: oneOf(['csv', 'json', 'ndjson', 'xml']).default('csv').meta({
    description: 'What the file is written as.',
    change: '`ndjson` for programs, `csv` for spreadsheets.',
  }),
  columns: z.array(text('the name of a column'), { error: 'a list of column names' }).min(1).optional().meta({
    description: 'Which columns, in this order; the key always comes first. All of them unless given.',
  }),
  sortBy: z
    .array(text('the name of a column, or "pk" for the key'), { error: 'a list of column names' })
    .min(1)
    .optional()
    .meta({ description: 'Columns by which the rows are sorted, as text; by key unless given.' }),
  search: text('the words to search for').optional().meta({
    description: 'Only rows that the peer finds by this.',
  }),
  count: wholeNumber(1, 100_000_000).optional().meta({
    description: 'Most rows that the peer is asked for; all unless given.',
  }),
  every: every('15m'),
  maxSize,
  versions,
  neutralise: flag().default(false).meta({
    description: "Puts a ' before cells that a spreadsheet would take for a formula (CSV only).",
    change: 'Switch it on when people open the file in a spreadsheet and strangers write the table.',
  }),
  edit: flag().default(false).meta({
    description: 'Two-way: what you change in the file is written to the peer.',
    change: 'Switch it on for tables that are kept by hand.',
  }),
  deletes: flag().default(false).meta({
    description: 'With `edit`: a line removed from the file removes the row in the peer.',
    change: 'Switch it on when rows are also removed by hand.',
  }),
  maxDeletes: wholeNumber(1, 1_000_000).default(10).meta({
    description: 'With `deletes`: more rows than this at once wait for `mirror accept`.',
    change: 'Raise it where large clean-ups are usual.',
  }),
});

const citations = z.strictObject({
  name: name('`citations/` and the folder'),
  folder: text('the name of a watched folder').meta({ description: 'The watched folder.' }),
  path: target('`citations/{folder}/{path}.json`').meta({
    description:
      'Where the record of each confirmed item stands below `mirror.root`; `{folder}` and `{path}` are those of the item. `citations/{folder}/{path}.json` unless given.',
  }),
  filter: flag().optional().meta({
    description: 'Only sentences that occur in other documents.',
  }),
  ch: wholeNumber(1, 10_000).optional().meta({
    description:
      'From how many common sentences on another document counts as similar; the peer decides unless given.',
  }),
  every: every('1d'),
});

/** The `mirror` of the configuration file. */
export const mirrorSchema = z
  .strictObject({
    root: path('a directory').default('./data/mirror').meta({
      description: 'The directory below which everything mirrored from the peer is written.',
      change: 'Point it where the readers of these files look.',
    }),
    requestsPerSecond: rate().default(20).meta({
      description: 'Most requests a second for mirrors.',
      change: 'Lower it to spare the peer.',
    }),
    shares: z.array(share, { error: 'a list of shared objects' }).default([]).meta({
      description: 'Shared objects that are kept as files.',
    }),
    tables: z.array(table, { error: 'a list of tables' }).default([]).meta({
      description: 'Tables that are kept as files.',
    }),
    citations: z.array(citations, { error: 'a list of folders' }).default([]).meta({
      description: 'Folders whose documents get a file each with what the peer knows of their citations.',
    }),
  })
  .prefault({})
  .meta({ description: 'What comes from the peer.' });
