import { ConfigError } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import { systemClock, type Timer } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { ReloadReport, StatusReport } from '../report/status.js';
import { stateHolder } from '../state/directory.js';
import type { Trouble } from '../state/entry.js';
import { type Command, complain, configOf, print, printJson } from './context.js';
import { HEADS } from './heads.js';
import { missingState } from './missing-state.js';
import { safe } from './text.js';

/** After so long it is told what a reload waits for, in ms. */
const PATIENCE_MS = 3_000;

/** The running daemon takes up its changed configuration. */
export const reloadCommand: Command<object> = {
  ...HEADS.reload,
  builder: (yargs) => yargs.example('$0 reload', 'After the configuration file was changed'),
  run: async (options) => {
    const { config } = await configOf(options).catch(nothingChanged);
    const { dir } = config.state;
    const told = tellWait(dir);
    try {
      // The answer begins when all is done.
      const answer = await askDaemon(dir, { ask: 'reload', parameters: {} }, { patienceMs: 0 });
      if (answer === undefined) throw await nobodyAnswers(dir);
      for await (const report of answer) {
        if (options.json) printJson(report);
        else for (const line of reloadLines(report as ReloadReport)) print(line);
      }
    } finally {
      told.cancel();
    }
    return EXIT.done;
  },
};

/** Says what a reload waits for that does not end soon: a disk that is full, or does not answer. */
function tellWait(stateDir: string): Timer {
  return systemClock.after(
    PATIENCE_MS,
    async () => {
      const trouble = await troubleOf(stateDir).catch(() => undefined);
      if (trouble !== undefined)
        complain(
          `peersync: The daemon takes it up, and cannot finish: ${trouble.message}\n  ${trouble.hint}\n`,
        );
    },
    { background: true },
  );
}

async function troubleOf(stateDir: string): Promise<Trouble | undefined> {
  const question = { ask: 'status', parameters: {} };
  const answer = await askDaemon(stateDir, question, { patienceMs: 0 });
  if (answer === undefined) return undefined;
  for await (const report of answer) {
    const { stateTrouble, diskTrouble } = report as StatusReport;
    return stateTrouble ?? diskTrouble;
  }
  return undefined;
}

/** Where the daemon is that was meant, as far as the directory of the state tells. */
async function nobodyAnswers(stateDir: string): Promise<PeersyncError> {
  const holder = await stateHolder(stateDir);
  if (holder !== undefined)
    return new PeersyncError({
      code: 'NOT_RELOADABLE',
      message: `The daemon of this configuration (pid ${holder.pid} on ${holder.host}) does not take commands now.`,
      hint: 'Where it is starting or stopping, try again in a moment; where that is another machine, ask it there.',
    });
  const missing = await missingState(stateDir);
  if (missing === undefined)
    return new PeersyncError({
      code: 'NOT_RUNNING',
      message: `No daemon runs with this configuration: none uses the state in ${stateDir}.`,
      hint: 'Start it with `peersync run`. If state.dir was changed, a daemon that runs on the old directory takes it up only by a restart.',
    });
  return new PeersyncError({ code: 'NOT_RUNNING', ...missing });
}

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
