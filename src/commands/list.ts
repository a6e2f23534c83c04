import { askLots, type CheckedLot } from '../api/client.js';
import { list } from '../api/list.js';
import { define } from '../cli/command.js';
import { configToName } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { safe, timeText } from '../cli/text.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { jsonWithConfig, withConfig } from '../lib/hint.js';
import { LISTED_STATUSES, type ListedEntry } from '../report/items.js';
import { configToAsk } from './ask.js';
import { answerWithoutDaemon } from './without-daemon.js';

/** Prints every known file, one a line. */
export const listCommand = define({
  options: {
    status: option.oneOf(
      LISTED_STATUSES,
      'Only those with this status (skipped: kept out of the peer)',
    ),
    folder: option.value('Only those of the folder with this name'),
  },
  output: list.line,
  examples: [
    ['$0 list --status quarantined', 'What needs a hand, and why'],
    ['$0 list --folder inbox --json', 'One JSON object a line'],
  ],
  run: async (options) => {
    const config = await configToAsk(options);
    const { folder, status } = options;
    const question = { folder, status };
    const lots =
      (await askLots(config.state.dir, list, question)) ??
      lotsOf(answerWithoutDaemon(options, list, question));
    // A million lines are converted and written many at a time.
    const convert = options.json ? jsonLines : textLines;
    for await (const lot of lots) process.stdout.write(convert(lot, configToName(options)));
    return EXIT.done;
  },
});

type ListLot = CheckedLot<ListedEntry>;

/** Yields lots as a daemon would send them. */
async function* lotsOf(lots: AsyncIterable<Iterable<ListedEntry>>): AsyncGenerator<ListLot> {
  for await (const lot of lots) {
    const lines = [...lot];
    yield { text: lines.map((line) => `${JSON.stringify(line)}\n`).join(''), lines };
  }
}

/** Only text whose hints name a command is changed. */
function jsonLines({ text, lines }: ListLot, config: string | undefined): string {
  if (!text.includes('`peersync ')) return text;
  return lines.map((line) => `${jsonWithConfig(line, config)}\n`).join('');
}

function textLines({ lines }: ListLot, config: string | undefined): string {
  const now = systemClock.now();
  return withConfig(lines.map((line) => `${lineOf(line, now)}\n`).join(''), config);
}

function lineOf(entry: ListedEntry, now: number): string {
  const line = `${entry.status.padEnd(11)}  ${timeText(entry.since, now)}  ${safe(`${entry.folder}/${entry.path}`)}`;
  const searchable = entry.isOlderSearchable ? ' An older version of it is still searchable.' : '';
  return entry.message === undefined
    ? line
    : `${line}\n             ${safe(entry.message)}${searchable}`;
}
