import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import {
  knownFolder,
  LISTED_STATUSES,
  type ListedEntry,
  type ListFilter,
  listEntries,
} from '../report/items.js';
import { type Command, configOf } from './context.js';
import { HEADS } from './heads.js';
import { askOr } from './offline.js';
import { readState } from './offline-state.js';
import { safe, timeText } from './text.js';

/** Characters. */
const WRITTEN_AT_ONCE = 32_768;

/** Every known file, one a line. */
export const listCommand: Command<ListFilter> = {
  ...HEADS.list,
  builder: (yargs) =>
    yargs
      .option('status', {
        choices: LISTED_STATUSES,
        describe: 'Only those with this status (passed: kept back by a rule)',
        requiresArg: true,
      })
      .option('folder', {
        type: 'string',
        describe: 'Only those of the folder with this name',
        requiresArg: true,
      })
      .example('$0 list --status quarantined', 'What needs a hand, and why')
      .example('$0 list --folder inbox --json', 'One JSON object a line'),
  run: async (options) => {
    const { config } = await configOf(options);
    const parameters = { status: options.status, folder: options.folder };
    knownFolder(config, options.folder);
    const offline = async function* () {
      for await (const lot of listEntries(await readState(config), parameters)) yield* lot;
    };
    // A write for each of a million lines took longer than all the rest.
    let text = '';
    for await (const entry of askOr(config, 'list', parameters, offline)) {
      text += options.json ? `${JSON.stringify(entry)}\n` : `${lineOf(entry, systemClock.now())}\n`;
      if (text.length < WRITTEN_AT_ONCE) continue;
      process.stdout.write(text);
      text = '';
    }
    process.stdout.write(text);
    return EXIT.done;
  },
};

function lineOf(entry: ListedEntry, now: number): string {
  const line = `${entry.status.padEnd(11)}  ${timeText(entry.since, now)}  ${safe(`${entry.folder}/${entry.path}`)}`;
  return entry.message === undefined ? line : `${line}\n             ${safe(entry.message)}`;
}
