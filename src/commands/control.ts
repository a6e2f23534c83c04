import { define } from '../cli/command.js';
import { configOf } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, restated } from '../cli/output.js';
import { counted, dueText, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { ConfigError } from '../config/config.js';
import { askDaemon } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { quoted } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { Paused } from '../queue/request-queue.js';
import { LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS } from '../report/pausing.js';
import type { ReloadReport } from '../report/status.js';
import { stateHolder } from '../state/directory.js';
import type { ScanReport } from '../watch/watcher.js';
import { askAnyoneOnce, configToAsk, missingState, runningStatus } from './daemon-access.js';

/** A scan of the folders now, by the running daemon. */
export const rescanCommand = define({
  positionals: {
    folder: option.value(
      'Only the folder with this name; if it was replaced, what stands there now is it',
    ),
  },
  examples: [['$0 rescan inbox', 'Scan one folder']],
  run: async (options) => {
    const config = await configToAsk(options);
    const parameters = options.folder === undefined ? {} : { folder: options.folder };
    const reports = await askDaemon(
      config.state.dir,
      { ask: 'rescan', parameters },
      { patienceMs: 0 },
    );
    if (reports === undefined) throw await nobodyAnswers(config.state.dir);
    for await (const report of reports)
      answer(options, report, () => [scanText(report as ScanReport)]);
    const status = await runningStatus(config.state.dir);
    for (const { code, subject, message, hint } of status?.conditions ?? [])
      if (code === 'FOLDER_HELD' && (options.folder ?? subject) === subject)
        throw new PeersyncError({ code, message, hint });
    return EXIT.done;
  },
});

function scanText({ folder, files, directories, durationMs }: ScanReport): string {
  const where = counted(directories, 'directory', 'directories');
  return `Folder ${quoted(folder)}: scanned ${counted(files, 'file')} in ${where}, in ${durationText(durationMs)}.`;
}

/** The running daemon takes up its changed configuration. */
export const reloadCommand = define({
  examples: [['$0 reload', 'After the configuration file was changed']],
  run: async (options) => {
    const { config } = await configOf(options).catch(nothingChanged);
    const { dir } = config.state;
    // The answer begins when all is done.
    const reports = await askDaemon(dir, { ask: 'reload', parameters: {} }, { patienceMs: 0 });
    if (reports === undefined) throw await nobodyAnswers(dir);
    for await (const report of reports)
      answer(options, report, () => reloadLines(report as ReloadReport));
    return EXIT.done;
  },
});

/** Where the daemon is that was meant, as far as the directory of the state tells. */
async function nobodyAnswers(stateDir: string): Promise<PeersyncError> {
  const holder = await stateHolder(stateDir);
  if (holder !== undefined)
    return new PeersyncError({
      code: 'NOT_RELOADABLE',
      message: `The daemon of this configuration (pid ${holder.pid} on ${holder.host}) does not take commands now.`,
      hint: 'Where it is starting or stopping, try again in a moment; where that is another machine, ask it there.',
    });
  const unused = {
    message: `No daemon runs with this configuration: none uses the state in ${stateDir}.`,
    hint: 'Start it with `peersync run`. If state.dir was changed, a daemon that runs on the old directory takes it up only by a restart.',
  };
  const missing = await missingState(stateDir);
  const { message, hint } =
    missing === undefined
      ? unused
      : {
          message: `No daemon runs with this configuration: there is no state in ${stateDir}.`,
          hint: `\`peersync run\` starts one. ${missing.moved}`,
        };
  return new PeersyncError({ code: 'NOT_RUNNING', message, hint });
}

/** The same problems that the daemon would find. */
function nothingChanged(error: unknown): never {
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

/** Nothing is sent to the peer any more, until it is resumed. */
export const pauseCommand = define({
  options: { for: option.value('How long; until `resume` unless given') },
  examples: [
    ['$0 pause --for 1h', 'Leave the peer alone for an hour'],
    ['$0 pause', 'Leave it alone until `peersync resume`, also across restarts'],
  ],
  run: async (options) => {
    const forMs = options.for === undefined ? undefined : option.duration('--for', options.for);
    if (forMs !== undefined && (forMs < SHORTEST_PAUSE_MS || forMs > LONGEST_PAUSE_MS))
      throw new UsageError(`--for: received "${options.for}".`, 'Give from "1s" to "3650d".');
    const config = await configToAsk(options);
    const paused = await askAnyoneOnce<Paused>(options, config, {
      ask: 'pause',
      parameters: { forMs },
    });
    const isRunning = (await runningStatus(config.state.dir)) !== undefined;
    return answer(options, paused, () => [pausedLine(paused, systemClock.now(), isRunning)]);
  },
});

/** What a pause is, and until when. */
export function pausedLine({ until }: Paused, now: number, isRunning: boolean): string {
  const end = until === undefined ? 'until `peersync resume`' : `until ${dueText(until, now)}`;
  if (!isRunning)
    return `Paused ${end}. No daemon runs now: the next \`peersync run\` or \`peersync once\` reads what changes on disk, and sends nothing to the peer.`;
  return `Paused ${end}: nothing is sent to the peer, what changes on disk is read and waits.`;
}

/** The end of a pause. */
export const resumeCommand = define({
  examples: [['$0 resume', 'Go on with what waits']],
  run: async (options) => {
    const question = { ask: 'resume', parameters: {} };
    const config = await configToAsk(options);
    const report = await askAnyoneOnce<{ readonly wasPaused: boolean }>(options, config, question);
    const isRunning = (await runningStatus(config.state.dir)) !== undefined;
    return answer(options, report, () => [resumedLine(report.wasPaused, isRunning)]);
  },
});

/** What happens after a pause. */
export function resumedLine(wasPaused: boolean, isRunning: boolean): string {
  if (isRunning)
    return wasPaused ? 'Resumed: the work with the peer goes on.' : 'It was not paused.';
  const what = wasPaused ? 'The pause is over' : 'It was not paused';
  return `${what}. No daemon runs now: \`peersync run\` or \`peersync once\` does what waits.`;
}
