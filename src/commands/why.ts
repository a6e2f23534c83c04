import { resolve } from 'node:path';
import { systemClock } from '../lib/clock.js';
import { EXIT } from '../lib/errors.js';
import { formatBytes } from '../lib/units.js';
import type { WhyReport } from '../report/why.js';
import { type Command, configOf, print, printJson } from './context.js';
import { HEADS } from './heads.js';
import { askOr } from './offline.js';
import { readState } from './offline-state.js';
import { safe, timeText } from './text.js';

interface WhyOptions {
  readonly path: string;
}

/** Everything about one path: the rule, the status and how it came about, the evidence or the error, and what is next. */
export const whyCommand: Command<WhyOptions> = {
  ...HEADS.why,
  builder: (yargs) =>
    yargs
      .positional('path', { type: 'string', demandOption: true, describe: 'A file, present or not' })
      .example('$0 why data/inbox/report.md', 'Is it searchable yet, and if not, why?'),
  run: async (options) => {
    const { config } = await configOf(options);
    const path = resolve(options.path);
    const offline = async () => {
      const { explain } = await import('../report/why.js');
      return [await explain(path, config, await readState(config), undefined)];
    };
    for await (const report of askOr(config, 'why', { path }, offline)) {
      if (options.json) printJson(report);
      else for (const line of whyText(report, systemClock.now())) print(line);
    }
    return EXIT.done;
  },
};

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
