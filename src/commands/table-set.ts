import { readFile, stat } from 'node:fs/promises';
import type { Argv } from 'yargs';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import { formatBytes } from '../lib/units.js';
import type { TableRow } from '../peer/table.js';
import { type Command, type GlobalOptions, prepare, print, printJson, UsageError } from './context.js';
import { name } from './option-values.js';
import { withPeer } from './peer-access.js';
import { named, safe } from './text.js';

interface TableAddOptions {
  readonly table: string;
  readonly cell: string[];
}

interface TableSetOptions extends TableAddOptions {
  readonly pk: string;
}

/** Changes cells of one row, or makes the row; the cells that are not named stay. */
export const tableSetCommand: Command<TableSetOptions> = {
  command: ['set <table> [cell..]'],
  rest: 'cell',
  describe: 'Set cells of one row by its key; the other cells stay',
  builder: (yargs) =>
    cellOptions(yargs)
      .option('pk', { type: 'string', demandOption: true, describe: 'The key of the row', requiresArg: true })
      .example('$0 table set prices --pk oak price=12.50 unit=m', 'Two cells of the row "oak"')
      .example('$0 table set pages --pk home text=@home.html', 'A cell from a file'),
  run: async (options) => {
    const pk = name('--pk', options.pk);
    const cells = await cellsOf(options.cell);
    return change(options, async (client, signal) => {
      const [row] = await client.tables.set(options.table, [{ pk, cells }], { signal });
      return row ?? { pk, cells };
    });
  },
};

/** Adds a row under a new key. */
export const tableAddCommand: Command<TableAddOptions> = {
  command: ['add <table> [cell..]'],
  rest: 'cell',
  describe: 'Add a row; its key is made for it',
  builder: (yargs) =>
    cellOptions(yargs).example('$0 table add prices name=beech price=9.80', 'The new key is shown'),
  run: async (options) => {
    const cells = await cellsOf(options.cell);
    return change(options, (client, signal) => client.tables.add(options.table, cells, { signal }));
  },
};

function cellOptions(yargs: Argv<GlobalOptions>): Argv<GlobalOptions & TableAddOptions> {
  return yargs
    .positional('table', { type: 'string', demandOption: true, describe: 'The name of the table' })
    .positional('cell', {
      type: 'string',
      array: true,
      default: [],
      describe:
        'column=value, or column=@FILE for the content of a text file; column=\\@… for a value that begins with @',
    }) as unknown as Argv<GlobalOptions & TableAddOptions>;
}

type Change = Parameters<typeof withPeer<TableRow>>[2];

async function change(options: TableAddOptions & GlobalOptions, make: Change) {
  name('table', options.table);
  const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
  const row = await withPeer(loaded.config, log, make);
  const { table } = options;
  if (options.json) printJson({ table, pk: row.pk, cells: Object.fromEntries(row.cells) });
  else {
    print(`The peer shows the row ${safe(row.pk)} of ${safe(table)}:`);
    for (const line of named([...row.cells])) print(`  ${line}`);
  }
  return EXIT.done;
}

/**
 * The cells behind `column=value`. A column whose name holds "=" cannot be named this way.
 *
 * @throws UsageError for what is no such pair, and for a column that is given twice; PeersyncError for a file that cannot
 *   be read
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
    const column = name('column', pair.slice(0, at));
    if (column === 'pk')
      throw new UsageError(
        `"${pair}": pk is the key, and no column.`,
        'Name the row with `peersync table set TABLE --pk KEY`.',
      );
    if (cells.has(column))
      throw new UsageError(`The column "${column}" was given twice.`, 'Give each column once.');
    cells.set(column, await cellText(pair.slice(at + 1)));
  }
  return cells;
}

async function cellText(text: string): Promise<string> {
  if (text.startsWith('\\@')) return text.slice(1);
  return text.startsWith('@') ? textOf(text.slice(1)) : text;
}

const LARGEST_FILE = 64 * 2 ** 20;

async function textOf(file: string): Promise<string> {
  const content = await contentOf(file);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new PeersyncError({
      code: 'NOT_TEXT',
      message: `${file} is not text in UTF-8, and a cell holds only text.`,
      hint: 'Convert it to text in UTF-8.',
    });
  }
}

async function contentOf(file: string): Promise<Uint8Array> {
  let bytes: number;
  try {
    bytes = (await stat(file)).size;
    if (bytes <= LARGEST_FILE) return await readFile(file);
  } catch (error) {
    throw new PeersyncError({
      code: 'UNREADABLE',
      message: `${file} cannot be read: ${messageOf(error)}.`,
      hint: 'Name a file that can be read, or write \\@ where the value begins with @.',
      exitCode: EXIT.usage,
      cause: error,
    });
  }
  throw new UsageError(
    `${file} has ${formatBytes(bytes)}.`,
    `Give a file of at most ${formatBytes(LARGEST_FILE)} for one cell.`,
  );
}
