import { EXIT } from '../lib/errors.js';
import { type Command, moduleOf, prepare, print, printJson, UsageError } from './context.js';
import { HEADS } from './heads.js';
import { withPeer } from './peer-access.js';
import { tableDeleteRowsCommand, tableDropCommand } from './table-delete.js';
import { tableGetCommand } from './table-get.js';
import { tableAddCommand, tableSetCommand } from './table-set.js';
import { safe } from './text.js';

const NAME_ONE = 'Name what to do: `table list`, `get`, `set`, `add`, `delete-rows` or `drop`.';

/** Tables of the peer. */
export const tableCommand: Command<object> = {
  ...HEADS.table,
  builder: (yargs) =>
    yargs
      .command(moduleOf(tableListCommand()))
      .command(moduleOf(tableGetCommand))
      .command(moduleOf(tableSetCommand))
      .command(moduleOf(tableAddCommand))
      .command(moduleOf(tableDeleteRowsCommand))
      .command(moduleOf(tableDropCommand))
      .demandCommand(1, NAME_ONE)
      .recommendCommands(),
  run: async () => {
    throw new UsageError(NAME_ONE);
  },
};

function tableListCommand(): Command<object> {
  return {
    command: ['list'],
    describe: 'Name the tables of the peer',
    builder: (yargs) => yargs.example('$0 table list', 'One a line'),
    run: async (options) => {
      const { loaded, log } = await prepare(options, { fd: 2, quiet: true });
      const tables = await withPeer(loaded.config, log, (client, signal) => client.tables.list({ signal }));
      if (options.json) printJson({ tables });
      else for (const table of tables) print(safe(table));
      return EXIT.done;
    },
  };
}
