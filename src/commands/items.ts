import { define } from '../cli/command.js';
import { configToName, isThere, openLog } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { Progress, type Step } from '../cli/progress.js';
import { counted, named, safe, timeText } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { Config } from '../config/config.js';
import { askDaemonText } from '../daemon/control.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { jsonWithConfig, withConfig } from '../lib/hint.js';
import { writtenPath } from '../lib/home.js';
import { fromVisible } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { LISTED_STATUSES, type ListedEntry, locate } from '../report/items.js';
import type { WhyReport } from '../report/why.js';
import type { Deviation, Verified, Verifying } from '../uplink/verify.js';
import {
  answerAlone,
  askAnyone,
  askAnyoneOnce,
  configToAsk,
  runningStatus,
} from './daemon-access.js';

/** Every known file, one a line. */
export const listCommand = define({
  options: {
    status: option.oneOf(
      LISTED_STATUSES,
      'Only those with this status (skipped: kept out by a rule)',
    ),
    folder: option.value('Only those of the folder with this name'),
  },
  examples: [
    ['$0 list --status quarantined', 'What needs a hand, and why'],
    ['$0 list --folder inbox --json', 'One JSON object a line'],
  ],
  run: async (options) => {
    const config = await configToAsk(options);
    const question = {
      ask: 'list',
      parameters: { status: options.status, folder: options.folder },
    };
    const told = await askDaemonText(config.state.dir, question);
    // Many lines at a time: each by itself, a million took longer to hand on than to find.
    const textFor = options.json ? jsonLines : linesOf;
    for await (const lines of told ?? textOf(answerAlone(options, question)))
      process.stdout.write(textFor(lines, configToName(options)));
    return EXIT.done;
  },
});

/** As a daemon would send it. */
async function* textOf(lots: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const lot of lots as AsyncIterable<readonly ListedEntry[]>)
    yield lot.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

/** Read only where a hint names a command: there may be a million lines. */
function jsonLines(lines: string, config: string | undefined): string {
  if (!lines.includes('`peersync ')) return lines;
  const entries = lines.trimEnd().split('\n');
  return entries.map((line) => `${jsonWithConfig(JSON.parse(line), config)}\n`).join('');
}

function linesOf(lines: string, config: string | undefined): string {
  const now = systemClock.now();
  const entries = lines.trimEnd().split('\n');
  const shown = entries.map((line) => `${lineOf(JSON.parse(line) as ListedEntry, now)}\n`).join('');
  return withConfig(shown, config);
}

function lineOf(entry: ListedEntry, now: number): string {
  const line = `${entry.status.padEnd(11)}  ${timeText(entry.since, now)}  ${safe(`${entry.folder}/${entry.path}`)}`;
  const searchable = entry.isOlderSearchable ? ' An older version of it is still searchable.' : '';
  return entry.message === undefined
    ? line
    : `${line}\n             ${safe(entry.message)}${searchable}`;
}

/**
 * Everything about one path: the rule, the status and how it came about, the evidence or the error,
 * and what is next.
 */
export const whyCommand = define({
  positionals: {
    path: option.needed('A file, present or not: its path, FOLDER/path, or its name alone'),
  },
  examples: [['$0 why data/inbox/report.md', 'Is it searchable yet, and if not, why?']],
  run: async (options) => {
    const config = await configToAsk(options);
    const path = await typedPath(config, options.path);
    const report = await askAnyoneOnce<WhyReport>(options, config, {
      ask: 'why',
      parameters: { path },
    });
    answer(options, report, () => whyText(report, systemClock.now()));
    const isUnknown =
      report.kind === 'absent' || (report.status === 'outside' && report.kind !== 'mirrored');
    return isUnknown ? EXIT.failure : EXIT.done;
  },
});

const STATUSES: Readonly<Record<WhyReport['status'], string>> = {
  pending: 'pending: it is to be pushed',
  accepted: 'accepted by the peer, not confirmed yet',
  confirmed: 'confirmed: the peer showed this version',
  quarantined: 'in quarantine: it cannot succeed without a change',
  gone: 'gone: the file was removed',
  removing:
    'the file was removed or has nothing left that is taken, and the document is being removed',
  removed: 'removed: file and document are gone',
  skipped: 'skipped',
  ignored: 'ignored by a rule',
  unknown: 'not known yet',
  outside: 'not watched',
};

const KINDS: Readonly<Record<NonNullable<WhyReport['kind']>, string>> = {
  directory: 'a directory: only the files in it are pushed',
  link: 'a symbolic link, which is skipped',
  other: 'no regular file, and skipped',
  absent: 'there is no such file, and nothing is known of one',
  mirrored: 'below the mirror root: it comes from the peer',
};

/** The report for a person, line by line. */
export function whyText(report: WhyReport, now: number): string[] {
  const { attempts, evidence, kind, nextAt, failure, version } = report;
  const since = report.since === undefined ? '' : `, since ${timeText(report.since, now)}`;
  const sha256 = version?.sha256 === undefined ? '' : `, sha256 ${version.sha256}`;
  return named([
    ['file', report.file],
    ['status', `${kind === undefined ? STATUSES[report.status] : KINDS[kind]}${since}`],
    ['name', report.renamed],
    ['reason', failure && `${failure.message} [${failure.code}]`],
    ['what to do', failure?.hint],
    [
      'evidence',
      evidence && `${evidence.kind}: ${evidence.shown}, seen ${timeText(evidence.at, now)}`,
    ],
    ['rule', report.rule],
    ['up to date', report.upToDateAt === undefined ? '' : timeText(report.upToDateAt, now)],
    ['document', report.url],
    ['collection', report.collection],
    [
      'version',
      version &&
        `${formatBytes(version.size)}, modified ${timeText(version.mtimeMs, now)}${sha256}`,
    ],
    ['text', report.conversion],
    ['attempts', attempts ? String(attempts) : undefined],
    ['next', nextAt === undefined ? report.next : `${report.next} ${nextText(nextAt, now)}`],
    ...report.history.map(
      ({ status, at, note }, i) =>
        [
          i === 0 ? 'history' : '',
          `${timeText(at, now)} ${status}${note === undefined ? '' : `: ${note}`}`,
        ] as const,
    ),
  ]);
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
  positionals: { path: option.several('Files, or directories with all below') },
  options: { all: option.flag('Everything') },
  examples: [
    ['$0 retry data/inbox/report.md', 'One file'],
    ['$0 retry --all', 'Everything that is stuck'],
  ],
  run: async (options) => {
    if (options.all === options.path.length > 0)
      throw new UsageError(
        options.all ? 'Both paths and --all were given.' : 'Neither a path nor --all was given.',
        'Name the files to try again, or give --all.',
      );
    const config = await configToAsk(options);
    const paths = await Promise.all(options.path.map((path) => typedPath(config, path)));
    const parameters = options.all ? { all: true } : { paths };
    const report = await askAnyoneOnce<Retried>(options, config, { ask: 'retry', parameters });
    const isRunning = (await runningStatus(config.state.dir)) !== undefined;
    return answer(options, report, () => [retriedText(report, isRunning)]);
  },
});

/**
 * What a person typed as the daemon understands it: a path from here, else `FOLDER/path` or the
 * bare name of a known file.
 */
async function typedPath(config: Config, text: string): Promise<string> {
  const path = writtenPath(text);
  if (await isThere(path)) return path;
  const meant = writtenPath(fromVisible(text));
  if (meant !== path && (await isThere(meant))) return meant;
  if (config.folders.some(({ name }) => text.startsWith(`${name}/`))) return text;
  const isName = !text.includes('/') && (await locate(config, path)) === undefined;
  return isName ? text : path;
}

/** What a retry did, for a person. */
function retriedText({ retried, lookedAt }: Retried, isRunning: boolean): string {
  const said: string[] = [];
  if (retried > 0)
    said.push(`${counted(retried, 'item')} ${retried === 1 ? 'is' : 'are'} pending again`);
  if (lookedAt > 0)
    said.push(`${counted(lookedAt, 'file')} ${lookedAt === 1 ? 'is' : 'are'} looked at again`);
  if (said.length === 0)
    return 'Nothing there is in quarantine, waits for its next attempt, or was skipped.';
  if (isRunning) return `${said.join(', ')}.`;
  return `${said.join(', ')}. No daemon runs now: the next \`peersync run\` or \`peersync once\` goes on with that.`;
}

/** So many items are looked up when nothing else is asked for. */
const SAMPLE = 100;

/**
 * Looks items up once more: a peer that crashes, or its administrator, can lose documents, and a
 * restored backup brings removed ones back.
 */
export const verifyCommand = define({
  options: {
    sample: option.value(
      `How many confirmed and removed items, by chance (${SAMPLE} unless given)`,
    ),
    all: option.flag('All of them'),
    repair: option.flag('Push again what is missing, and remove again what has come back'),
  },
  examples: [
    ['$0 verify', 'A sample'],
    ['$0 verify --all --repair', 'After a crash of the peer, or a restored backup'],
  ],
  run: async (options) => {
    if (options.all && options.sample !== undefined)
      throw new UsageError('Both --sample and --all were given.', 'Give one of them.');
    const count =
      options.sample === undefined ? SAMPLE : option.wholeNumber('--sample', options.sample);
    const config = await configToAsk(options);
    const { repair } = options;
    // The result goes to the standard output; how far it has come is for who watches.
    const watched = process.stderr.isTTY && !options.json;
    const progress = new Progress(watched ? process.stderr : undefined, systemClock);
    const how = { repair, ...(options.all ? {} : { sample: count }) };
    let deviations = 0;
    const question = { ask: 'verify', parameters: how };
    const log = progress.beside(await openLog(options, 2, 'warn'));
    try {
      for await (const each of askAnyone(options, config, question, { patienceMs: 0, log })) {
        const line = each as Deviation | Verified | Verifying;
        if (line.kind === 'verifying') progress.show(stepOf(line));
        else {
          progress.clear();
          answer(options, line, () => [verifyText(line, repair)]);
          if (line.kind !== 'verified') deviations += 1;
        }
      }
    } finally {
      progress.end();
    }
    return deviations > 0 && !repair ? EXIT.quarantined : EXIT.done;
  },
});

function stepOf({ back, checked, lost, of }: Verifying): Step {
  const looked = of === undefined ? `${checked} looked up` : `${checked}/${of} looked up`;
  return {
    done: checked,
    total: of ?? checked,
    parts: [looked, `${lost} missing`, `${back} back`],
  };
}

/** What is told of one line, for a person. */
export function verifyText(line: Deviation | Verified, repair: boolean): string {
  if (line.kind !== 'verified') {
    const what = line.kind === 'lost' ? 'missing' : 'back';
    return `${what.padEnd(7)}  ${safe(line.file)}  ${safe(line.url)}: ${safe(line.why)}`;
  }
  const { back, checked, failed, lost, removed } = line;
  if (checked === 0) return 'Nothing is confirmed yet, so that there is nothing to look up.';
  const confirmed = checked - removed;
  const sentences: string[] = [];
  if (confirmed > 0) {
    const looked = `${counted(confirmed, 'confirmed item')} looked up`;
    if (lost > 0)
      sentences.push(`${looked}, ${lost} missing.`, repair ? PUSHED_AGAIN : PUSHES_AGAIN);
    else sentences.push(`${looked}: ${failed === 0 ? 'all are there' : 'none is missing'}.`);
  }
  if (removed > 0) {
    const looked = `${counted(removed, 'removed item')} looked up`;
    if (back > 0)
      sentences.push(`${looked}, ${back} back.`, repair ? REMOVED_AGAIN : REMOVES_AGAIN);
    else sentences.push(`${looked}: none has come back.`);
  }
  if (failed > 0)
    sentences.push(
      `Of ${counted(failed, 'item')} the answer could not be used; the log names them.`,
    );
  return sentences.join(' ');
}

const BY_WHOM = 'by the daemon, or by `peersync once` where none runs.';
const PUSHED_AGAIN = `What is missing is pushed again ${BY_WHOM}`;
const REMOVED_AGAIN = `What is back is removed again ${BY_WHOM}`;
const PUSHES_AGAIN = '`peersync verify --all --repair` pushes again what is missing.';
const REMOVES_AGAIN = '`peersync verify --all --repair` removes again what is back.';
