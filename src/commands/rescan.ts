import { rescan } from '../api/rescan.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { counted } from '../cli/text.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { quoted } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { ScanReport } from '../watch/watcher.js';
import { askRunning, configToAsk, runningStatus } from './ask.js';

/** Lets the running daemon scan its folders now. */
export const rescanCommand = define({
  positionals: {
    folder: option.value(
      'Only the folder with this name; if it was replaced, what stands there now is it',
    ),
  },
  output: rescan.line,
  examples: [['$0 rescan inbox', 'Scan one folder']],
  run: async (options) => {
    const config = await configToAsk(options);
    const { folder } = options;
    const scans = await askRunning(config, rescan, folder === undefined ? {} : { folder });
    for await (const scan of scans) answer(options, scan, () => [scanText(scan)]);
    const status = await runningStatus(config.state.dir);
    for (const { code, subject, message, hint } of status?.conditions ?? [])
      if (code === 'FOLDER_HELD' && (folder ?? subject) === subject)
        throw new PeersyncError({ code, message, hint });
    return EXIT.done;
  },
});

function scanText({ folder, files, directories, durationMs }: ScanReport): string {
  const where = counted(directories, 'directory', 'directories');
  return `Folder ${quoted(folder)}: listed ${counted(files, 'file')} in ${where}, in ${durationText(durationMs)}.`;
}
