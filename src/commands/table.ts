import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { z } from 'zod';
import { define } from '../cli/command.js';
import { consent, onThisTerminal } from '../cli/consent.js';
import type { GlobalOptions } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, print, printJson, writeAll } from '../cli/output.js';
import { counted, named, safe, tableText, terminalWidth } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { formatNames, TABLE_FORMATS } from '../config/mirror-schema.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { shellWord } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import type { PeerClient } from '../peer/client.js';
import type { TableQuery, TableRow, TableStream } from '../peer/table.js';
import { askPeer, nameMaxSize, noTable } from './peer.js';

const TABLE = option.needed('The name of the table');

const cellsShape = z.record(z.string(), z.string());
const rowShape = z.object({ table: z.string(), pk: z.string(), cells: cellsShape });

const tableList = define({
  output: z.object({ tables: z.array(z.string()) }),
  examples: [['$0 table list', 'One a line']],
  run: async (options) => {
    const tables = await askPeer(options, (client, signal) => client.tables.list({ signal }));
    return answer(options, { tables }, () =>
      tables.length === 0 ? ['The peer has no tables.'] : tables.map(safe),
    );
  },
});

const FORMATS = ['table', ...TABLE_FORMATS] as const;
type Format = (typeof FORMATS)[number];

/** The rows of a table, to the standard output, in bounded memory. */
const tableGet = define({
  output: cellsShape.describe(
    'A row: its key is `pk`, its cells stand under the names of their columns.',
  ),
  positionals: { table: TABLE },
  options: {
    search: option.value('Only rows that the peer finds by this'),
    count: option.value('Most rows that the peer is asked for'),
    format: option.oneOf(
      FORMATS,
      '`table` on a terminal and `csv` elsewhere unless given; `ndjson` with --json',
    ),
    'max-size': option.preset('1 GiB', 'Refuse an answer that is larger'),
  },
  examples: [
    ['$0 table get prices', 'Aligned, on a terminal'],
    ['$0 table get prices --search oak', 'Some rows'],
    ['$0 table get prices --format csv', 'For a file or a pipe'],
    ['$0 table get prices --json', 'One JSON object a line'],
  ],
  run: async (options) => {
    const query: TableQuery = {
      table: option.name('table', options.table),
      ...(options.count === undefined
        ? {}
        : { count: option.wholeNumber('--count', options.count) }),
      ...(options.search === undefined ? {} : { search: options.search }),
    };
    const maxBytes = option.size('--max-size', options.maxSize);
    const format = formatOf(options);
    await askPeer(options, async (client, signal) => {
      const done = await client.tables.stream(
        query,
        async (table) => {
          await writeTo(process.stdout, table, format, signal);
          return true;
        },
        { maxBytes, signal },
      );
      if (done === undefined) throw await noTable(client, query.table, signal);
    }).catch(nameMaxSize);
    return EXIT.done;
  },
});

function formatOf({
  format,
  json,
}: GlobalOptions & { readonly format: Format | undefined }): Format {
  if (format !== undefined) return format;
  if (json) return 'ndjson';
  return process.stdout.isTTY ? 'table' : 'csv';
}

/** Writes a table; its rows wait on disk until it is known which columns there are. */
async function writeTo(
  out: NodeJS.WriteStream,
  { name: table, columns: named, rows }: TableStream,
  format: Format,
  signal: AbortSignal,
): Promise<void> {
  const { RowStore } = await import('../mirror/row-store.js');
  const { writeTable } = await import('../mirror/formats/formats.js');
  const store = await RowStore.fill(rows, {
    directory: tmpdir(),
    name: table,
    columns: named,
    signal,
  });
  try {
    const { columns } = store;
    const text =
      format === 'table'
        ? tableText(columns, store.read(), terminalWidth(out))
        : writeTable(format, { name: table, columns }, store.read());
    await writeAll(out, text);
  } finally {
    await store.close();
  }
}

const CELLS = {
  table: TABLE,
  cell: option.several(
    'column=value, or column=@FILE for the content of a text file; column=\\@… for a value that begins with @',
  ),
} as const;

/** Changes cells of one row, or makes the row; the cells that are not named stay. */
const tableSet = define({
  output: rowShape,
  positionals: CELLS,
  options: { pk: option.needed('The key of the row') },
  examples: [
    ['$0 table set prices --pk oak price=12.50 unit=m', 'Two cells of the row "oak"'],
    ['$0 table set pages --pk home text=@home.html', 'A cell from a file'],
  ],
  run: async (options) => {
    const pk = option.name('--pk', options.pk);
    const cells = await cellsOf(options.cell);
    return change(options, async (client, signal) => {
      const [row] = await client.tables.set(options.table, [{ pk, cells }], { signal });
      return row ?? { pk, cells };
    });
  },
});

/** Adds a row under a new key. */
const tableAdd = define({
  output: rowShape,
  positionals: CELLS,
  examples: [['$0 table add prices name=beech price=9.80', 'The new key is shown']],
  run: async (options) => {
    const cells = await cellsOf(options.cell);
    return change(options, (client, signal) => client.tables.add(options.table, cells, { signal }));
  },
});

async function change(
  options: GlobalOptions & { readonly table: string },
  make: Parameters<typeof askPeer<TableRow>>[1],
) {
  const table = option.name('table', options.table);
  const { cells, pk } = await askPeer(options, make);
  return answer(options, { table, pk, cells: Object.fromEntries(cells) }, () => [
    `The peer shows the row ${safe(pk)} of ${safe(table)}:`,
    ...named([...cells]).map((line) => `  ${line}`),
  ]);
}

/**
 * Returns the cells of `column=value` arguments. A column whose name contains "=" cannot be given
 * this way.
 *
 * @throws UsageError for an argument of another form, and for a column that is given twice;
 *   PeersyncError for a file that cannot be read
 */
export async function cellsOf(pairs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (pairs.length === 0) throw new UsageError('No cell was given.', 'Write it like price=12.50.');
  const cells = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1)
      throw new UsageError(
        `"${pair}" is no column=value.`,
        'Write it like price=12.50; price= empties the cell.',
      );
    const column = option.name('column', pair.slice(0, at));
    if (column === 'pk')
      throw new UsageError(
        `"${pair}": pk is the key, and no column.`,
        'Name the row with --pk: `peersync table set TABLE --pk KEY COLUMN=VALUE`.',
      );
    if (cells.has(column))
      throw new UsageError(`The column "${column}" was given twice.`, 'Give each column once.');
    cells.set(column, await cellText(pair.slice(at + 1)));
  }
  return cells;
}

const LARGEST_FILE = 64 * 2 ** 20;

/** @returns the cell that a text stands for; `@FILE` is the content of that */
async function cellText(text: string): Promise<string> {
  if (!text.startsWith('@')) return text.startsWith('\\@') ? text.slice(1) : text;
  const file = writtenPath(text.slice(1));
  const pieces = createReadStream(file, { end: LARGEST_FILE }).toArray();
  const content = Buffer.concat(
    await pieces.catch((cause: unknown) => {
      throw new PeersyncError({
        code: 'UNREADABLE',
        message: `${file} cannot be read: ${messageOf(cause)}.`,
        hint: 'Name a file that can be read, or write \\@ where the value begins with @.',
        exitCode: EXIT.usage,
        cause,
      });
    }),
  );
  if (content.length > LARGEST_FILE)
    throw new UsageError(
      `${file} has more than ${formatBytes(LARGEST_FILE)}.`,
      'Give a smaller file for one cell.',
    );
  if (isUtf8(content)) return content.toString();
  throw new PeersyncError({
    code: 'NOT_TEXT',
    message: `${file} is not text in UTF-8, and a cell holds only text.`,
    hint: 'Convert it to text in UTF-8.',
  });
}

const YES = option.flag('Do it without asking');

/** Rows that are shown before they go; of the others only how many they are. */
const SHOWN_ROWS = 20;

/** Deletes the rows with exactly these keys. */
const tableDeleteRows = define({
  output: z.object({ table: z.string(), deleted: z.array(z.string()) }),
  positionals: {
    table: TABLE,
    pk: option.several('The keys of the rows'),
  },
  options: { yes: YES },
  examples: [
    ['$0 table delete-rows prices oak beech', 'Shows the two rows, and asks'],
    ['$0 table delete-rows prices oak --yes', 'For a script'],
  ],
  run: async (options) => {
    const table = option.name('table', options.table);
    if (options.pk.length === 0)
      throw new UsageError('No row was named.', 'Give the keys of the rows.');
    const keys = [...new Set(options.pk.map((pk) => option.name('pk', pk)))];
    const deleted = await askPeer(options, async (client, signal) => {
      const question = (rows: string) => `Delete ${rows} of ${safe(table)}? Type "yes": `;
      await assertMeant(client, options, { keys, question, expected: 'yes' }, signal);
      return client.tables.deleteRows(table, keys, { signal });
    });
    return answer(options, { table, deleted }, () => [
      `Deleted ${counted(deleted.length, 'row')} of ${safe(table)}; the peer does not show them any more.`,
    ]);
  },
});

/** Deletes a whole table. */
const tableDrop = define({
  output: z.object({
    dropped: z.string(),
    tables: z.array(z.string()).describe('Those that are left.'),
  }),
  positionals: { table: TABLE },
  options: { yes: YES },
  examples: [
    ['$0 table drop prices', 'Shows its rows, and asks for its name'],
    ['$0 table drop prices --yes', 'For a script'],
  ],
  run: async (options) => {
    const table = option.name('table', options.table);
    const left = await askPeer(options, async (client, signal) => {
      const question = (rows: string) =>
        `Delete the table ${safe(table)} with ${rows}? Type its name: `;
      await assertMeant(client, options, { keys: undefined, question, expected: table }, signal);
      return client.tables.drop(table, { signal });
    });
    return answer(options, { dropped: table, tables: left }, () => [
      `Deleted the table ${safe(table)}; the peer has ${left.length === 0 ? 'none' : left.length} left.`,
    ]);
  },
});

/**
 * Finds the rows with these keys, or all rows. Without --yes it shows them and asks a person.
 *
 * @throws PeersyncError NOT_FOUND if the table or one of the keys does not exist; then nothing is
 *   deleted
 */
async function assertMeant(
  client: PeerClient,
  options: GlobalOptions & { readonly table: string; readonly yes: boolean },
  deletion: {
    readonly keys: readonly string[] | undefined;
    readonly question: (rows: string) => string;
    readonly expected: string;
  },
  signal: AbortSignal,
): Promise<void> {
  const { keys } = deletion;
  const { json, table, yes } = options;
  const missing = new Set(keys);
  const rows: TableRow[] = [];
  let count = 0;
  const look = async (stream: TableStream) => {
    for await (const group of stream.rows) {
      const doomed = keys === undefined ? group : group.filter(({ pk }) => missing.delete(pk));
      count += doomed.length;
      rows.push(...doomed.slice(0, SHOWN_ROWS - rows.length));
      if (keys !== undefined && missing.size === 0) break;
    }
    return true;
  };
  const found = await client.tables.stream({ table }, look, {
    maxBytes: Number.POSITIVE_INFINITY,
    signal,
  });
  if (found === undefined) throw await noTable(client, table, signal);
  const [first] = missing;
  if (first !== undefined) {
    const others =
      missing.size === 1 ? '' : `, nor ${missing.size - 1} more of those that were named`;
    throw new PeersyncError({
      code: 'NOT_FOUND',
      message: `The table "${table}" has no row ${JSON.stringify(first)}${others}; nothing was deleted.`,
      hint: `\`peersync table get ${shellWord(table)}\` shows the rows with their keys.`,
      details: { table, missing: [...missing].slice(0, SHOWN_ROWS) },
    });
  }
  if (yes) return;
  if (json) {
    const shown = rows.map(({ pk, cells }) => ({ pk, cells: Object.fromEntries(cells) }));
    printJson(options, { table, wouldDelete: count, rows: shown });
  } else {
    const columns = [...new Set(rows.flatMap(({ cells }) => [...cells.keys()]))];
    const { stdout } = process;
    await writeAll(stdout, tableText(columns, [rows], terminalWidth(stdout)));
    if (count > rows.length) print(`… and ${counted(count - rows.length, 'row')} more`);
  }
  await consent(
    deletion.question(counted(count, 'row')),
    deletion.expected,
    onThisTerminal(),
    signal,
  );
}

/** Tables of the peer. */
export const tableCommand = define({
  commands: [
    { usage: 'list', describe: 'Name the tables of the peer', ...tableList },
    {
      usage: 'get <table>',
      describe: `Show a table, or write it as ${formatNames(TABLE_FORMATS, (format) => format.toUpperCase())}`,
      ...tableGet,
    },
    {
      usage: 'set <table> [cell..]',
      describe: 'Set cells of one row by its key; the other cells stay',
      ...tableSet,
    },
    { usage: 'add <table> [cell..]', describe: 'Add a row; its key is made for it', ...tableAdd },
    {
      usage: 'delete-rows <table> [pk..]',
      describe: 'Delete rows by their keys, after they were shown and you said yes',
      ...tableDeleteRows,
    },
    {
      usage: 'drop <table>',
      describe: 'Delete a whole table, after it was shown and you typed its name',
      ...tableDrop,
    },
  ],
});
