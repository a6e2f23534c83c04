import { askText, unreadable } from '../api/client.js';
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
    const text =
      (await askText(config.state.dir, list, question)) ??
      asText(answerWithoutDaemon(options, list, question));
    // A million lines are converted many at a time, which is much faster than one at a time.
    const convert = options.json ? jsonLines : linesOf;
    for await (const lines of text) process.stdout.write(convert(lines, configToName(options)));
    return EXIT.done;
  },
});

/** Yields lots as a daemon would send them. */
async function* asText(lots: AsyncIterable<readonly ListedEntry[]>): AsyncGenerator<string> {
  for await (const lot of lots) yield lot.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

/** Parses only text whose hints name a command, because there may be a million lines. */
function jsonLines(lines: string, config: string | undefined): string {
  if (!lines.includes('`peersync ')) return lines;
  const entries = lines.trimEnd().split('\n');
  return entries.map((line) => `${jsonWithConfig(JSON.parse(line), config)}\n`).join('');
}

function linesOf(lines: string, config: string | undefined): string {
  const now = systemClock.now();
  const shown = lines
    .trimEnd()
    .split('\n')
    .map((line) => `${lineOf(listedEntry(line), now)}\n`);
  return withConfig(shown.join(''), config);
}

type ShownEntry = Pick<
  ListedEntry,
  'folder' | 'path' | 'status' | 'since' | 'message' | 'isOlderSearchable'
>;

/** @throws PeersyncError CONTROL_FAILED if the text is not a line of `list` */
function listedEntry(text: string): ShownEntry {
  const entry: unknown = JSON.parse(text);
  if (isShownEntry(entry)) return entry;
  throw unreadable(list.name);
}

/** Checks only the fields that are shown: the schema takes too long for a million lines. */
function isShownEntry(entry: unknown): entry is ShownEntry {
  const { folder, path, status, since }: Partial<Record<keyof ShownEntry, unknown>> = Object(entry);
  const texts = [folder, path, status];
  return texts.every((text) => typeof text === 'string') && typeof since === 'number';
}

function lineOf(entry: ShownEntry, now: number): string {
  const line = `${entry.status.padEnd(11)}  ${timeText(entry.since, now)}  ${safe(`${entry.folder}/${entry.path}`)}`;
  const searchable = entry.isOlderSearchable ? ' An older version of it is still searchable.' : '';
  return entry.message === undefined
    ? line
    : `${line}\n             ${safe(entry.message)}${searchable}`;
}
