import { resolve } from 'node:path';
import type { Config } from '../config/config.js';
import { askDaemonText } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { formatBytes } from '../lib/units.js';
import { knownFolder, LISTED_STATUSES, type ListedEntry, listEntries, scopesOf } from '../report/items.js';
import type { WhyReport } from '../report/why.js';
import { retryItems } from '../uplink/retry.js';
import {
  answer,
  configOf,
  define,
  flag,
  type GlobalOptions,
  needed,
  oneOf,
  several,
  UsageError,
  value,
} from './context.js';
import { askOnce, readState, withState } from './daemon-access.js';
import { counted, safe, timeText } from './text.js';

/** Every known file, one a line. */
export const listCommand = define({
  options: {
    status: oneOf(LISTED_STATUSES, 'Only those with this status (passed: kept back by a rule)'),
    folder: value('Only those of the folder with this name'),
  },
  examples: [
    ['$0 list --status quarantined', 'What needs a hand, and why'],
    ['$0 list --folder inbox --json', 'One JSON object a line'],
  ],
  run: async (options) => {
    const { config } = await configOf(options);
    const parameters = { status: options.status, folder: options.folder };
    knownFolder(config, options.folder);
    const told = await askDaemonText(config.state.dir, { ask: 'list', parameters });
    // Many lines at a time: each by itself, a million took longer to hand on than to find.
    for await (const lines of told ?? listText(await readState(config), parameters))
      process.stdout.write(options.json ? lines : linesOf(lines, systemClock.now()));
    return EXIT.done;
  },
});

/** What a daemon would answer. */
async function* listText(...asked: Parameters<typeof listEntries>): AsyncGenerator<string> {
  for await (const lot of listEntries(...asked))
    yield lot.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

function linesOf(lines: string, now: number): string {
  const entries = lines.trimEnd().split('\n');
  return entries.map((line) => `${lineOf(JSON.parse(line) as ListedEntry, now)}\n`).join('');
}

function lineOf(entry: ListedEntry, now: number): string {
  const line = `${entry.status.padEnd(11)}  ${timeText(entry.since, now)}  ${safe(`${entry.folder}/${entry.path}`)}`;
  return entry.message === undefined ? line : `${line}\n             ${safe(entry.message)}`;
}

/** Everything about one path: the rule, the status and how it came about, the evidence or the error, and what is next. */
export const whyCommand = define({
  positionals: {
    path: needed('A file, present or not'),
  },
  examples: [['$0 why data/inbox/report.md', 'Is it searchable yet, and if not, why?']],
  run: async (options) => {
    const { config } = await configOf(options);
    const path = resolve(options.path);
    const offline = async () => {
      const { explain } = await import('../report/why.js');
      return await explain(path, config, await readState(config), undefined);
    };
    const report = await askOnce(config, 'why', { path }, offline);
    return answer(options, report, () => whyText(report, systemClock.now()));
  },
});

const VERDICTS: Readonly<Record<WhyReport['verdict'], string>> = {
  pending: 'pending: it is to be pushed',
  accepted: 'accepted by the peer, not confirmed yet',
  confirmed: 'confirmed: the peer showed this version',
  quarantined: 'in quarantine: it cannot succeed without a change',
  gone: 'gone: the file was removed',
  passed: 'passed over',
  ignored: 'ignored by a rule',
  unknown: 'not known yet',
  outside: 'not watched',
};

const KINDS: Readonly<Record<NonNullable<WhyReport['kind']>, string>> = {
  directory: 'a directory: only the files in it are pushed',
  link: 'a symbolic link, which is passed over',
  other: 'no regular file, and passed over',
};

/** The report for a person, line by line. */
export function whyText(report: WhyReport, now: number): string[] {
  const lines: string[] = [];
  const row = (name: string, value: string) => lines.push(`${name.padEnd(11)} ${value}`);
  row('file', safe(report.file));
  const since = report.since === undefined ? '' : `, since ${timeText(report.since, now)}`;
  row('status', `${report.kind === undefined ? VERDICTS[report.verdict] : KINDS[report.kind]}${since}`);
  if (report.trouble) {
    row('reason', `${safe(report.trouble.message)} [${report.trouble.code}]`);
    row('what to do', safe(report.trouble.hint));
  }
  if (report.evidence)
    row(
      'evidence',
      `${report.evidence.kind}: ${safe(report.evidence.shown)}, seen ${timeText(report.evidence.at, now)}`,
    );
  row('rule', safe(report.rule));
  if (report.url !== undefined) row('document', safe(report.url));
  if (report.collection !== undefined) row('collection', safe(report.collection));
  if (report.version) {
    const { size, mtimeMs, sha256 } = report.version;
    row(
      'version',
      `${formatBytes(size)}, modified ${timeText(mtimeMs, now)}${sha256 ? `, sha256 ${sha256}` : ''}`,
    );
  }
  if (report.conversion) row('encoding', report.conversion);
  if (report.attempts) row('attempts', String(report.attempts));
  row('next', `${report.next}${report.nextAt === undefined ? '' : ` ${nextText(report.nextAt, now)}`}`);
  report.history.forEach(({ status, at, note }, i) => {
    row(i === 0 ? 'history' : '', `${timeText(at, now)} ${status}${note ? `: ${safe(note)}` : ''}`);
  });
  return lines;
}

function nextText(at: number, now: number): string {
  return at <= now ? 'It is due now.' : `Next try: ${timeText(at, now)}.`;
}

interface Retried {
  readonly retried: number;
  readonly lookedAt: number;
}

/** Another try for what is in quarantine or waits for its next attempt. */
export const retryCommand = define({
  positionals: {
    path: several('Files, or directories with all below'),
  },
  options: {
    all: flag('Everything'),
  },
  examples: [
    ['$0 retry data/inbox/report.md', 'One file'],
    ['$0 retry --all', 'Everything that is stuck'],
  ],
  run: async (options) => {
    const { config } = await configOf(options);
    if (options.all === options.path.length > 0)
      throw new UsageError(
        options.all ? 'Both paths and --all were given.' : 'Neither a path nor --all was given.',
        'Name the files to try again, or give --all.',
      );
    const paths = options.all ? undefined : options.path.map((path) => resolve(path));
    const parameters = paths === undefined ? { all: true } : { paths };
    const report = await askOnce(config, 'retry', parameters, () => retryOffline(config, paths, options));
    return answer(options, report, () => [retriedText(report)]);
  },
});

/** What a retry did, for a person. */
export function retriedText({ retried, lookedAt }: Retried): string {
  const said = [
    ...(retried > 0 ? [`${counted(retried, 'item')} ${retried === 1 ? 'is' : 'are'} pending again`] : []),
    ...(lookedAt > 0
      ? [`${counted(lookedAt, 'file')} ${lookedAt === 1 ? 'is' : 'are'} looked at again`]
      : []),
  ];
  if (said.length === 0)
    return 'Nothing there is in quarantine, waits for its next attempt, or was passed over.';
  return `${said.join(', ')}.`;
}

async function retryOffline(
  config: Config,
  paths: readonly string[] | undefined,
  options: GlobalOptions,
): Promise<Retried> {
  const scopes = paths && (await scopesOf(config, paths));
  return await withState(config, options, async (state) => {
    const { retried, lookedAt } = await retryItems(state, scopes, systemClock);
    return { retried, lookedAt: lookedAt.length };
  });
}
