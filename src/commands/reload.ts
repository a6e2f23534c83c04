import { ConfigError } from '../config/errors.js';
import type { ReloadReport } from '../inspect/reload-report.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { askDaemon } from '../service/control.js';
import { type Command, prepare, print, printJson } from './context.js';
import { safe } from './text.js';

/** The running daemon takes up its changed configuration. */
export const reloadCommand: Command<object> = {
  command: ['reload'],
  describe: 'Let the running daemon take up its changed configuration, as SIGHUP does',
  builder: (yargs) => yargs.example('$0 reload', 'After the configuration file was changed'),
  run: async (options) => {
    const { config } = (await prepare(options, { fd: 2, quiet: true }).catch(nothingChanged)).loaded;
    const question = { ask: 'reload', parameters: {} };
    const answer = await askDaemon(config.state.dir, question, { patienceMs: 0 });
    if (answer === undefined)
      throw new PeersyncError({
        code: 'NOT_RUNNING',
        message: `No daemon runs with this configuration (its state would be in ${config.state.dir}).`,
        hint: 'Start it with `peersync run`; where state.dir is what changed, restart it.',
      });
    for await (const report of answer) {
      if (options.json) printJson(report);
      else for (const line of reloadLines(report as ReloadReport)) print(line);
    }
    return EXIT.done;
  },
};

/** The same problems that the daemon would find. */
function nothingChanged(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  const { code, message, details } = error;
  throw new ConfigError(code, `${message}\n  A running daemon goes on as before.`, details);
}

function reloadLines({ changes, restart }: ReloadReport): string[] {
  const lines = changes.map(safe);
  for (const key of restart) lines.push(`${key}: takes effect only by a restart`);
  return lines.length > 0 ? lines : ['Nothing changed.'];
}
