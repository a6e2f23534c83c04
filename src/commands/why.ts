import { why } from '../api/why.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { named, timeText } from '../cli/text.js';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { formatBytes } from '../lib/units.js';
import type { WhyReport } from '../report/why.js';
import { ask, configToAsk, typedPath } from './ask.js';

/**
 * Explains one path: the rule, the status and its history, the evidence or the error, and the next
 * step.
 */
export const whyCommand = define({
  positionals: {
    path: option.needed('A file, present or not: its path, FOLDER/path, or its name alone'),
  },
  output: why.line,
  examples: [['$0 why data/inbox/report.md', 'Is it searchable yet, and if not, why?']],
  run: async (options) => {
    const config = await configToAsk(options);
    const path = await typedPath(config, options.path);
    const report = await ask(options, config, why, { path });
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
  link: 'a symbolic link, which is not followed',
  other: 'no regular file, so it is never taken',
  absent: 'there is no such file, and nothing is known of one',
  mirrored: 'below the mirror root: it comes from the peer',
};

/** Returns the report as lines for a person. */
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
