import { PeersyncError } from '../lib/errors.js';
import type { PeerClient } from '../peer/client.js';
import type { TableRow } from '../peer/table.js';
import {
  answer,
  define,
  flag,
  type GlobalOptions,
  name,
  needed,
  print,
  printJson,
  several,
  UsageError,
  writeAll,
} from './context.js';
import { askPeer, noTable } from './peer.js';
import { tableText, terminalWidth } from './table-text.js';
import { consent, onThisTerminal } from './terminal.js';
import { counted, safe } from './text.js';

export const TABLE = needed('The name of the table');
const YES = flag('Do it without asking');

/** Rows that are shown before they go; of the others only how many they are. */
const SHOWN_ROWS = 20;

/** What would go. */
interface Doomed {
  readonly count: number;
  /** The first of them. */
  readonly rows: readonly TableRow[];
}

/** Deletes the rows with exactly these keys. */
export const tableDeleteRows = define({
  positionals: {
    table: TABLE,
    pk: several('The keys of the rows'),
  },
  options: { yes: YES },
  examples: [
    ['$0 table delete-rows prices oak beech', 'Shows the two rows, and asks'],
    ['$0 table delete-rows prices oak --yes', 'For a script'],
  ],
  run: async (options) => {
    const table = name('table', options.table);
    if (options.pk.length === 0) throw new UsageError('No row was named.', 'Give the keys of the rows.');
    const keys = [...new Set(options.pk.map((pk) => name('pk', pk)))];
    const deleted = await askPeer(options, async (client, signal) => {
      const doomed = await rowsWith(client, table, keys, signal);
      const question = `Delete ${counted(doomed.count, 'row')} of ${safe(table)}? Type "yes": `;
      await confirmed(options, doomed, question, 'yes', signal);
      return client.tables.deleteRows(table, keys, { signal });
    });
    return answer(options, { table, deleted }, () => [
      `Deleted ${counted(deleted.length, 'row')} of ${safe(table)}; the peer does not show them any more.`,
    ]);
  },
});

/** Deletes a whole table. */
export const tableDrop = define({
  positionals: { table: TABLE },
  options: { yes: YES },
  examples: [
    ['$0 table drop prices', 'Shows its rows, and asks for its name'],
    ['$0 table drop prices --yes', 'For a script'],
  ],
  run: async (options) => {
    const table = name('table', options.table);
    const left = await askPeer(options, async (client, signal) => {
      const doomed = await allRows(client, table, signal);
      const question = `Delete the table ${safe(table)} with ${counted(doomed.count, 'row')}? Type its name: `;
      await confirmed(options, doomed, question, table, signal);
      return client.tables.drop(table, { signal });
    });
    return answer(options, { dropped: table, tables: left }, () => [
      `Deleted the table ${safe(table)}; the peer has ${left.length === 0 ? 'none' : left.length} left.`,
    ]);
  },
});

/** Without --yes: shows what would go, and asks. */
async function confirmed(
  { table, yes, json }: GlobalOptions & { readonly table: string; readonly yes: boolean },
  { count, rows }: Doomed,
  question: string,
  expected: string,
  signal: AbortSignal,
): Promise<void> {
  if (yes) return;
  if (json) {
    const shown = rows.map(({ pk, cells }) => ({ pk, cells: Object.fromEntries(cells) }));
    printJson({ table, wouldDelete: count, rows: shown });
  } else {
    const columns = [...new Set(rows.flatMap(({ cells }) => [...cells.keys()]))];
    const { stdout } = process;
    await writeAll(stdout, tableText(columns, inOneGroup(rows), terminalWidth(stdout)));
    if (count > rows.length) print(`… and ${counted(count - rows.length, 'row')} more`);
  }
  await consent(question, expected, onThisTerminal(), signal);
}

async function* inOneGroup(rows: readonly TableRow[]): AsyncGenerator<readonly TableRow[]> {
  yield rows;
}

const ANY_SIZE = { maxBytes: Number.POSITIVE_INFINITY };

/** @throws PeersyncError NOT_FOUND where the table or one of the keys is not there: then nothing is deleted */
async function rowsWith(
  client: PeerClient,
  table: string,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<Doomed> {
  const missing = new Set(keys);
  const rows: TableRow[] = [];
  const found = await client.tables.stream(
    { table },
    async (stream) => {
      for await (const group of stream.rows) {
        for (const row of group) if (missing.delete(row.pk) && rows.length < SHOWN_ROWS) rows.push(row);
        if (missing.size === 0) break;
      }
      return true;
    },
    { ...ANY_SIZE, signal },
  );
  if (found === undefined) throw await noTable(client, table, signal);
  const [first] = missing;
  if (first === undefined) return { count: keys.length, rows };
  const others = missing.size === 1 ? '' : `, nor ${missing.size - 1} more of those that were named`;
  throw new PeersyncError({
    code: 'NOT_FOUND',
    message: `The table "${table}" has no row ${JSON.stringify(first)}${others}; nothing was deleted.`,
    hint: `\`peersync table get\` shows the rows with their keys.`,
    details: { table, missing: [...missing].slice(0, SHOWN_ROWS) },
  });
}

/** @throws PeersyncError NOT_FOUND where there is no such table */
async function allRows(client: PeerClient, table: string, signal: AbortSignal): Promise<Doomed> {
  const doomed = await client.tables.stream(
    { table },
    async (stream) => {
      const rows: TableRow[] = [];
      let count = 0;
      for await (const group of stream.rows) {
        count += group.length;
        if (rows.length < SHOWN_ROWS) rows.push(...group.slice(0, SHOWN_ROWS - rows.length));
      }
      return { count, rows };
    },
    { ...ANY_SIZE, signal },
  );
  if (doomed === undefined) throw await noTable(client, table, signal);
  return doomed;
}
