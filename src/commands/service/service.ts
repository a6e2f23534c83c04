import { type Command, moduleOf, UsageError } from '../context.js';
import { HEADS } from '../heads.js';
import { serviceInstallCommand } from './install.js';
import { serviceStatusCommand } from './status.js';
import { serviceUninstallCommand } from './uninstall.js';

const NAME_ONE = 'Name what to do: `service install`, `uninstall` or `status`.';

/** The daemon as a service of systemd. */
export const serviceCommand: Command<object> = {
  ...HEADS.service,
  builder: (yargs) =>
    yargs
      .command(moduleOf(serviceInstallCommand))
      .command(moduleOf(serviceUninstallCommand))
      .command(moduleOf(serviceStatusCommand))
      .demandCommand(1, NAME_ONE)
      .recommendCommands(),
  run: async () => {
    throw new UsageError(NAME_ONE);
  },
};
