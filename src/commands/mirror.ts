import { join } from 'node:path';
import { mirror, mirrorAccept } from '../api/mirror.js';
import { define } from '../cli/command.js';
import { type GlobalOptions, openLog } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, print } from '../cli/output.js';
import { filtered, Progress, type Step } from '../cli/progress.js';
import { columns, counted, fewOf, safe } from '../cli/text.js';
import type { Config } from '../config/config.js';
import { systemClock } from '../lib/clock.js';
import { pagePath } from '../lib/documentation.js';
import { EXIT, type ExitCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/text.js';
import { durationText, formatBytes } from '../lib/units.js';
import type { MirrorReport } from '../mirror/record.js';
import { type AskOptions, askLines, configToAsk } from './ask.js';

/** The interval at which the elapsed time is shown, in ms. */
const TICK_MS = 1_000;

/**
 * Runs mirrors now, by the running daemon or, without one, by itself. `accept` accepts what
 * they reported.
 */
export const mirrorCommand = define({
  positionals: { names: option.several('Only the mirrors with these names') },
  output: mirror.line,
  examples: [
    ['$0 mirror', 'All of them'],
    ['$0 mirror prices', 'One of them'],
    ['$0 mirror accept prices', 'Take what the peer says, after a mirror reported it'],
  ],
  commands: [
    {
      usage: 'accept <names..>',
      describe: 'Accept what a mirror reported: its file follows the peer again',
      ...define({
        positionals: {
          names: { ...option.several('The mirrors, as `status` names them'), demandOption: true },
        },
        output: mirrorAccept.line,
        examples: [['$0 mirror accept prices', 'After its table became empty on purpose']],
        run: async (options) => {
          const { names } = options;
          return await runMirrors(options, names, (config, asking) =>
            askLines(options, config, mirrorAccept, { names: [...names] }, asking),
          );
        },
      }),
    },
  ],
  run: async (options) => {
    const names = options.names.length === 0 ? undefined : [...options.names];
    return await runMirrors(options, names, (config, asking) =>
      askLines(options, config, mirror, { names }, asking),
    );
  },
});

/**
 * Prints the lines of an answer as they come, and the progress meanwhile.
 *
 * @param names of the mirrors; undefined for all
 */
async function runMirrors(
  options: GlobalOptions,
  names: readonly string[] | undefined,
  askFor: (config: Config, asking: AskOptions) => AsyncIterable<MirrorReport>,
): Promise<ExitCode> {
  const [config, log] = [await configToAsk(options), await openLog(options, 2, 'warn')];
  const { root, shares, tables, citations } = config.mirror;
  const all = [...shares, ...tables, ...citations].map(({ name }) => name);
  const waiting = new Set(names ?? all);
  const watched = process.stderr.isTTY && !options.json && waiting.size > 0;
  const progress = new Progress(watched ? process.stderr : undefined, systemClock);
  const logBeside = progress.beside(options.json ? log : withoutMirrors(log));
  const beganAt = systemClock.now();
  let exitCode: ExitCode = EXIT.done;
  let mirrors = 0;
  const ended = new AbortController();
  // A large table may take long before its first line.
  const show = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      progress.show(stepOf([...waiting], mirrors, systemClock.now() - beganAt));
      await systemClock.sleep(TICK_MS, ended.signal);
    }
  };
  const shown = show();
  try {
    for await (const report of askFor(config, { patienceMs: 0, log: logBeside })) {
      mirrors += 1;
      waiting.delete(report.name);
      progress.clear();
      answer(options, report, () => runLines(report, root));
      exitCode = worse(exitCode, mirrorExitCode(report));
    }
  } finally {
    ended.abort();
    await shown;
    progress.end();
  }
  if (mirrors === 0 && !options.json)
    print(
      `The configuration names no mirrors; what they do stands in ${pagePath('src/mirror/README.md')}.`,
    );
  return exitCode;
}

/** Returns the progress of a run of mirrors. A pattern may add more of them. */
export function stepOf(waiting: readonly string[], done: number, elapsedMs: number): Step {
  const parts = [`${counted(done, 'mirror')} done`, `${durationText(elapsedMs)}`];
  if (waiting.length > 0) parts.push(`waiting for ${fewOf(waiting)}`);
  const besides = { done, total: done + Math.max(1, waiting.length) };
  return { done: 0, total: 0, besides, parts, growing: true };
}

/** Returns a log without the lines about mirrors, for a command that prints its own. */
export function withoutMirrors(log: Logger): Logger {
  return filtered(log, (fields) => !('event' in fields && fields.event === 'mirror'));
}

/** 3 for a condition; 4 or 1 for a run that failed. */
export function mirrorExitCode({ condition, failure }: MirrorReport): ExitCode {
  if (failure !== undefined)
    return failure.code === 'PEER_UNREACHABLE' || failure.code === 'PEER_TIMEOUT'
      ? EXIT.unreachable
      : EXIT.failure;
  return condition === undefined ? EXIT.done : EXIT.quarantined;
}

const SEVERITY: readonly ExitCode[] = [EXIT.done, EXIT.quarantined, EXIT.unreachable, EXIT.failure];

/** Returns the more severe of two exit codes. */
export function worse(a: ExitCode, b: ExitCode): ExitCode {
  return SEVERITY.indexOf(a) > SEVERITY.indexOf(b) ? a : b;
}

/** The number of cells in conflict that are named for each file. */
const MAX_CELLS = 5;

/**
 * Returns the result of a run of one mirror as lines for a person.
 *
 * @param root of the mirrors, for paths that a person has to find
 */
export function runLines(report: MirrorReport, root: string): string[] {
  const { condition, failure, kind, name, table } = report;
  const isPattern = kind === 'table' && table === undefined;
  const lines = noteworthy(report, root);
  if ((condition ?? failure) === undefined && !isPattern) lines.unshift(outcomeOf(report));
  const [first = 'has not run yet.', ...rest] = lines;
  return [`${name}: ${first}`, ...rest.map((line) => `  ${line}`)].map(safe);
}

function outcomeOf({
  kind,
  path,
  changed,
  rows,
  bytes,
  absentSince,
  isOver,
}: MirrorReport): string {
  if (absentSince !== undefined || isOver)
    return `${path} ${changed ? 'removed' : 'is not there'}, until the peer has it again`;
  const what = [
    ...(rows === undefined ? [] : [counted(rows, kind === 'citations' ? 'document' : 'row')]),
    ...(bytes === undefined ? [] : [formatBytes(bytes)]),
  ];
  return `${path} ${changed ? 'written' : 'unchanged'}${what.length === 0 ? '' : ` (${what.join(', ')})`}`;
}

/**
 * Returns all mirrors as lines for `status`. Below each mirror follow the lines that a person
 * should read.
 */
export function mirrorLines(
  mirrors: readonly MirrorReport[],
  root: string,
  now: number,
  width?: number,
): string[] {
  if (mirrors.length === 0) return [];
  const ago = (at: number | undefined) =>
    at === undefined ? 'never' : `${durationText(now - at)} ago`;
  const rows = [
    [
      'mirror',
      'last success',
      'last change',
      'rows',
      'size',
      'next run',
      `file, below ${safe(root)}`,
    ],
    ...mirrors.map(({ bytes, changedAt, name, nextAt, path, rows, running, succeededAt }) => {
      const next =
        nextAt === undefined ? '' : nextAt <= now ? 'now' : `in ${durationText(nextAt - now)}`;
      return [
        safe(name),
        ago(succeededAt),
        ago(changedAt),
        rows ?? '',
        bytes === undefined ? '' : formatBytes(bytes),
        running ? 'now' : next,
        safe(path),
      ];
    }),
  ];
  const [head = '', ...lines] = columns(rows, width);
  return [
    head,
    ...mirrors.flatMap((mirror, i) => [
      lines[i] ?? '',
      ...noteworthy(mirror, root, now).map((line) => `  ${safe(line)}`),
    ]),
  ];
}

/**
 * Returns the condition, failure and conflicts of a mirror as lines.
 *
 * @param now set if the lines contain durations
 */
function noteworthy(mirror: MirrorReport, root: string, now?: number): string[] {
  const { condition, failure, absentSince, conflicts = [], notes = [] } = mirror;
  const lasting = (since: number) => (now === undefined ? '' : ` for ${durationText(now - since)}`);
  const lines: string[] = [];
  if (condition !== undefined)
    lines.push(
      `NEEDS YOU${lasting(condition.since)}: ${sentence(condition.message)} ${sentence(condition.hint)}`,
    );
  if (failure !== undefined)
    lines.push(
      `fails${lasting(failure.since)}: ${sentence(failure.message)} ${sentence(failure.hint)}`,
    );
  if (absentSince !== undefined && now !== undefined)
    lines.push(
      `The peer does not have it, as was accepted ${durationText(now - absentSince)} ago; the file comes back when the peer has it again.`,
    );
  for (const file of new Set(conflicts.map((each) => each.file))) {
    const cells = conflicts.filter((conflict) => conflict.file === file);
    const named = cells
      .slice(0, MAX_CELLS)
      .map(({ pk, column }) => [pk, column ?? ''].join(' ').trimEnd());
    const more = cells.length > MAX_CELLS ? ` and ${cells.length - MAX_CELLS} more` : '';
    const kept = named[0]
      ? `changed on both sides: ${named.join(', ')}${more}; the peer's value was kept, yours is`
      : 'somebody edited the file; it is as the peer has it again, and the edited one is';
    lines.push(`${kept} in ${join(root, file)} (remove it when you are done)`);
  }
  return [...lines, ...notes];
}
