import { askDaemon } from '../daemon/control.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { durationText } from '../lib/units.js';
import { heldError, type StatusReport } from '../report/status.js';
import type { ScanReport } from '../watch/watcher.js';
import { type Command, configOf, print, printJson } from './context.js';
import { HEADS } from './heads.js';
import { counted, safe } from './text.js';

interface RescanOptions {
  readonly folder: string | undefined;
}

/** A scan of the folders now, by the running daemon. */
export const rescanCommand: Command<RescanOptions> = {
  ...HEADS.rescan,
  builder: (yargs) =>
    yargs
      .positional('folder', { type: 'string', describe: 'Only the folder with this name' })
      .example('$0 rescan inbox', 'Scan one folder'),
  run: async (options) => {
    const { config } = await configOf(options);
    const parameters = options.folder === undefined ? {} : { folder: options.folder };
    const answer = await askDaemon(config.state.dir, { ask: 'rescan', parameters }, { patienceMs: 0 });
    if (answer === undefined)
      throw new PeersyncError({
        code: 'NOT_RUNNING',
        message: 'No daemon runs with this configuration.',
        hint: 'Start it with `peersync run`, which scans first, or scan once with `peersync once`.',
      });
    for await (const report of answer) {
      if (options.json) printJson(report);
      else {
        const { folder, files, directories, durationMs } = report as ScanReport;
        print(
          `${safe(folder)}: scanned ${counted(files, 'file')} in ${counted(directories, 'directory', 'directories')}, ` +
            `in ${durationText(durationMs)}.`,
        );
      }
    }
    const status = await askDaemon(config.state.dir, { ask: 'status', parameters: {} });
    for await (const report of status ?? []) {
      for (const { name, watch } of (report as StatusReport).folders) {
        if (watch?.state === 'held' && (options.folder ?? name) === name) throw heldError(watch);
      }
    }
    return EXIT.done;
  },
};
