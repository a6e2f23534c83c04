import { status } from '../api/status.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer, completed } from '../cli/output.js';
import { wrappedLines } from '../cli/terminal.js';
import { terminalWidth } from '../cli/text.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, type ExitCode } from '../lib/errors.js';
import type { StatusReport } from '../report/status-report.js';
import { stateHolder } from '../state/directory.js';
import { ask, configToAsk, missingState } from './ask.js';
import { worse } from './mirror.js';
import { type Absence, statusLines } from './status-lines.js';

/** Shows the state of everything, also if no daemon runs. */
export const statusCommand = define({
  options: {
    check: option.flag(
      'Exit with 1, 3 or 4 where something is wrong, as for monitoring; else with 0',
    ),
  },
  output: status.line,
  examples: [
    ['$0 status', 'Folders, items, the peer, and what is wrong'],
    ['$0 status --check > /dev/null', 'In a script: does the daemon run, and is all well?'],
  ],
  run: async (options) => {
    const config = await configToAsk(options);
    const report = await ask(options, config, status, {});
    const absence = report.running ? {} : await absenceOf(config.state.dir);
    answer(options, report, () => {
      const now = systemClock.now() - (report.wallAheadMs ?? 0);
      const width = terminalWidth(process.stdout);
      return wrappedLines(completed(options, statusLines(report, now, absence, width)), width);
    });
    return options.check ? checkCode(report) : EXIT.done;
  },
});

/** Returns the worst exit code of all conditions, or a failure if no daemon runs. */
export function checkCode(report: StatusReport): ExitCode {
  const { conditions, peer, running } = report;
  if (!running) return EXIT.failure;
  const isAway = peer.queue?.circuit.reason?.kind === 'unreachable';
  const codes = conditions.map(({ code, severity }): ExitCode => {
    if (code === 'PEER' && isAway) return EXIT.unreachable;
    if (severity === 'info') return EXIT.done;
    return severity === 'warning' || WORK_CONTINUES.has(code) ? EXIT.quarantined : EXIT.failure;
  });
  return codes.reduce(worse, EXIT.done);
}

/** The errors that do not stop the work. */
const WORK_CONTINUES: ReadonlySet<string> = new Set(['MIRROR_CONDITION', 'TIME_TO_SEARCH']);

async function absenceOf(stateDir: string): Promise<Absence> {
  const missing = await missingState(stateDir);
  if (missing !== undefined) return { missing };
  return { pid: (await stateHolder(stateDir))?.pid };
}
