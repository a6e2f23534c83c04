import { type Command, moduleOf, UsageError } from './context.js';
import { HEADS } from './heads.js';
import { serviceInstallCommand } from './service-install.js';
import { serviceStatusCommand } from './service-status.js';
import { serviceUninstallCommand } from './service-uninstall.js';

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
