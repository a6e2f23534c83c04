import { reload } from '../api/reload.js';
import { define } from '../cli/command.js';
import { configOf } from '../cli/global-options.js';
import { answer, restated } from '../cli/output.js';
import { safe } from '../cli/text.js';
import { ConfigError } from '../config/config.js';
import { EXIT } from '../lib/errors.js';
import type { ReloadReport } from '../report/live.js';
import { askRunning } from './ask.js';

/** Lets the running daemon load its changed configuration. */
export const reloadCommand = define({
  output: reload.line,
  examples: [['$0 reload', 'After the configuration file was changed']],
  run: async (options) => {
    const { config } = await configOf(options).catch(failUnchanged);
    for await (const report of await askRunning(config, reload, {}))
      answer(options, report, () => reloadLines(report));
    return EXIT.done;
  },
});

/** Throws the error that the daemon would find, and adds that nothing changed. */
function failUnchanged(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  throw restated(error, {
    message: `${error.message}\n  If a daemon runs with this file, it goes on as before.`,
  });
}

function reloadLines({ changes, restart }: ReloadReport): string[] {
  const lines = changes.map(safe);
  for (const key of restart) lines.push(`${key}: takes effect only by a restart`);
  return lines.length > 0 ? lines : ['Nothing changed.'];
}
