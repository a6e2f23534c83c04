import { tmpdir } from 'node:os';
import type { Argv } from 'yargs';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { TableQuery, TableRow, TableStream } from '../peer/table.js';
import { type Command, type GlobalOptions, prepare } from './context.js';
import { nameMaxSize } from './max-size.js';
import { name, size, wholeNumber } from './option-values.js';
import { writeAll } from './output.js';
import { withPeer } from './peer-access.js';
import { noTable } from './table-access.js';
import { tableText, terminalWidth } from './table-text.js';

const FORMATS = ['table', 'csv', 'json', 'ndjson', 'xml'] as const;
type Format = (typeof FORMATS)[number];

interface TableGetOptions {
  readonly table: string;
  readonly search: string | undefined;
  readonly count: string | undefined;
  readonly format: Format | undefined;
  readonly maxSize: string;
}

/** The rows of a table, to the standard output, in bounded memory. */
export const tableGetCommand: Command<TableGetOptions> = {
  command: ['get <table>'],
  describe: 'Show a table, or write it as CSV, JSON, NDJSON or XML',
  builder: (yargs) =>
    yargs
      .positional('table', { type: 'string', demandOption: true, describe: 'The name of the table' })
      .option('search', {
        type: 'string',
        describe: 'Only rows that the peer finds by this',
        requiresArg: true,
      })
      .option('count', {
        type: 'string',
        describe: 'Most rows that the peer is asked for',
        requiresArg: true,
      })
      .option('format', {
        choices: FORMATS,
        describe: '`table` on a terminal and `csv` elsewhere unless given; `ndjson` with --json',
        requiresArg: true,
      })
      .option('max-size', {
        type: 'string',
        default: '1 GiB',
        describe: 'Refuse an answer that is larger',
        requiresArg: true,
      })
      .example('$0 table get prices', 'Aligned, on a terminal')
      .example('$0 table get prices --search oak', 'Some rows')
      .example('$0 table get prices --format csv', 'For a file or a pipe')
      .example('$0 table get prices --json', 'One JSON object a line') as unknown as Argv<TableGetOptions>,
  run: async (options) => {
    const query: TableQuery = {
      table: name('table', options.table),
      ...(options.count === undefined ? {} : { count: wholeNumber('--count', options.count) }),
      ...(options.search === undefined ? {} : { search: options.search }),
    };
    const maxBytes = size('--max-size', options.maxSize);
    const format = formatOf(options);
    const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
    await withPeer(loaded.config, log, async (client, signal) => {
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
};

function formatOf({ format, json }: TableGetOptions & GlobalOptions): Format {
  if (format !== undefined) return format;
  if (json) return 'ndjson';
  return process.stdout.isTTY ? 'table' : 'csv';
}

/** Writes a table as it comes in; where the peer does not say first which columns there are, the rows wait on disk. */
async function writeTo(
  out: NodeJS.WriteStream,
  { name: table, columns, rows }: TableStream,
  format: Format,
  signal: AbortSignal,
): Promise<void> {
  if (columns !== undefined) {
    await writeAll(out, await piecesOf(out, format, table, columns, onlyOf(rows, columns, table)));
    return;
  }
  const { RowStore } = await import('../mirror/row-store.js');
  const store = await RowStore.fill(rows, { directory: tmpdir(), name: table, signal });
  try {
    await writeAll(out, await piecesOf(out, format, table, store.columns, store.read()));
  } finally {
    await store.close();
  }
}

async function piecesOf(
  out: NodeJS.WriteStream,
  format: Format,
  table: string,
  columns: readonly string[],
  rows: AsyncIterable<readonly TableRow[]>,
): Promise<AsyncIterable<string | Uint8Array>> {
  if (format === 'table') return tableText(columns, rows, terminalWidth(out));
  const { writeTable } = await import('../mirror/formats/write.js');
  return writeTable(format, { name: table, columns }, rows, { neutralise: false });
}

/** The rows; one with a column that was not named ahead would lose it in what is written. */
async function* onlyOf(
  rows: AsyncIterable<readonly TableRow[]>,
  columns: readonly string[],
  table: string,
): AsyncGenerator<readonly TableRow[]> {
  const known = new Set(columns);
  for await (const group of rows) {
    for (const { pk, cells } of group)
      for (const column of cells.keys())
        if (!known.has(column))
          throw new PeersyncError({
            code: 'PEER_ANSWER',
            message: `Row ${JSON.stringify(pk)} of the table "${table}" has a column ${JSON.stringify(column)} that the peer did not name.`,
            hint: 'Get it again: the table may have been changed meanwhile.',
          });
    yield group;
  }
}
